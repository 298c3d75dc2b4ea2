#include "hw/silicon/sram.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace systole::hw {
namespace {

// CACTI 7.0, 45 nm, transistors itrs-hp, 300 K, RAM of one bank, optimised as CACTI does unless
// told otherwise: `script/sram_points` makes these figures. A byte: mean of a read and a write.
constexpr std::array kPointKib = {1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0};
constexpr std::array kPointWords = {4.0, 16.0, 64.0};
using Points = std::array<std::array<double, kPointKib.size()>, kPointWords.size()>;

// CACTI finds no organisation for 64-byte words in 1 KiB: as 4 KiB, which costs more.
constexpr Points kBytePj = {{{0.3649, 0.7110, 1.841, 3.273, 5.598, 9.586, 19.13},
                             {0.2144, 0.4193, 0.8776, 1.937, 3.270, 6.452, 12.69},
                             {0.3896, 0.3896, 0.5915, 1.402, 2.672, 5.187, 11.16}}};
constexpr Points kMm2 = {{{0.003432, 0.01320, 0.05004, 0.1993, 0.8217, 3.192, 11.95},
                          {0.005318, 0.01428, 0.05070, 0.1880, 0.8659, 3.247, 12.53},
                          {0.03805, 0.03805, 0.07130, 0.2037, 1.074, 3.952, 15.67}}};

// Two and four ports, words of 16 bytes, over one port.
constexpr std::array kPortKib = {4.0, 64.0, 1024.0};
using PortPoints = std::array<std::array<double, kPortKib.size()>, 2>;
constexpr PortPoints kPortPj = {{{0.5252 / 0.4193, 2.475 / 1.937, 12.80 / 6.452},
                                 {0.7289 / 0.4193, 3.536 / 1.937, 32.19 / 6.452}}};
constexpr PortPoints kPortMm2 = {{{0.03078 / 0.01428, 0.3849 / 0.1880, 6.822 / 3.247},
                                  {0.07649 / 0.01428, 0.9811 / 0.1880, 17.78 / 3.247}}};

/// Straight between points in logarithms of both; past the last point as between the two before it,
/// ahead of the first one as the first.
template <std::size_t kCount>
double interpolate(const std::array<double, kCount>& xs, const std::array<double, kCount>& ys,
                   double x) {
  if (x <= xs.front()) return ys.front();
  std::size_t next = 1;
  while (next + 1 < kCount && xs[next] < x) ++next;
  const double part = std::log(x / xs[next - 1]) / std::log(xs[next] / xs[next - 1]);
  return ys[next - 1] * std::pow(ys[next] / ys[next - 1], part);
}

/// A word wider than CACTI's widest is memories in parallel, `macros` of them.
struct Macros {
  double count, kib, word_bytes;

  explicit Macros(const SramSize& size)
      : count(std::max(size.word_bytes / kPointWords.back(), 1.0)),
        kib(size.bytes / 1024 / count),
        word_bytes(std::clamp(size.word_bytes, kPointWords.front(), kPointWords.back())) {}

  [[nodiscard]] double of(const Points& points) const {
    std::array<double, kPointWords.size()> by_word{};
    for (std::size_t i = 0; i < by_word.size(); ++i)
      by_word[i] = interpolate(kPointKib, points[i], kib);
    return interpolate(kPointWords, by_word, word_bytes);
  }
};

/// One port, two, four; others between and past them as those.
double port_factor(const PortPoints& points, double kib, std::uint32_t ports) {
  const std::array factors = {1.0, interpolate(kPortKib, points[0], kib),
                              interpolate(kPortKib, points[1], kib)};
  return interpolate(std::array{1.0, 2.0, 4.0}, factors, ports);
}

double one_bank_mm2(const SramSize& size) {
  const Macros macros(size);
  // Below the least of CACTI's sizes by the byte.
  const double part = std::min(macros.kib / kPointKib.front(), 1.0);
  return macros.count * macros.of(kMm2) * part * port_factor(kPortMm2, macros.kib, size.ports);
}

}  // namespace

double sram_byte_pj(const SramSize& size) {
  const Macros macros(size);
  return macros.of(kBytePj) * port_factor(kPortPj, macros.kib, size.ports);
}

double sram_mm2(const SramSize& size) {
  // CACTI arranges some memories better in pieces than as one; dividing does not make any smaller.
  double most = 0;
  for (double banks = 1; banks <= size.banks; banks *= 2) {
    SramSize bank = size;
    bank.bytes /= banks;
    most = std::max(most, banks * one_bank_mm2(bank));
  }
  return most;
}

}  // namespace systole::hw
