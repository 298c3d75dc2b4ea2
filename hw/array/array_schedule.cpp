#include "hw/array/array_schedule.h"

#include <algorithm>

namespace systole::hw {
namespace {

std::uint64_t array_tiles(std::uint64_t size, std::uint64_t tile) {
  return (size + tile - 1) / tile;
}

}  // namespace

ArraySchedule::ArraySchedule(const Machine::Array& array, std::uint64_t m, std::uint64_t n,
                             std::uint64_t k, bool preloaded, std::uint64_t exposed)
    : rows_(array.rows),
      streamed_(static_cast<std::int64_t>(array.dataflow == Dataflow::kWeightStationary ? m : k)),
      weight_stationary_(array.dataflow == Dataflow::kWeightStationary),
      alone_(array.overlap == ArrayOverlap::kNone),
      outer_(array_tiles(n, array.cols)),
      inner_(array_tiles(weight_stationary_ ? k : m, array.rows)) {
  const std::uint64_t streamed = weight_stationary_ ? m : k;
  const std::uint64_t skew = std::uint64_t{array.rows} + array.cols - 2;
  switch (array.overlap) {
    case ArrayOverlap::kNone:
      interval_ = streamed + skew + array.rows;
      break;
    case ArrayOverlap::kPreload:
      interval_ = streamed + skew;
      break;
    case ArrayOverlap::kFull:
      interval_ = std::max<std::uint64_t>(streamed, array.rows);
      break;
  }
  const bool ahead = preloaded && !alone_;
  first_ = (weight_stationary_ && !ahead ? rows_ : 0) + static_cast<std::int64_t>(exposed);
  result_delay_ = static_cast<std::int64_t>(weight_stationary_ ? skew + 1 : streamed + skew + 1);
}

std::int64_t ArraySchedule::weights_in_use(std::uint64_t fold) const noexcept {
  if (fold == 0 || alone_) return begin(fold);
  return begin(fold - 1) + std::max(streamed_, rows_);
}

std::int64_t ArraySchedule::weights(std::uint64_t fold) const noexcept {
  if (fold == 0 || alone_) return begin(fold) - rows_;
  return begin(fold - 1);
}

}  // namespace systole::hw
