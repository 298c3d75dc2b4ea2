#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace systole::hw {

/// Names that were seen in the current window, without a pass over all names between windows.
class WindowSet {
 public:
  explicit WindowSet(std::size_t names) : window_of_(names, 0) {}

  void begin_window() { ++window_; }
  /// True if `name` is new in this window.
  bool insert(std::size_t name) {
    const bool fresh = window_of_[name] != window_;
    window_of_[name] = window_;
    return fresh;
  }

 private:
  std::vector<std::uint32_t> window_of_;
  std::uint32_t window_ = 0;
};

/// Words that one window wants of each bank of a buffer. An operand wanted twice in a window counts
/// once. `names`: operands; `banks`: a power of two.
class BankLoad {
 public:
  BankLoad(std::size_t names, std::uint32_t banks) : wanted_(names), words_(banks, 0) {}

  void begin_window() {
    wanted_.begin_window();
    std::fill(words_.begin(), words_.end(), 0);
  }
  /// `place`: the operand's bank, before it is taken modulo the number of banks.
  void want(std::size_t name, std::size_t place, std::uint64_t words) {
    if (!wanted_.insert(name)) return;
    words_[place & (words_.size() - 1)] += words;
    total_ += words;
  }
  /// Words of all banks and windows.
  [[nodiscard]] std::uint64_t total() const { return total_; }
  /// Cycles that the most wanted bank needs with `ports` words a cycle.
  [[nodiscard]] std::uint64_t cycles(std::uint32_t ports) const {
    return (*std::max_element(words_.begin(), words_.end()) + ports - 1) / ports;
  }

 private:
  WindowSet wanted_;
  std::vector<std::uint64_t> words_;
  std::uint64_t total_ = 0;
};

}  // namespace systole::hw
