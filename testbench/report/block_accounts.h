#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/accounting.h"
#include "tlm/common/report.h"

namespace systole::testbench {

/// Where the time of one thing went that does one piece of work after another:
/// busy + all of stalled + idle == total.
struct BlockAccounts {
  std::string name;  ///< "array", or "dram.channel0" for a part of a block
  std::string unit;  ///< of the times: "cycles" (of the block's own clock) or "ps"
  std::uint64_t busy = 0;
  std::vector<std::pair<std::string, std::uint64_t>> stalled;  ///< by cause
  std::uint64_t idle = 0;
  std::uint64_t total = 0;
  std::vector<hw::Counter> counters;

  [[nodiscard]] std::uint64_t stalled_total() const;
};

struct AccountTable {
  std::vector<BlockAccounts> blocks;
  /// By block: what belongs to a whole block whose parts have the accounts.
  std::map<std::string, std::vector<hw::Counter>> counters;
};

/// Takes reports apart such that every timeline stands alone: counters named `PART.busy`,
/// `PART.stalled.CAUSE`, `PART.idle` and `PART.total` become a block `BLOCK.PART`, with all
/// counters below `PART.`.
[[nodiscard]] AccountTable account_table(const std::vector<tlm_model::BlockReport>& reports);

}  // namespace systole::testbench
