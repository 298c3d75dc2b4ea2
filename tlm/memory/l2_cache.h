#pragma once

#include <tlm_utils/simple_initiator_socket.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <systemc>
#include <tlm>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/memory/cache.h"
#include "tlm/common/signals.h"
#include "tlm/common/time.h"
#include "tlm/memory/memory_target.h"

namespace systole::tlm_model {

/// The cache between the system bus and main memory: a TLM-2.0 target (see MemoryTarget) with the
/// timing of hw::Cache at the bus's clock. It holds the bytes of its lines: memory sees them when
/// they are written back, and a debug access finds them here.
///
/// A request that spans several lines is an access to each, all arriving together. Lines move by
/// b_transport; an error answer to one is reported as an error. Where initiators have direct access
/// (leave_values()) lines have their time here, and their bytes in memory alone.
class L2Cache : public MemoryTarget, public Watched, private hw::LineMemory {
 public:
  tlm_utils::simple_initiator_socket<L2Cache> memory{"memory"};

  /// For a memory of `capacity` bytes. Throws std::invalid_argument on bad parameters.
  L2Cache(const sc_core::sc_module_name& name, const hw::Machine& machine, std::uint64_t capacity,
          bool functional = true);

  /// Bytes from `first` on, which begins a line, are those of initiators that read and write them
  /// by direct access to the memory behind. To be called before the simulation begins.
  void leave_values(std::uint64_t first) { values_end_ = std::min(values_end_, first); }

  /// From `now` on, time counts in the accounts or it does not.
  void set_counting(bool on, const sc_core::sc_time& now) {
    cache_.set_counting(on, clock_.cycle_from(now));
  }
  /// Ends the accounts at `total`, the end of the run.
  void finish(const sc_core::sc_time& total) { cache_.finish(clock_.cycle_from(total)); }

  [[nodiscard]] const hw::Cache& cache() const noexcept { return cache_; }

  void watch(SignalRecorder& recorder) override;

  [[nodiscard]] hw::BlockReport report() const { return with_rejected(cache_.report(basename())); }

 private:
  class Signals;

  // MemoryTarget
  void move(bool write, RequestBatch::Request& request) override;
  void copy(bool write, std::uint64_t address, unsigned char* data, std::uint64_t bytes) override;
  bool offer(std::uint64_t address, tlm::tlm_dmi& dmi) override;
  // hw::LineMemory
  void set_aside(hw::CacheTags::Slot slot) override;
  std::uint64_t fill(std::uint64_t line, hw::CacheTags::Slot slot, std::uint64_t cycle) override;
  std::uint64_t write_back(std::uint64_t line, std::uint64_t cycle) override;

  /// Moves a line from or to memory, sent in `cycle`, its bytes unless `data` is null. Returns the
  /// cycle in which it has arrived.
  std::uint64_t transport(tlm::tlm_command command, std::uint64_t line, unsigned char* data,
                          std::uint64_t cycle);
  /// Whether the bytes of a line are here while it is.
  [[nodiscard]] bool holds_values(std::uint64_t line) const {
    return functional() && line * line_bytes_ < values_end_;
  }
  [[nodiscard]] unsigned char* bytes_of(hw::CacheTags::Slot slot) {
    return lines_.data() + slot * line_bytes_;
  }

  const std::uint32_t line_bytes_;
  std::uint64_t values_end_;  ///< first byte whose lines have no values here
  const Clock clock_;
  hw::Cache cache_;
  std::vector<unsigned char> lines_;   ///< by slot
  std::vector<unsigned char> victim_;  ///< the line that was set aside
  tlm::tlm_generic_payload payload_;
  RequestBatch request_;  ///< of a line
  std::unique_ptr<hw::CacheWatch> signals_;
};

}  // namespace systole::tlm_model
