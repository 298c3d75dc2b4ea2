#include "hw/dma/sum_loads.h"

namespace systole::hw {
namespace {

/// From the cycle with which a tile is there to its first row: the last beat is written, then the
/// first vector is read.
constexpr std::uint64_t kFirstRow = 2;

}  // namespace

SumLoads::SumLoads(const std::vector<SumWrite>& array, std::uint64_t lanes) : lanes_(lanes) {
  for (const SumWrite& write : array) busy_.insert(write.cycle);
}

std::uint64_t SumLoads::run(std::uint64_t there, std::uint64_t m, std::uint64_t n, std::uint64_t c,
                            std::uint64_t c_pitch) {
  std::uint64_t cycle = there + kFirstRow;
  for (std::uint64_t row = 0; row < m; ++row) {
    for (std::uint64_t column = 0; column < n; column += lanes_) {
      while (busy_.count(cycle) != 0) ++cycle;
      writes_.push_back({cycle++, c + row * c_pitch + column, false});
    }
  }
  return cycle;
}

}  // namespace systole::hw
