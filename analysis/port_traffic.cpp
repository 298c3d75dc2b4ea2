#include "analysis/port_traffic.h"

#include <algorithm>
#include <numeric>

#include "base/round.h"
#include "hw/memory/fixed_memory.h"

namespace systole::analysis {
PortTraffic::PortTraffic(const hw::Machine& machine)
    : request_(machine.dma.request_bytes),
      beat_(machine.bus.width_bytes),
      burst_(hw::memory_grain(machine)) {}

void PortTraffic::add_rows(std::uint64_t address, std::uint64_t pitch, std::uint64_t count,
                           std::uint64_t bytes) {
  if (bytes == 0) return;
  // After so many rows they are cut in the same places again.
  const std::uint64_t grain = std::lcm(request_, burst_);
  const std::uint64_t period = std::min(count, grain / std::gcd(pitch, grain));
  for (std::uint64_t row = 0; row < period; ++row) {
    const std::uint64_t begin = address + row * pitch;
    add_row(begin, begin + bytes, (count - row + period - 1) / period);
  }
}

void PortTraffic::add_row(std::uint64_t begin, std::uint64_t end, std::uint64_t rows) {
  const auto piece = [&](std::uint64_t from, std::uint64_t to, std::uint64_t times) {
    times *= rows;
    beats_ += times * blocks_touched(from, to - from, beat_);
    bursts_ += times * blocks_touched(from, to - from, burst_);
  };
  const std::uint64_t first_end = std::min(end, (begin / request_ + 1) * request_);
  piece(begin, first_end, 1);
  if (const std::uint64_t last = end / request_ * request_; last >= first_end) {
    piece(first_end, first_end + request_, (last - first_end) / request_);
    if (end > last) piece(last, end, 1);
  }
  requests_ += rows * blocks_touched(begin, end - begin, request_);
  bytes_ += rows * (end - begin);
}

}  // namespace systole::analysis
