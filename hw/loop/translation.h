#pragma once

#include <array>
#include <cstdint>

#include "hw/loop/memory_port.h"

namespace systole::hw::loop {

/// Address translation of reader and writer where it costs nothing but its place (Gemmini in
/// machine mode): each has a register for its last page; a request for another page asks the table
/// that they share in the next cycle, and only one of them may. Who has to wait sends its request
/// round once more.
class Translation {
 public:
  static constexpr std::uint64_t kPageBytes = 4096;

  /// Begins a cycle: decides who of those that asked in the last one was answered.
  void begin() {
    const int first = 1 - last_;
    int granted = -1;
    if (asked_[first]) {
      granted = first;
    } else if (asked_[1 - first]) {
      granted = 1 - first;
    }
    for (int client = 0; client < 2; ++client) {
      misses_[client] = client != granted && !hit_[client];
      asked_[client] = false;
    }
    if (granted < 0) return;
    last_ = granted_ = granted;
    answered_ = page_[granted];
  }
  /// Whether the request that the client asked for in the last cycle has no translation.
  [[nodiscard]] bool misses(MemoryPort::Client client) const { return misses_[client]; }
  /// The request that the client holds in this cycle, and whether it asks for its translation.
  void ask(MemoryPort::Client client, std::uint64_t address, bool valid) {
    const std::uint64_t page = address / kPageBytes;
    hit_[client] = known_[client] == page + 1;
    asked_[client] = valid && !hit_[client];
    page_[client] = page;
  }
  /// The end of a cycle: registers take the pages that were answered.
  void end() {
    if (granted_ < 0) return;
    known_[granted_] = answered_ + 1;
    granted_ = -1;
  }

 private:
  std::array<std::uint64_t, 2> known_{};  ///< 1 + page of the register; 0: none
  std::array<std::uint64_t, 2> page_{};   ///< of the request that is held
  std::array<bool, 2> hit_{true, true}, asked_{}, misses_{};
  std::uint64_t answered_ = 0;
  int granted_ = -1, last_ = 0;
};

}  // namespace systole::hw::loop
