#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace systole::hw {

/// The columns of the `count` largest of `cols` values, of equal ones the first, in ascending
/// order; all of them if there are no more.
inline std::vector<std::size_t> largest_columns(const float* row, std::size_t cols,
                                                std::size_t count) {
  std::vector<std::size_t> order(cols);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return row[a] > row[b]; });
  order.resize(std::min(count, cols));
  std::sort(order.begin(), order.end());
  return order;
}

}  // namespace systole::hw
