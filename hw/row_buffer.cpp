#include "hw/row_buffer.h"

#include <stdexcept>
#include <unordered_map>

namespace systole::hw {

std::vector<RowFetch> plan_fetches(const std::vector<std::uint32_t>& rows, std::size_t capacity) {
  if (capacity == 0) throw std::invalid_argument("row buffer: expected room for at least 1 row");
  std::vector<RowFetch> fetches;
  std::unordered_map<std::uint32_t, std::size_t> last_access;  // of the rows in the buffer
  // Last accesses of victims ascend, so that one walk behind the accesses finds all of them.
  std::size_t oldest = 0;
  const auto is_last_access = [&](std::size_t access) {
    const auto held = last_access.find(rows[access]);
    return held != last_access.end() && held->second == access;
  };
  for (std::size_t access = 0; access < rows.size(); ++access) {
    const auto [held, missing] = last_access.try_emplace(rows[access], access);
    held->second = access;
    if (!missing) continue;
    RowFetch fetch{access, 0};
    if (last_access.size() > capacity) {
      while (!is_last_access(oldest)) ++oldest;
      last_access.erase(rows[oldest]);
      fetch.free_after = ++oldest;
    }
    fetches.push_back(fetch);
  }
  return fetches;
}

}  // namespace systole::hw
