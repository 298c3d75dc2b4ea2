#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace systole::hw {

/// Which records of a program's table (chains, mixes) a core holds: those that were used last. The
/// contents live in hw::Program; this is about what has to be fetched again, and when it arrives.
class RecordStore {
 public:
  struct Record {
    std::uint32_t index;     ///< in the program's table
    std::uint64_t arrival;   ///< cycle
    std::uint64_t last_use;  ///< position of the last command that was fetched and refers to it
  };

  explicit RecordStore(std::size_t slots) : slots_(slots) {}

  void clear() { records_.clear(); }
  [[nodiscard]] bool is_full() const { return records_.size() == slots_; }
  /// The one to be replaced next; there must be one.
  [[nodiscard]] const Record& oldest() const { return records_.front(); }

  /// The record, from now on the one used last, by command `user`; null: it is not held.
  [[nodiscard]] const Record* use(std::uint32_t index, std::uint64_t user) {
    const auto found =
        std::find_if(records_.begin(), records_.end(),
                     [index](const Record& record) { return record.index == index; });
    if (found == records_.end()) return nullptr;
    std::rotate(found, found + 1, records_.end());
    records_.back().last_use = user;
    return &records_.back();
  }

  /// Takes a record in, which replaces the oldest if the store is full.
  void add(const Record& record) {
    if (is_full()) records_.erase(records_.begin());
    records_.push_back(record);
  }

 private:
  std::size_t slots_;
  std::vector<Record> records_;  ///< in the order of their last use
};

}  // namespace systole::hw
