#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "hw/program/program.h"
#include "testbench/cores/core_plan.h"

namespace systole::testbench {

/// The programs of a core as one, for the texts of a waveform: operators and commands of one after
/// those of the other.
class ShownPrograms {
 public:
  /// Those of core `core` in the plan.
  ShownPrograms(const CorePlan& plan, std::size_t core);

  /// Where a program begins in program().
  struct Place {
    std::uint32_t op = 0, command = 0;
  };
  /// `index`: in the plan, of a program of this core.
  [[nodiscard]] const Place& place(std::size_t index) const { return places_.at(index); }
  [[nodiscard]] const hw::Program& program() const { return program_; }

 private:
  hw::Program program_;
  std::map<std::size_t, Place> places_;  ///< by program of the plan
};

}  // namespace systole::testbench
