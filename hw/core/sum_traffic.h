#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "hw/array/sum_ports.h"
#include "hw/array/sum_reads.h"
#include "hw/core/operand_stream.h"
#include "hw/dma/sum_loads.h"

namespace systole::hw {

/// The memories of an accumulator cycle by cycle, as far as it is known what the array writes: the
/// contracts of hw::SumPorts and hw::SumLoads for whoever goes on in time.
class SumTraffic final : public SumReads {
 public:
  explicit SumTraffic(const Machine& machine);

  /// Somebody may wait: the array has stationary weights, and a memory has fewer ports than users
  /// in a cycle, which are the array's reads and writes, a load and a reader.
  [[nodiscard]] bool serves() const noexcept { return serves_; }

  /// Others have asked for the scratchpad's banks, as far as is known, before cycle `now`, and the
  /// array has advanced to it. Before any question, after each copy.
  void know(OperandStream& array, const BankService& banks, std::uint64_t now);

  [[nodiscard]] Free free(std::uint64_t from, std::uint64_t first,
                          std::uint64_t last) const override;
  [[nodiscard]] std::optional<bool> can_read(std::uint64_t cycle, std::uint64_t first,
                                             std::uint64_t last) const override;
  /// The cycle to which the array had advanced.
  [[nodiscard]] std::uint64_t known() const noexcept { return known_.now; }
  /// What happens in cycles before this one is known.
  [[nodiscard]] std::uint64_t known_before() const { return SumRuns::known_before(known_); }
  /// A reader asks for no cycles before this one; kNever: there is none.
  void keep_from(std::uint64_t cycle) noexcept { read_from_ = cycle; }

  static constexpr std::uint64_t kNever = SumRuns::kNever;
  /// The cycle, later than `now`, with which it is known what the array writes in a cycle.
  [[nodiscard]] static std::uint64_t known_at(std::uint64_t cycle, std::uint64_t now) {
    return std::max(now, cycle - std::min(cycle, SumRuns::kLater)) + 1;
  }
  /// Requests of loads, by the order in which they are added.
  using Request = std::uint64_t;
  /// The next request: `bytes` bytes from `address` of memory on, which come a beat of `beat` bytes
  /// a cycle, the last one in cycle `done`. They are elements of `element` bytes; the first is byte
  /// `to` of all that the accumulator could hold of them.
  Request add(std::uint64_t address, std::uint64_t bytes, std::uint64_t beat, std::uint64_t to,
              std::uint64_t element, std::uint64_t done);
  /// The cycle with which the sums of a request are in the accumulator, and whether that is final:
  /// if not, it is one before which they are not.
  struct Placed {
    std::uint64_t cycle = 0;
    bool is_final = false;
  };
  [[nodiscard]] Placed placed(Request request) const;

 private:
  /// A request whose beats wait in a queue.
  struct Queued {
    Request request = 0;
    std::uint64_t address = 0, bytes = 0, beat = 1;
    std::uint64_t to = 0, element = 1;
    std::uint64_t done = 0;  ///< cycle of its last beat
    std::uint64_t beats = 0;
    std::uint64_t not_before = 0;  ///< cycle of the next one: others have the sums until then

    /// The next one.
    [[nodiscard]] LoadedSums front() const {
      return {done - (beats - 1), to / element, (to + length() - 1) / element};
    }
    /// The cycle with which all are in the accumulator if nothing is in their way.
    [[nodiscard]] std::uint64_t placed() const { return done + kSumLoadCycles; }
    /// The first cycle in which the next one may be written.
    [[nodiscard]] std::uint64_t begins() const { return std::max(front().cycle + 1, not_before); }
    void pop() {
      const std::uint64_t bytes_of_beat = length();
      address += bytes_of_beat;
      to += bytes_of_beat;
      bytes -= bytes_of_beat;
      --beats;
    }

   private:
    [[nodiscard]] std::uint64_t length() const { return std::min(beat - address % beat, bytes); }
  };
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> banks_of(std::uint64_t first,
                                                                 std::uint64_t last) const;
  [[nodiscard]] const SumRuns::Sums& sums_in(std::uint64_t cycle) const {
    return array_->steps().sums().in(cycle, known_, *banks_);
  }
  /// Until when the array leaves the banks of sums alone, from a cycle on.
  [[nodiscard]] Free left_alone(std::uint64_t from, std::uint64_t first, std::uint64_t last) const;
  void place();
  /// Whether it is known that the array leaves the banks of sums alone from a cycle on until
  /// another one.
  [[nodiscard]] bool is_free(std::uint64_t from, std::uint64_t to, std::uint64_t first,
                             std::uint64_t last);
  /// The same for all that is left of a request, so that nothing else waits for it either.
  [[nodiscard]] bool is_free(const Queued& load);
  void keep_sums();

  bool serves_ = false;
  bool readers_wait_ = false;  ///< they have no port of their own
  SumMemories size_{};
  OperandStream* array_ = nullptr;
  const BankService* banks_ = nullptr;
  SumRuns::Known known_;
  std::uint64_t read_from_ = kNever;
  std::deque<Queued> loads_;   ///< in the order of their cycles
  std::uint64_t written_ = 0;  ///< the cycle after that in which the last one has been that waited
  /// The array does not write into these banks in these cycles.
  struct FreeBanks {
    std::uint64_t first = 1, last = 0, from = 0, until = 0;
  };
  FreeBanks free_;
  std::deque<LoadedSums> writes_;     ///< those of the last cycles, in their order
  Request requests_ = 0;              ///< added
  std::deque<std::uint64_t> placed_;  ///< of the last ones: cycles, 0 if that is not known
};

}  // namespace systole::hw
