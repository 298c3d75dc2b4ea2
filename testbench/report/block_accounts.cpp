#include "testbench/report/block_accounts.h"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace systole::testbench {
namespace {

constexpr std::string_view kStalled = "stalled.";
constexpr std::string_view kTotal = "total";

bool begins_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

/// False if `name` is none of the parts of a timeline.
bool set_time(BlockAccounts& account, std::string_view name, const hw::Counter& counter) {
  if (name == "busy") {
    account.busy = counter.value;
  } else if (name == "idle") {
    account.idle = counter.value;
  } else if (name == kTotal) {
    account.total = counter.value;
  } else if (begins_with(name, kStalled)) {
    account.stalled.emplace_back(name.substr(kStalled.size()), counter.value);
  } else {
    return false;
  }
  account.unit = counter.unit;
  return true;
}

/// Prefixes, without the last dot, of the timelines among the counters, in their order.
std::vector<std::string> parts_of(const std::vector<hw::Counter>& counters) {
  const std::string ending = "." + std::string(kTotal);
  std::vector<std::string> parts;
  for (const hw::Counter& counter : counters) {
    const std::size_t size = counter.name.size();
    if (size <= ending.size() || counter.name.substr(size - ending.size()) != ending) continue;
    parts.push_back(counter.name.substr(0, size - ending.size()));
  }
  return parts;
}

}  // namespace

std::uint64_t BlockAccounts::stalled_total() const {
  return std::accumulate(stalled.begin(), stalled.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& cause) { return sum + cause.second; });
}

AccountTable account_table(const std::vector<tlm_model::BlockReport>& reports) {
  AccountTable table;
  for (const tlm_model::BlockReport& report : reports) {
    std::vector<BlockAccounts> parts;
    if (!report.time.empty()) {
      BlockAccounts& whole = parts.emplace_back();
      for (const hw::Counter& counter : report.time) set_time(whole, counter.name, counter);
    }
    const std::size_t first = parts.size();
    const std::vector<std::string> prefixes = parts_of(report.counters);
    for (const std::string& prefix : prefixes) parts.emplace_back().name = "." + prefix;

    for (hw::Counter counter : report.counters) {
      const auto owner = std::find_if(prefixes.begin(), prefixes.end(), [&](const auto& prefix) {
        return begins_with(counter.name, prefix + ".");
      });
      if (owner != prefixes.end()) {
        const auto index = static_cast<std::size_t>(owner - prefixes.begin());
        BlockAccounts& part = parts[first + index];
        counter.name.erase(0, owner->size() + 1);
        if (!set_time(part, counter.name, counter)) part.counters.push_back(std::move(counter));
      } else if (first != 0) {
        parts.front().counters.push_back(std::move(counter));
      } else {
        table.counters[report.name].push_back(std::move(counter));
      }
    }
    for (BlockAccounts& part : parts) {
      part.name = report.name + part.name;
      table.blocks.push_back(std::move(part));
    }
  }
  return table;
}

}  // namespace systole::testbench
