#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/accounting.h"

namespace systole::tlm_model {

/// What a block has to say at the end of a run. `time` holds busy, stalled.<cause>, idle and total,
/// in this order and in one unit, with busy + stalled + idle == total. In a System, time counts
/// while the core runs (System::reports()).
struct BlockReport {
  std::string name;
  std::vector<hw::Counter> time;
  std::vector<hw::Counter> counters;
};

/// Closes a copy of `account` at `end`.
[[nodiscard]] inline BlockReport make_report(std::string name, hw::BlockAccount account,
                                             std::uint64_t end, std::vector<hw::Counter> counters) {
  BlockReport report{std::move(name), {}, std::move(counters)};
  account.finish(end);
  account.for_each([&](const hw::Counter& counter) { report.time.push_back(counter); });
  return report;
}

}  // namespace systole::tlm_model
