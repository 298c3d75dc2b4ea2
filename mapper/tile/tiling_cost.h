#pragma once

#include <cstdint>
#include <optional>

#include "hw/machine/machine.h"
#include "mapper/tile/stream_plan.h"
#include "mapper/tile/tiling.h"

namespace systole::mapper {

/// The mapper's cost model: max(compute, memory, post-op, turnaround) + what the first and last
/// tile expose.
class TilingCost {
 public:
  /// Both outlive this object.
  TilingCost(const hw::Machine& machine, const TilingProblem& problem);

  /// Whether a C tile fits the accumulator and a tile of each operand the scratchpad; double
  /// buffered, two of each.
  [[nodiscard]] bool fits(const Tiling& t) const { return may_fit(t) && plan(t).has_value(); }
  /// Fills in what the tiling is expected to take.
  void evaluate(Tiling& t) const { evaluate(t, stream_plan(machine_, problem_, t), shape(t)); }
  /// Both at once. False, and no change, if it does not fit.
  [[nodiscard]] bool evaluate_if_fits(Tiling& t) const;
  /// Whether the C tile and one tile of each operand fit in any variant; of m, n, k and c_cols
  /// only.
  [[nodiscard]] bool may_fit(const Tiling& t) const;
  /// The same of variants with double buffers, which need two tiles of each operand at least.
  [[nodiscard]] bool may_fit_twice(const Tiling& t) const;

  /// What depends on the reads in flight. No variant with double buffers takes fewer cycles than
  /// `least`, none with a single result that leaves as a whole fewer than `least_of_one_result`.
  struct Loading {
    double fetch;  ///< cycles to load the commands
    double least, least_of_one_result;
    double memory;            ///< cycles to move everything once
    double a_again, b_again;  ///< cycles to load all of A, or B, once more, at least
    [[nodiscard]] double least_of(const Tiling& t) const {
      return t.two_results || t.in_parts ? least : least_of_one_result;
    }
  };
  /// What depends on m, n, k and c_cols (and `unrolled`) only: the same for all variants.
  struct Shape {
    std::uint64_t m_tiles, c_tiles, n_tiles, k_tiles;
    std::uint64_t array_cycles, b_bytes;
    double store, postop;          ///< cycles
    std::uint64_t a_tile, b_tile;  ///< bytes on chip at least; 0: of what is there anyway
    double turnaround;             ///< cycles of the array between all C tiles
    Loading loading, cautious;     ///< with all and with half of the reads in flight
  };
  [[nodiscard]] Shape shape(const Tiling& t) const { return shape(t, array_cycles(t)); }
  /// The same with the cycles of the array alone, which are asked for first: most sizes fail there.
  [[nodiscard]] Shape shape(const Tiling& t, std::uint64_t array_cycles) const;
  [[nodiscard]] std::uint64_t array_cycles(const Tiling& t) const;
  /// The same as without its shape, of a tiling that may_fit().
  [[nodiscard]] bool evaluate_if_fits(Tiling& t, const Shape& shape) const;
  /// What it does in two steps. Nothing if a tiling that may_fit() does not fit.
  [[nodiscard]] std::optional<StreamPlan> plan(const Tiling& t) const;
  void evaluate(Tiling& t, const StreamPlan& plan, const Shape& shape) const;
  /// Cycles that a variant takes at least, by what it loads again for want of room, with all and
  /// with half of the reads in flight.
  struct Least {
    double cycles, cautious;
  };
  [[nodiscard]] Least least_of(const Tiling& t, const Shape& shape) const;
  /// Whether its flags mean something, and not what others say without them.
  [[nodiscard]] bool is_distinct(const Tiling& t) const;

 private:
  /// Cycles of the array for a command.
  [[nodiscard]] std::uint64_t product_cycles(std::uint64_t m, std::uint64_t n,
                                             std::uint64_t k) const;
  [[nodiscard]] Loading loading(const Tiling& t, const Shape& shape, const DmaRate& rate) const;
  /// Of variants that load so much, in two results or in one.
  [[nodiscard]] double least_cycles(const Shape& shape, double memory, bool one_result) const;
  /// Bytes to load of each kind, and cycles of the load stages of A.
  struct Loads {
    std::uint64_t a, b, parameters, pre;
  };
  /// Bytes if A and B are loaded so many times, parameters of either chain as often.
  [[nodiscard]] Loads loads(const Shape& shape, double a_times, double pre_times, double b_times,
                            double parameter_times) const;
  /// Cycles to load tiles of A, and of B.
  [[nodiscard]] double a_time(const DmaRate& rate, const Tiling& t, std::uint64_t bytes) const;
  [[nodiscard]] double b_time(const DmaRate& rate, const Tiling& t, std::uint64_t bytes) const;
  /// What an evaluated tiling takes if loads come in at `rate`.
  [[nodiscard]] std::uint64_t cycles(const Tiling& t, const StreamPlan& plan, const Shape& shape,
                                     const Loads& loads, const DmaRate& rate,
                                     const Loading& loading) const;
  /// Whether tensor operands of `bytes` per element fit their room in tiles of `cols` columns of
  /// `all`.
  [[nodiscard]] bool operands_fit(std::uint64_t cols, std::uint64_t bytes, std::uint64_t all) const;
  /// Cycles of parts that leave by themselves: for which the array waits for their places, and one
  /// after the other.
  struct PartTimes {
    double wait = 0, leave = 0;
  };
  [[nodiscard]] PartTimes part_times(const Tiling& t, const Shape& shape) const;
  /// How often A and B are loaded with so many slots for their tiles: the more, the less often.
  [[nodiscard]] double a_times(const Tiling& t, const Shape& shape, std::uint64_t slots) const;
  [[nodiscard]] static double b_times(const Tiling& t, const Shape& shape, std::uint64_t slots);
  /// The same of tiles that are swept so many times through so many slots.
  [[nodiscard]] static double sweep_loads(const Tiling& t, std::uint64_t tiles,
                                          std::uint64_t sweeps, std::uint64_t slots,
                                          std::uint64_t group);
  /// Bytes of B in memory: tiles of weights are stored with their padding.
  [[nodiscard]] std::uint64_t b_bytes(const Tiling& t) const;
  /// Bytes that tiles of A, and of B, have one after the other in memory.
  [[nodiscard]] std::uint64_t a_run(const Tiling& t) const;
  [[nodiscard]] std::uint64_t b_run(const Tiling& t) const;
  /// Cycles that loading `bytes` in such runs once more takes at least, however often it is done.
  [[nodiscard]] double again(const DmaRate& rate, std::uint64_t bytes, std::uint64_t run) const;
  /// Cycles of a request, whatever its bytes take.
  [[nodiscard]] double request_cycles(const DmaRate& rate) const;
  /// Cycles to move `bytes` that lie in runs of `run` bytes, for which so many rows of the DRAM are
  /// opened.
  [[nodiscard]] double time(const DmaRate& rate, std::uint64_t bytes, std::uint64_t run,
                            double opened = 0) const;
  /// Rows of the DRAM to open for so many runs of A.
  [[nodiscard]] double a_opened(std::uint64_t bytes, std::uint64_t run) const;

  const hw::Machine& machine_;
  const TilingProblem& problem_;
  DmaRate load_rate_, cautious_rate_, store_rate_;
  double burst_cycles_;  ///< that a request takes of the memory at least, however short it is
};

}  // namespace systole::mapper
