#pragma once

#include <array>
#include <cstdint>

#include "hw/loop/loop_types.h"

namespace systole::hw::loop {

/// What an unroller has to know of the machine. Rows are those of a local memory.
struct UnrollerShape {
  std::uint32_t side = 16;            ///< of a block: rows and columns of the array
  std::uint32_t blocks_per_load = 4;  ///< of one byte elements that a load or store moves
  std::uint32_t scratchpad_rows = 16384, accumulator_rows = 1024;
  std::array<std::uint32_t, kClasses> entries{8, 16, 4};  ///< of the reservation station
};

/// Gemmini's loop unroller for products (LoopMatmul): makes the loads, preloads, computes and
/// stores of a configured loop, at most one a cycle, with two loops in flight. Each loop has half
/// of the scratchpad, A from its begin and B up to its end, and results alternate between the
/// halves of the accumulator.
///
/// Five machines run side by side, each through its own loop nest: loads of A (k outside, m inside,
/// blocks_per_load blocks of k at a time), of B (k, n), of D (n, m), computes (k, n, m; a preload
/// and a compute for each block) and stores (n, m). When several have a command, stores go first,
/// then computes, D, A and B; between A and B the one that lags in k. A compute waits until
/// its operands' loads were made, a store until the last compute of its blocks was. A machine stops
/// while as many of its commands are in the reservation station as that has entries.
///
/// Rows of B are loaded with all of a block's rows even where k ends inside it: the condition that
/// would shorten the last block compares a bound with itself less one.
class Unroller {
 public:
  explicit Unroller(const UnrollerShape& shape);

  /// Whether a loop can take its configuration.
  [[nodiscard]] bool can_configure() const { return !loops_[configured_loop()].configured; }
  [[nodiscard]] bool busy() const { return loops_[0].configured || loops_[1].configured; }
  /// The command that would be made in this cycle; null: none.
  [[nodiscard]] const Command* next();
  /// The end of a cycle: whether the command was taken, which commands ended
  /// (ReservationStation::end_cycle()), and a loop whose last command of configuration has come, or
  /// null.
  void end_cycle(bool taken, const std::array<std::uint32_t, kClasses>& ended,
                 const LoopCall* configured);
  /// Loops that have made all their commands.
  [[nodiscard]] std::uint64_t finished() const noexcept { return finished_; }

 private:
  enum Part : std::uint8_t { kA, kB, kD, kExecute, kStore, kParts };
  struct Loop {
    LoopCall call;
    bool configured = false, running = false;
    std::array<bool, kParts> started{}, completed{};
  };
  /// One of the five machines.
  struct Nest {
    bool active = false;
    bool computes = false;  ///< kExecute: the preload was made
    std::uint8_t loop = 0;
    std::uint32_t m = 0, n = 0, k = 0;  ///< blocks
    std::uint32_t base = 0;             ///< first row of the results
    LoopCall call;
  };

  [[nodiscard]] std::uint8_t configured_loop() const {
    return loops_[head_].configured ? 1 - head_ : head_;
  }
  [[nodiscard]] bool loaded(Part part, std::uint8_t loop) const {
    return nests_[part].loop != loop || !nests_[part].active;
  }
  [[nodiscard]] bool full(Class kind) const { return in_station_[kind] >= shape_.entries[kind]; }
  [[nodiscard]] std::uint32_t half(const Nest& nest) const {
    return nest.loop * (shape_.scratchpad_rows / 2);
  }
  [[nodiscard]] std::uint32_t weights(const Nest& nest) const {
    return half(nest) + shape_.scratchpad_rows / 2 - nest.call.k * nest.call.n * shape_.side;
  }
  [[nodiscard]] std::uint32_t rows_of(const Nest& nest) const {
    return shape_.side - (nest.m + 1 == nest.call.m ? nest.call.m_pad : 0);
  }
  bool make_store();
  bool make_compute();
  bool make_load_d();
  bool make_load_a();
  bool make_load_b();
  void advance(Part part);

  const UnrollerShape shape_;
  std::array<Loop, 2> loops_;
  std::uint8_t head_ = 0;
  std::array<Nest, kParts> nests_;
  std::array<std::uint32_t, kParts> next_base_{};
  std::array<std::uint32_t, kClasses> in_station_{};
  Part made_ = kParts;
  Command command_;
  std::uint64_t finished_ = 0;
};

}  // namespace systole::hw::loop
