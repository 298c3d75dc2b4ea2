#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "reproduce/reproduction.h"

/// Parts of a reproduction that a user may run apart.
namespace systole::testbench {

struct ReproductionPart {
  const char* name;
  void (*add)(Reproduction&);  ///< its tables and pictures
};

[[nodiscard]] inline std::vector<std::string> part_names(
    const std::vector<ReproductionPart>& parts) {
  std::vector<std::string> names;
  for (const ReproductionPart& part : parts) names.emplace_back(part.name);
  return names;
}

/// Adds those of `parts` that are `wanted`; none: all.
inline void add_parts(Reproduction& reproduction, const std::vector<ReproductionPart>& parts,
                      const std::vector<std::string>& wanted) {
  for (const ReproductionPart& part : parts) {
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), part.name) != wanted.end()) {
      part.add(reproduction);
    }
  }
}

}  // namespace systole::testbench
