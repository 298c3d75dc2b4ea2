#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/accounting.h"
#include "base/round.h"
#include "hw/machine/machine.h"

namespace systole::hw {

/// Whether requests go to a FixedMemory, not to a DRAM.
[[nodiscard]] inline bool has_fixed_memory(const Machine& machine) {
  return machine.memory.model == MemoryModel::kFixed;
}

/// Bytes that main memory moves at most in a microsecond, whatever its model.
[[nodiscard]] double memory_rate(const Machine& machine);

/// Bytes that main memory moves as a whole, also for a part of them: a burst of the DRAM, or a
/// beat.
[[nodiscard]] std::uint64_t memory_grain(const Machine& machine);

/// A memory without banks: every answer may begin the same number of cycles after its request.
///
/// A pure state machine in cycles of the bus clock. Requests are given in the order in which they
/// arrive. Reads and writes share one queue and are answered strictly in its order:
/// - the first beat of an answer is `latency` cycles after the last beat of its request or later,
///   and read_beat_cycles after the last beat of the answer before it or later;
/// - a read returns the words of the bus of which it has a byte, read_beat_cycles apart; a write
///   returns one beat;
/// - at most `queue` requests wait for the end of their answers. A further one is accepted in the
///   cycle after the last answer beat of the oldest, and its latency counts from there.
class FixedMemory {
 public:
  /// Why no answer beat moves although a request waits.
  enum Cause : std::size_t { kLatency, kInterval };

  struct Answer {
    std::uint64_t first = 0, last = 0;  ///< cycles of the beats
  };

  /// Answers in beats of `width_bytes`. Throws std::invalid_argument if the width, the interval or
  /// the queue is 0.
  FixedMemory(const Machine::Memory& params, std::uint32_t width_bytes);

  /// Takes a request of `bytes` > 0 whose last beat arrives in `cycle`.
  Answer accept(std::uint64_t cycle, bool write, std::uint64_t address, std::uint64_t bytes);

  /// Beats of a read.
  [[nodiscard]] std::uint64_t beats(std::uint64_t address, std::uint64_t bytes) const noexcept {
    return blocks_touched(address, bytes, width_);
  }

  /// From cycle `now` on, time counts in the account or it does not.
  void set_counting(bool on, std::uint64_t now) { answers_.set_counting(on, now); }
  /// Closes the account at cycle `total`, the end of the run, or after the last answer if the run
  /// was cut off before that.
  void finish(std::uint64_t total);

  /// Tells `watch` of the answers to come. It has to outlive them.
  void watch(AccountWatch& watch) noexcept { answers_.watch(watch); }

  [[nodiscard]] const BlockAccount& answers() const noexcept { return answers_; }

  /// One part, the answers, in cycles of the bus.
  [[nodiscard]] BlockReport report(std::string name) const;

 private:
  Machine::Memory params_;
  std::uint64_t width_;
  std::vector<std::uint64_t> accepted_from_;  ///< ring: when the place in the queue is free again
  std::size_t oldest_ = 0;
  std::uint64_t next_first_ = 0;  ///< earliest first beat, after the answers so far
  BlockAccount answers_;
  std::uint64_t reads_ = 0, writes_ = 0, read_bytes_ = 0, written_bytes_ = 0;
};

}  // namespace systole::hw
