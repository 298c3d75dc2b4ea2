#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/accounting.h"

namespace systole::test {

/// All that a report says, as "stalled.fetch", "reads", "channel0.busy".
inline std::map<std::string, std::uint64_t> values_of(const hw::BlockReport& report) {
  std::map<std::string, std::uint64_t> values;
  for (const hw::Counter& counter : report.counters) values[counter.name] = counter.value;
  if (report.time) {
    values["busy"] = report.time->busy;
    for (const auto& stall : report.time->stalled) values["stalled." + stall.cause] = stall.time;
    values["idle"] = report.time->idle;
    values["total"] = report.time->total;
  }
  for (const hw::BlockReport& part : report.parts) {
    for (const auto& [name, value] : values_of(part)) values[part.name + "." + name] = value;
  }
  return values;
}

}  // namespace systole::test
