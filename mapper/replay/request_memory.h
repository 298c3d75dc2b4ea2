#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/calendar.h"
#include "hw/dma/request_cut.h"
#include "hw/machine/machine.h"
#include "hw/memory/dram_timing.h"
#include "hw/memory/fixed_memory.h"
#include "hw/noc/mesh_nodes.h"
#include "mapper/replay/replay_ports.h"

namespace systole::mapper {

/// System bus and main memory request by request, in whole cycles: what tlm/bus/ and tlm/memory/ do
/// with time, for a replay that is exact. The order of the calls is the order of service.
class RequestMemory {
 public:
  explicit RequestMemory(const hw::Machine& machine);

  /// Whether all that is between a port and memory is modelled: no L2 cache, no TLB, no mesh.
  [[nodiscard]] static bool models(const hw::Machine& machine) {
    return machine.l2.kib == 0 && machine.tlb.entries == 0 && !hw::has_mesh(machine);
  }

  /// Cycle of the core in which a request that its port issues in cycle `issue` is done.
  [[nodiscard]] std::uint64_t serve(bool write, std::uint64_t address, std::uint64_t bytes,
                                    std::uint64_t issue);
  /// As the first inference of a run begins (tlm/host/host.h): the host finds the core, writes
  /// the program's address, the rows of the input, and starts the core. Returns the cycle of the
  /// start. Before any request is served.
  [[nodiscard]] std::uint64_t start(const hw::Machine::Host& host, ReplayRows input);
  /// No request will issue before that cycle any more. Must not go backwards.
  void retire(std::uint64_t cycle);

 private:
  /// Edges of a clock, as tlm/common/time.h has them.
  struct Edges {
    std::uint64_t mhz;
    [[nodiscard]] std::uint64_t ps(std::uint64_t cycle) const { return cycle * 1'000'000 / mhz; }
    [[nodiscard]] std::uint64_t cycle(std::uint64_t ps) const {
      return (ps * mhz + 999'999) / 1'000'000;
    }
  };

  /// A request that is wanted at `ps`, and whose target answers with the time when it is done if
  /// the request is there at some time, all in ps.
  template <typename Target>
  std::uint64_t pass(bool write, std::uint64_t address, std::uint64_t bytes, std::uint64_t ps,
                     const Target& target);
  std::uint64_t access(bool write, std::uint64_t address, std::uint64_t bytes, std::uint64_t ps);

  Edges core_, bus_;
  std::uint64_t width_, request_latency_, response_latency_;
  hw::Calendar request_, write_data_, read_data_, write_response_;
  hw::DramTiming dram_;
  std::optional<hw::FixedMemory> fixed_;
};

/// A port of a RequestMemory: the contract of tlm/dma/request_dma.h.
class RequestPort {
 public:
  RequestPort(const hw::Machine& machine, std::uint32_t outstanding)
      : in_order_(machine.dma.slots == hw::SlotOrder::kIssue), done_(outstanding, 0) {}

  /// No request issues before this cycle.
  void hold_until(std::uint64_t cycle) { next_issue_ = std::max(next_issue_, cycle); }
  /// First cycle after the last issued request.
  [[nodiscard]] std::uint64_t next_issue() const { return next_issue_; }
  /// Cycle in which the next request finds a slot.
  [[nodiscard]] std::uint64_t find_slot() {
    if (!in_order_) {
      slot_ =
          static_cast<std::size_t>(std::min_element(done_.begin(), done_.end()) - done_.begin());
    }
    return std::max(next_issue_, done_[slot_]);
  }
  /// That is not final yet: the request in that slot so far, as take_slot() was told.
  [[nodiscard]] std::optional<std::uint64_t> placing() const {
    return unsettled_ == 0 ? std::nullopt : placing_[slot_];
  }
  /// It is where it belongs in that cycle, or not before it.
  void settle(std::uint64_t cycle, bool is_final) {
    done_[slot_] = cycle;
    if (!is_final) return;
    placing_[slot_].reset();
    --unsettled_;
  }
  /// The request of that slot is issued, and done, in these cycles. `placing`: the slot may be free
  /// later, which is asked of this request.
  void take_slot(std::uint64_t issue, std::uint64_t done,
                 std::optional<std::uint64_t> placing = std::nullopt) {
    done_[slot_] = done;
    next_issue_ = issue + 1;
    if (placing) {
      placing_.resize(done_.size());
      placing_[slot_] = placing;
      ++unsettled_;
    }
    if (in_order_ && ++slot_ == done_.size()) slot_ = 0;
  }

 private:
  bool in_order_;
  std::vector<std::uint64_t> done_;  ///< by slot: cycle in which its last request is
  std::vector<std::optional<std::uint64_t>> placing_;  ///< by slot
  std::size_t unsettled_ = 0;                          ///< of these
  std::size_t slot_ = 0;
  std::uint64_t next_issue_ = 0;
};

}  // namespace systole::mapper
