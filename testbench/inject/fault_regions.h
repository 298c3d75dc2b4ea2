#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "hw/machine/machine.h"
#include "mapper/mapping.h"
#include "testbench/inject/injection.h"

namespace systole::testbench {

/// The addresses of a target: ranges [begin, end) of its memory, or elements of the array, in
/// order.
class FaultRegion {
 public:
  void add(std::uint64_t begin, std::uint64_t end) { ranges_.emplace_back(begin, end); }
  /// Sorts the ranges and joins those that overlap. To be called after the last add().
  void complete();

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// Address number `index` of them.
  [[nodiscard]] std::uint64_t address(std::uint64_t index) const;
  [[nodiscard]] bool contains(std::uint64_t address) const;
  [[nodiscard]] std::uint64_t begin() const { return ranges_.front().first; }
  [[nodiscard]] std::uint64_t end() const { return ranges_.back().second; }

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;
  std::uint64_t size_ = 0;
};

/// What a target holds when a mapped network runs on the machine. Constants belong to the first
/// command that uses what a load brings: weights to a product, parameters to a chain.
[[nodiscard]] FaultRegion fault_region(FaultTarget target, const mapper::Mapping& mapping,
                                       const hw::Machine& machine);

}  // namespace systole::testbench
