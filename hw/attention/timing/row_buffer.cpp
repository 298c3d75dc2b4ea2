#include "hw/attention/timing/row_buffer.h"

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>
#include <unordered_map>
#include <utility>

namespace systole::hw {
namespace {

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

/// When each row is needed again.
class Future {
 public:
  explicit Future(const std::vector<std::uint32_t>& rows) {
    for (std::size_t access = rows.size(); access-- > 0;) uses_[rows[access]].push_back(access);
  }

  /// The access in progress is the first of this row's that are left.
  void pass(std::uint32_t row) { uses_.at(row).pop_back(); }
  [[nodiscard]] std::size_t next_use(std::uint32_t row) const {
    const auto uses = uses_.find(row);
    return uses == uses_.end() || uses->second.empty() ? kNever : uses->second.back();
  }

 private:
  std::unordered_map<std::uint32_t, std::vector<std::size_t>> uses_;  // the last one first
};

/// The rows in a buffer.
class Places {
 public:
  explicit Places(std::size_t capacity) : capacity_(capacity) {}

  [[nodiscard]] bool holds(std::uint32_t row) const { return held_.count(row) != 0; }
  [[nodiscard]] bool full() const { return held_.size() == capacity_; }
  /// Of the row that would make room.
  [[nodiscard]] std::size_t farthest_use() const { return order_.begin()->next_use; }

  /// Makes room if there is none. Returns the accesses after which the place is free.
  std::size_t make_room() {
    if (!full()) return 0;
    const Held victim = *order_.begin();
    remove(victim.row);
    return victim.last_access + 1;
  }
  void add(std::uint32_t row, std::size_t next_use, std::size_t access) {
    held_.emplace(row, order_.insert({next_use, access, row}).first);
  }
  void remove(std::uint32_t row) {
    const auto held = held_.find(row);
    order_.erase(held->second);
    held_.erase(held);
  }

 private:
  struct Held {
    std::size_t next_use, last_access;
    std::uint32_t row;

    bool operator<(const Held& other) const {
      if (next_use != other.next_use) return next_use > other.next_use;
      return std::pair{last_access, row} < std::pair{other.last_access, other.row};
    }
  };

  std::size_t capacity_;
  std::set<Held> order_;  // the first makes room
  std::unordered_map<std::uint32_t, std::set<Held>::iterator> held_;
};

/// The other rows of a bundle that are needed again and not held, by their next use.
std::vector<std::pair<std::size_t, std::uint32_t>> others_by_use(std::uint32_t row,
                                                                 std::uint32_t bundle,
                                                                 const Future& future,
                                                                 const Places& places) {
  std::vector<std::pair<std::size_t, std::uint32_t>> others;
  const std::uint32_t first = row / bundle * bundle;
  for (std::uint32_t i = 0; i < bundle; ++i) {
    const std::uint32_t other = first + i;
    const std::size_t next_use = future.next_use(other);
    if (other == row || next_use == kNever || places.holds(other)) continue;
    others.emplace_back(next_use, other);
  }
  std::sort(others.begin(), others.end());
  return others;
}

RowFetch bring(std::uint32_t row, std::size_t access, std::uint32_t bundle, const Future& future,
               Places& places) {
  RowFetch fetch{access, places.make_room(), 1};
  places.add(row, access, access);  // needed first of all, so that it stays
  for (const auto& [next_use, other] : others_by_use(row, bundle, future, places)) {
    if (places.full() && places.farthest_use() < next_use) break;
    fetch.free_after = std::max(fetch.free_after, places.make_room());
    places.add(other, next_use, access);
    ++fetch.kept;
  }
  return fetch;
}

}  // namespace

std::vector<RowFetch> plan_fetches(const std::vector<std::uint32_t>& rows, std::size_t capacity,
                                   std::uint32_t bundle) {
  if (capacity == 0) throw std::invalid_argument("row buffer: expected room for at least 1 row");
  if (bundle == 0) throw std::invalid_argument("row buffer: expected bundles of at least 1 row");
  Future future(rows);
  Places places(capacity);
  std::vector<RowFetch> fetches;
  for (std::size_t access = 0; access < rows.size(); ++access) {
    const std::uint32_t row = rows[access];
    future.pass(row);
    if (!places.holds(row)) fetches.push_back(bring(row, access, bundle, future, places));
    places.remove(row);
    places.add(row, future.next_use(row), access);
  }
  return fetches;
}

}  // namespace systole::hw
