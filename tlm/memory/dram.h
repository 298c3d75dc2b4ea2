#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <systemc>
#include <tlm>

#include "hw/machine/machine.h"
#include "hw/memory/dram_timing.h"
#include "hw/memory/fixed_memory.h"
#include "tlm/common/signals.h"
#include "tlm/common/stored_use.h"
#include "tlm/common/time.h"
#include "tlm/common/value_queue.h"
#include "tlm/memory/memory_target.h"

namespace systole::tlm_model {

/// Zero-initialised memory that costs host memory only where it has been touched.
class SparseMemory {
 public:
  /// `bytes` may be 0. Throws std::bad_alloc if the address space cannot be had.
  explicit SparseMemory(std::uint64_t bytes);
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;
  ~SparseMemory();

  [[nodiscard]] unsigned char* data() noexcept { return data_; }
  /// Bytes from `begin` to `end` are zeros again, and cost nothing but at the edges.
  void forget(std::uint64_t begin, std::uint64_t end);

 private:
  std::uint64_t size_;
  unsigned char* data_ = nullptr;
};

/// Main memory: a TLM-2.0 target (see MemoryTarget) with the timing of hw::DramTiming, or of
/// hw::FixedMemory if the machine has that, and zero-initialised contents that cost host memory
/// only where touched.
///
/// The bus stores and forwards what a read brings, which takes it a cycle for each beat but the
/// first. A fixed memory passes beats on as they come, unless to a cache: it has finished so many
/// cycles before its last beat.
class Dram : public MemoryTarget, public Watched {
 public:
  /// A memory that is not `functional` offers no DMI. Throws std::invalid_argument on bad
  /// parameters, std::bad_alloc if the host cannot provide the address space.
  Dram(const sc_core::sc_module_name& name, const hw::Machine::Dram& params,
       bool functional = true);
  /// The memory of a machine.
  Dram(const sc_core::sc_module_name& name, const hw::Machine& machine, bool functional);

  /// From `now` on, time counts in the accounts or it does not.
  void set_counting(bool on, const sc_core::sc_time& now);
  /// Ends the accounts at `total`, the end of the run.
  void finish(const sc_core::sc_time& total);

  [[nodiscard]] const hw::DramTiming& timing() const noexcept { return timing_; }

  void trace(sc_core::sc_trace_file* file) const override;
  void watch(SignalRecorder& recorder) override;
  /// Writes that wait in the DRAM's queue may have moved since, which the next request tells.
  [[nodiscard]] std::uint64_t settled_ps() const override {
    return timing_.settled(Watched::settled_ps());
  }

  /// Reports each use of its bytes, in cycles of the core's `clock`; both outlive the run.
  void observe(UseObserver& observer, const Clock& clock) noexcept {
    use_observer_ = &observer;
    core_clock_ = &clock;
  }
  /// Values are also read and written by the actions of this queue, which outlives the run, and
  /// their requests have no data.
  void share_values(ValueQueue& values) noexcept {
    values_ = &values;
    take_time_alone();
  }
  /// What is from `begin` to `end`, inside the memory, is not read any more: it becomes zeros.
  void forget(std::uint64_t begin, std::uint64_t end) {
    if (values_ != nullptr) values_->await();
    memory_.forget(begin, end);
  }
  /// The stored byte at an address below the capacity.
  [[nodiscard]] std::uint8_t& stored(std::uint64_t address) { return memory_.data()[address]; }

  /// Of the DRAM; a fixed memory reports as "memory".
  [[nodiscard]] hw::BlockReport report() const;

 private:
  void move(bool write, RequestBatch::Request& request) override;
  bool move_in_one(bool write, RequestBatch& batch) override;
  bool move_rows(bool write, RequestBatch& batch) override;
  void move_all(bool write, std::vector<RequestBatch::Request>& requests) override;
  /// Whether requests are whole bursts, if the first is, and nothing looks at each.
  [[nodiscard]] bool is_bursts(const RequestBatch::Request& first) const noexcept {
    const std::uint64_t burst = timing_.mapping().burst_bytes();
    return !fixed_ && use_observer_ == nullptr && first.bytes == burst &&
           (first.address & (burst - 1)) == 0;
  }
  /// Moves the time of a request from its arrival to its completion.
  void spend(bool write, RequestBatch::Request& request);
  void copy(bool write, std::uint64_t address, unsigned char* data, std::uint64_t bytes) override;
  bool offer(std::uint64_t address, tlm::tlm_dmi& dmi) override;

  hw::DramTiming timing_;
  std::optional<hw::FixedMemory> fixed_;
  const Clock clock_;  ///< of the fixed memory: the bus's
  const bool cached_;  ///< a cache waits for the last beat of its line
  SparseMemory memory_;
  std::unique_ptr<hw::DramWatch> signals_;  ///< of the DRAM's channels and banks
  std::unique_ptr<AccountSignal> answers_;  ///< of the fixed memory
  std::vector<std::uint64_t> times_;        ///< of requests of a burst each
  UseObserver* use_observer_ = nullptr;
  ValueQueue* values_ = nullptr;
  const Clock* core_clock_ = nullptr;
};

}  // namespace systole::tlm_model
