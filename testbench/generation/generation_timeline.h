#pragma once

#include <cstdint>
#include <string>

#include "base/atomic_file.h"
#include "tlm/ring/compute_core.h"

namespace systole::testbench {

/// Writes what the cores did as Chrome trace events, for ui.perfetto.dev: a row for each unit of
/// each core, with a slice for each instruction from its first operand to its last result. See
/// docs/dfx.md.
class GenerationTimeline {
 public:
  /// Throws InputError if the file cannot be written.
  GenerationTimeline(const std::string& path, std::uint32_t cores, std::uint32_t core_mhz);

  void add(const tlm_model::dfx::InstructionTrace& trace);
  /// Puts the file in place; without it there is none. Throws InputError if that fails.
  void write();

 private:
  void put(const std::string& event);
  [[nodiscard]] std::string us(std::uint64_t cycles) const;

  const tlm_model::Clock clock_;
  bool first_ = true;
  hw::AtomicFile file_;
};

}  // namespace systole::testbench
