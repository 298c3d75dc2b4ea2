#include "hw/array/array.h"

namespace systole::hw {
namespace {

std::uint64_t ceil_divide(std::uint64_t dividend, std::uint64_t divisor) {
  return dividend / divisor + (dividend % divisor != 0 ? 1 : 0);
}

/// The folds of one matmul and the phases of each of them, in cycles.
struct Folds {
  std::uint64_t count;
  std::uint64_t stream;   ///< T
  std::uint64_t preload;  ///< shift-in of the weights: R, or 0 if outputs are stationary
  std::uint64_t skew;     ///< R + C - 2
  std::uint64_t shift;    ///< shift-out of the results: R, or 0 if weights are stationary
};

Folds folds_of(const Machine::Array& array, std::uint64_t m, std::uint64_t n, std::uint64_t k) {
  if (m == 0 || n == 0 || k == 0) return {};
  const std::uint64_t rows = array.rows;
  const std::uint64_t cols = array.cols;
  const std::uint64_t skew = rows + cols - 2;
  const std::uint64_t across = ceil_divide(n, cols);
  if (array.dataflow == Dataflow::kWeightStationary) {
    return {ceil_divide(k, rows) * across, m, rows, skew, 0};
  }
  return {ceil_divide(m, rows) * across, k, 0, skew, rows};
}

}  // namespace

ArrayCycles array_cycles(const Machine::Array& array, std::uint64_t m, std::uint64_t n,
                         std::uint64_t k, bool preloaded) {
  const Folds folds = folds_of(array, m, n, k);
  if (folds.count == 0) return {};
  ArrayCycles cycles;
  cycles.folds = folds.count;
  cycles.stream = folds.count * folds.stream;
  const std::uint64_t first_preload = preloaded ? 0 : folds.preload;
  switch (array.overlap) {
    case ArrayOverlap::kNone:
      // A second set of weight registers is what `preloaded` would need.
      cycles.preload = folds.count * folds.preload;
      cycles.drain = folds.count * (folds.skew + folds.shift);
      cycles.fold_preload = folds.preload;
      cycles.fold_drain = folds.skew + folds.shift;
      cycles.interval = cycles.stream + cycles.preload + cycles.drain;
      cycles.latency = cycles.interval;
      return cycles;
    case ArrayOverlap::kPreload:
      cycles.preload = first_preload;
      cycles.drain = folds.count * folds.skew;
      cycles.fold_drain = folds.skew;
      cycles.interval = cycles.stream + cycles.preload + cycles.drain;
      cycles.latency = cycles.interval + folds.shift;
      return cycles;
    case ArrayOverlap::kFull:
      break;
  }
  // A fold shorter than the shift-in of the next weights, or the shift-out of the last results,
  // waits for it.
  const std::uint64_t shifting = folds.preload + folds.shift;
  const std::uint64_t bubble = shifting > folds.stream ? shifting - folds.stream : 0;
  const std::uint64_t bubbles = folds.count * bubble;
  const bool weights = folds.preload != 0;
  cycles.preload = first_preload + (weights ? bubbles : 0);
  cycles.drain = weights ? 0 : bubbles;
  (weights ? cycles.fold_preload : cycles.fold_drain) = bubble;
  cycles.interval = cycles.stream + cycles.preload + cycles.drain;
  // The last fold ends with its own skew and shift-out, not with the bubble before a successor.
  cycles.latency = cycles.interval - bubble + folds.skew + folds.shift;
  return cycles;
}

std::uint64_t lone_matmul_cycles(const Machine::Array& array, std::uint64_t m, std::uint64_t n,
                                 std::uint64_t k) {
  const std::uint64_t latency = array_cycles(array, m, n, k, false).latency;
  return latency == 0 ? 0 : latency - 1;
}

ArrayReads array_reads(const Machine::Array& array, std::uint64_t m, std::uint64_t n,
                       std::uint64_t k, Int4Operands int4) {
  const Folds folds = folds_of(array, m, n, stored_bytes(k, int4.a));
  const std::uint64_t a = folds.count * folds.stream, rows = stored_bytes(k, int4.b);
  if (array.dataflow == Dataflow::kOutputStationary) return {a, folds.count * rows};
  return {a, folds.count == 0 ? 0 : rows * ceil_divide(n, array.cols)};
}

}  // namespace systole::hw
