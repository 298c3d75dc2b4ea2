#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mapper/mapping.h"
#include "model/graph.h"
#include "model/reference.h"
#include "testbench/simulation.h"
#include "tlm/observer.h"
#include "tlm/system.h"

namespace systole::testbench {

/// Compares each operator's result, as it stands in simulated memory when its last command has
/// completed, with the reference, byte for byte.
class Checker final : public tlm_model::Observer {
 public:
  Checker(const model::Graph& graph, const mapper::Mapping& mapping, tlm_model::System& system);

  /// The next inference runs on this input.
  void begin(const std::vector<std::uint8_t>& input);
  void on_command(const tlm_model::CommandTrace&) override {}
  void on_operator(std::uint32_t op, std::uint64_t cycle) override;
  [[nodiscard]] const CheckResult& result() const noexcept { return result_; }

 private:
  void compare(std::uint32_t op, std::uint32_t row, const std::uint8_t* found,
               const std::uint8_t* expected, std::size_t bytes);

  const model::Graph& graph_;
  const mapper::Mapping& mapping_;
  tlm_model::System& system_;
  model::Reference reference_;
  CheckResult result_;
  std::size_t inference_ = 0;
};

}  // namespace systole::testbench
