#pragma once

#include <cmath>
#include <cstddef>
#include <string>

namespace systole::bench {

/// Geometric mean and worst of figures, with the place of the worst.
struct Spread {
  double logarithms = 0, worst = 0;
  std::size_t count = 0;
  std::string worst_place;
  void add(double value, const std::string& place) {
    logarithms += std::log(value);
    ++count;
    if (value > worst) {
      worst = value;
      worst_place = place;
    }
  }
  [[nodiscard]] double mean() const {
    return count == 0 ? 0 : std::exp(logarithms / static_cast<double>(count));
  }
};

}  // namespace systole::bench
