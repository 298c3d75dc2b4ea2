#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <systemc>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/memory/cache_tags.h"
#include "tlm/common/signals.h"

namespace systole::tlm_model {

class DmaPort;

/// The address translation that DMA ports share: a fully associative table of pages, the least
/// recently used one making room, and one walker that reads the page table in memory, over the bus.
/// Virtual and physical addresses are the same here: what counts is the time.
///
/// A port asks only for a page other than its last one. With the cycle in which it asks:
///
///     hit:  known hit_cycles later, but not before the walk for it has ended
///     miss: then the walker, once it is free, takes miss_cycles and, if the page is not in the
///           direct-mapped second table either, walk_reads reads of 8 bytes, each after the answer
///           to the one before
class Tlb {
 public:
  /// For a machine that has one. The page table is at the end of its DRAM.
  explicit Tlb(const hw::Machine& machine);

  struct Answer {
    bool hit;
    std::uint64_t cycle;  ///< in which the address is known
  };
  /// `walker`: reads on behalf of the port that asks, and of no other thread. Waits as far as the
  /// walker's reads do, and while another port walks for the page or has the walker. Call it from
  /// an SC_THREAD.
  Answer translate(std::uint64_t page, std::uint64_t cycle, DmaPort& walker);

  /// Adds signals below the path: what the table does, for which page, and its misses so far.
  void watch(SignalRecorder& recorder, const std::string& path, const Clock& clock);

  [[nodiscard]] std::uint64_t page_of(std::uint64_t address) const noexcept {
    return address / params_.page_bytes;
  }

 private:
  /// Address of the entry for `page` in the table of a level, 0 the leaves.
  [[nodiscard]] std::uint64_t entry_address(std::uint64_t page, std::uint32_t level) const;
  /// Cycle in which the walk for a page ends that begins in cycle `begin` at the earliest.
  std::uint64_t walk(std::uint64_t page, std::uint64_t begin, DmaPort& walker);

  const hw::Machine::Tlb params_;
  const std::uint64_t capacity_;
  hw::CacheTags table_;
  std::optional<hw::CacheTags> second_;
  struct Known {
    std::uint64_t page = 0;
    std::uint64_t from = 0;  ///< cycle in which the walk for it ended, unless
    bool is_walked = false;  ///< it has not
  };
  std::vector<Known> known_;       ///< by entry of the table
  std::uint64_t walker_free_ = 0;  ///< cycle
  bool walks_ = false;             ///< a port has the walker
  sc_core::sc_event walked_;
  struct Signals {
    SignalRecorder* recorder;
    const Clock* clock;
    SignalRecorder::Signal state, page, misses;
  };
  std::optional<Signals> signals_;  ///< only while a waveform is recorded
  void show(std::uint64_t page, std::uint64_t from, const Answer& answer) const;
};

}  // namespace systole::tlm_model
