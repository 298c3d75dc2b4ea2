#include "mapper/choose/repeats.h"

#include <cmath>

namespace systole::mapper {
namespace {

/// Shorter periods differ by what their places in DRAM and its refreshes make of them, and are soon
/// replayed.
constexpr std::uint64_t kLeastCycles = 1'000'000;
/// Cycles of two periods are equal if they differ by no more than this share.
constexpr double kTolerance = 0.002;

}  // namespace

void RepeatFinder::add(std::size_t decision, std::uint64_t at) {
  decisions_.push_back(decision);
  at_.push_back(at);
}

void RepeatFinder::take_over(const Repeat& repeat) {
  for (std::size_t i = 0; i < repeat.count; ++i) {
    const std::size_t before = decisions_.size() - repeat.period;
    add(decisions_[before], at_[before] + repeat.cycles);
  }
}

std::optional<RepeatFinder::Repeat> RepeatFinder::next() const {
  const std::size_t done = decisions_.size();
  for (std::size_t period = 1; 2 * period <= done && done + period <= shapes_.size(); ++period) {
    if (const std::optional<Repeat> found = of_period(period)) return found;
  }
  return std::nullopt;
}

std::optional<RepeatFinder::Repeat> RepeatFinder::of_period(std::size_t period) const {
  const std::size_t done = decisions_.size();
  const std::uint64_t end = at_.back();
  const std::uint64_t middle = at_[done - 1 - period];
  const std::uint64_t begin = 2 * period == done ? 0 : at_[done - 1 - 2 * period];
  const std::uint64_t cycles = end - middle;
  const auto difference = static_cast<double>(cycles) - static_cast<double>(middle - begin);
  if (cycles < kLeastCycles || std::abs(difference) > kTolerance * static_cast<double>(cycles)) {
    return std::nullopt;
  }
  for (std::size_t i = done - period; i < done; ++i) {
    if (shapes_[i] != shapes_[i - period] || decisions_[i] != decisions_[i - period]) {
      return std::nullopt;
    }
  }
  // What comes after has its operands where the last pipelines write theirs, if that ever is so.
  std::size_t count = 0, in_place = 0;
  for (std::size_t i = done; i < shapes_.size() && shapes_[i] == shapes_[i - period]; ++i) {
    if ((i + 1 - done) % period != 0) continue;
    count = i + 1 - done;
    if (places_[i] == places_[done - 1]) in_place = count;
  }
  if (count == 0) return std::nullopt;
  return Repeat{period, in_place != 0 ? in_place : count, cycles};
}

}  // namespace systole::mapper
