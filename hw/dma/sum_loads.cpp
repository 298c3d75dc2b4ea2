#include "hw/dma/sum_loads.h"

#include <algorithm>

namespace systole::hw {

SumLoads::SumLoads(const SumMemories& size, const std::vector<SumWrite>& array,
                   const std::vector<LoadedSums>& beats)
    : size_(size), array_(array) {
  std::uint64_t free = 0;
  for (const LoadedSums& beat : beats) {
    beats_.push_back(beat.cycle);
    writes_.push_back({written(beat, free), beat.first, beat.last});
    free = writes_.back().cycle + 1;
  }
}

std::uint64_t SumLoads::written(const LoadedSums& beat, std::uint64_t free) const {
  std::uint64_t cycle = std::max(beat.cycle + 1, free);
  auto row = std::lower_bound(array_.begin(), array_.end(), cycle,
                              [](const SumWrite& a, std::uint64_t at) { return a.cycle < at; });
  for (; row != array_.end() && row->cycle == cycle; ++row, ++cycle) {
    if (!size_.meet(beat.sums(), size_.vector(row->at))) break;
  }
  return cycle;
}

std::uint64_t SumLoads::placed(const LoadedSums& beat) const {
  const auto before = std::lower_bound(beats_.begin(), beats_.end(), beat.cycle) - beats_.begin();
  const std::uint64_t free =
      before == 0 ? 0 : writes_[static_cast<std::size_t>(before) - 1].cycle + 1;
  return written(beat, free) + 1;
}

}  // namespace systole::hw
