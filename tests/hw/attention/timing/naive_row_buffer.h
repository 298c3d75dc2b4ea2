#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <tuple>
#include <vector>

/// hw/attention/timing/row_buffer.h, looking through all accesses to come for each row that is
/// held.
namespace systole::hw {

/// Access, free after, kept.
using NaiveFetch = std::tuple<std::size_t, std::size_t, std::size_t>;

class NaiveRowBuffer {
 public:
  NaiveRowBuffer(const std::vector<std::uint32_t>& rows, std::size_t capacity, std::uint32_t bundle)
      : rows_(rows), capacity_(capacity), bundle_(bundle) {}

  std::vector<NaiveFetch> fetches() {
    std::vector<NaiveFetch> fetches;
    for (std::size_t access = 0; access < rows_.size(); ++access) {
      now_ = access;
      const std::uint32_t row = rows_[access];
      const auto hit = find(row);
      if (hit == held_.end()) {
        const std::size_t free_after = bring(row);
        fetches.emplace_back(access, free_after, 1 + bring_others(row));
        std::get<1>(fetches.back()) = std::max(free_after, others_free_after_);
      } else {
        held_.erase(hit);
        held_.push_back({row, access});
      }
    }
    return fetches;
  }

 private:
  struct Held {
    std::uint32_t row;
    std::size_t last_access;
  };

  std::list<Held>::iterator find(std::uint32_t row) {
    return std::find_if(held_.begin(), held_.end(),
                        [row](const Held& entry) { return entry.row == row; });
  }
  /// Accesses from here to the next that needs the row; many if there is none.
  [[nodiscard]] std::size_t distance(std::uint32_t row) const {
    for (std::size_t i = now_ + 1; i < rows_.size(); ++i) {
      if (rows_[i] == row) return i - now_;
    }
    return rows_.size();
  }
  /// The row, in the place of the one that is needed last; the oldest of several.
  std::size_t bring(std::uint32_t row) {
    std::size_t free_after = 0;
    if (held_.size() == capacity_) {
      auto victim = held_.end();
      for (auto entry = held_.begin(); entry != held_.end(); ++entry) {
        if (entry->row == rows_[now_]) continue;
        if (victim == held_.end() || distance(entry->row) > distance(victim->row)) victim = entry;
      }
      free_after = victim->last_access + 1;
      held_.erase(victim);
    }
    held_.push_back({row, now_});
    return free_after;
  }
  std::size_t bring_others(std::uint32_t needed) {
    std::vector<std::uint32_t> others;
    for (std::uint32_t i = 0; i < bundle_; ++i) {
      const std::uint32_t row = needed / bundle_ * bundle_ + i;
      if (find(row) == held_.end() && distance(row) < rows_.size()) others.push_back(row);
    }
    std::sort(others.begin(), others.end(),
              [this](std::uint32_t a, std::uint32_t b) { return distance(a) < distance(b); });
    others_free_after_ = 0;
    std::size_t kept = 0;
    for (const std::uint32_t row : others) {
      const bool better = std::any_of(held_.begin(), held_.end(), [&](const Held& entry) {
        return entry.row != needed && distance(entry.row) > distance(row);
      });
      if (held_.size() == capacity_ && !better) continue;
      others_free_after_ = std::max(others_free_after_, bring(row));
      ++kept;
    }
    return kept;
  }

  const std::vector<std::uint32_t>& rows_;
  const std::size_t capacity_;
  const std::uint32_t bundle_;
  std::list<Held> held_;  // least recently used first
  std::size_t now_ = 0, others_free_after_ = 0;
};

}  // namespace systole::hw
