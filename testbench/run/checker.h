#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "mapper/mapping.h"
#include "model/graph/graph.h"
#include "model/graph/reference.h"
#include "testbench/run/simulation.h"
#include "tlm/common/observer.h"
#include "tlm/system.h"

namespace systole::testbench {

/// Compares every tile that leaves the post-op unit, as it stands in simulated memory when its
/// command has completed, with the reference, byte for byte. Not later: as soon as the readers of a
/// tile are done, another operator may write over it, even before the last tile of this one is
/// complete.
class Checker {
 public:
  Checker(const model::Graph& graph, tlm_model::System& system);

  /// The next inference runs on this input, by the program of this mapping, which outlives it.
  /// `progress` as of the reference, which computes what is expected.
  void begin(const mapper::Mapping& mapping, const std::vector<std::uint8_t>& input,
             const std::function<void(std::size_t nodes)>& progress);
  void on_command(const tlm_model::CommandTrace& trace);
  [[nodiscard]] const CheckResult& result() const noexcept { return result_; }

 private:
  /// A row of a result from byte `first` on.
  void compare(std::uint32_t op, std::uint64_t row, std::uint64_t first, const std::uint8_t* found,
               const std::uint8_t* expected, std::size_t bytes);

  const model::Graph& graph_;
  const mapper::Mapping* mapping_ = nullptr;
  tlm_model::System& system_;
  model::Reference reference_;
  CheckResult result_;
  std::size_t inference_ = 0;
  std::vector<std::uint32_t> left_;       ///< by operator: commands that have not completed
  std::vector<std::uint64_t> ring_rows_;  ///< by operator whose result is a ring: rows so far
};

}  // namespace systole::testbench
