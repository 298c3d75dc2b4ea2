#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <set>

#include "hw/dma/read_dma.h"

namespace systole::testbench {

/// A memory whose answers take some cycles, in any order, and come a beat a cycle, those of a
/// request one after the other.
struct ReadAnswers {
  std::uint64_t beat_bytes;
  std::uint64_t least, most;       ///< cycles from a request to its first beat
  std::uint64_t stalls_per_mille;  ///< cycles in which no request is taken
  std::uint64_t seed;
  /// Instead of `least` and `most`, by the request.
  std::function<std::uint64_t(const hw::ReadRequest&)> latency = {};

  /// The same memory each time.
  [[nodiscard]] hw::ReadMemory memory() const {
    hw::ReadMemory memory;
    memory.takes = [of = *this](std::uint64_t cycle) {
      return std::mt19937_64(of.seed ^ (cycle * 0x9e3779b97f4a7c15U))() % 1000 >=
             of.stalls_per_mille;
    };
    const auto random = std::make_shared<std::mt19937_64>(seed);
    const auto busy = std::make_shared<std::set<std::uint64_t>>();  // cycles with a beat
    memory.done = [of = *this, random, busy](const hw::ReadRequest& request) {
      const std::uint64_t lane = request.address % of.beat_bytes;
      const std::uint64_t beats = (lane + request.bytes + of.beat_bytes - 1) / of.beat_bytes;
      std::uint64_t first =
          request.issued +
          (of.latency ? of.latency(request) : of.least + (*random)() % (of.most - of.least + 1));
      for (auto it = busy->lower_bound(first); it != busy->end() && *it < first + beats; ++it) {
        first = *it + 1;
      }
      for (std::uint64_t i = 0; i < beats; ++i) busy->insert(first + i);
      return first + beats;
    };
    return memory;
  }
};

}  // namespace systole::testbench
