#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hw/machine/machine.h"

/// What has to hold between the keys of a machine, beyond the range of each.
namespace systole::hw {

struct MachineRule {
  std::vector<std::string_view> paths;  ///< keys that it joins; the first is the one to blame
  std::string_view expected;            ///< what it asks of the first
  bool (*holds)(const Machine&);        ///< called only if every key is in its range
};

[[nodiscard]] const std::vector<MachineRule>& machine_rules();

/// What is wrong with a machine: the key to blame, and `found X, expected Y`.
struct MachineProblem {
  std::vector<std::string_view> paths;  ///< of a rule: all its keys, the one to blame first
  std::string text;
};

/// Every problem of `machine`; empty if it can be built. A rule is left out if one of its keys is
/// out of range or named in `ignored`, because it would only repeat that error.
[[nodiscard]] std::vector<MachineProblem> machine_problems(
    const Machine& machine, const std::vector<std::string_view>& ignored = {});

/// Throws InputError with all problems, one `key: found X, expected Y` on each line.
void validate(const Machine& machine);

}  // namespace systole::hw
