#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace systole::mapper {

/// Finds where a sequence of pipelines goes on as it did before: layer after layer, head after
/// head.
class RepeatFinder {
 public:
  /// By pipeline: equal numbers for equal shapes, and for equal places of what it writes.
  RepeatFinder(std::vector<std::size_t> shapes, std::vector<std::size_t> places)
      : shapes_(std::move(shapes)), places_(std::move(places)) {}

  /// The next pipeline was tiled by this decision, and was dispatched up to cycle `at`.
  void add(std::size_t decision, std::uint64_t at);

  /// Pipelines that repeat the last `period` ones.
  struct Repeat {
    std::size_t period = 0, count = 0;  ///< pipelines; a multiple of the period
    std::uint64_t cycles = 0;           ///< of a period
  };
  /// What the next pipelines repeat, if the last two periods have taken equal cycles.
  [[nodiscard]] std::optional<Repeat> next() const;
  /// The next pipelines are taken to repeat.
  void take_over(const Repeat& repeat);

 private:
  [[nodiscard]] std::optional<Repeat> of_period(std::size_t period) const;

  std::vector<std::size_t> shapes_, places_;
  std::vector<std::size_t> decisions_;
  std::vector<std::uint64_t> at_;  ///< 0 before the first
};

}  // namespace systole::mapper
