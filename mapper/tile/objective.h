#pragma once

#include "hw/machine/machine.h"

namespace systole::mapper {

/// What the machine's mapper wants little of: its objective, if it searches, else cycles.
[[nodiscard]] inline double objective_of(const hw::Machine::Mapper& mapper, double cycles,
                                         double joules) {
  if (mapper.strategy != hw::MappingStrategy::kSearch) return cycles;
  switch (mapper.objective) {
    case hw::MappingObjective::kCycles:
      return cycles;
    case hw::MappingObjective::kEnergy:
      return joules;
    case hw::MappingObjective::kEdp:
      break;
  }
  return cycles * joules;
}

}  // namespace systole::mapper
