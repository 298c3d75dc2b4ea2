#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "hw/core/bank_words.h"
#include "hw/machine/machine.h"
#include "hw/program/program.h"

namespace systole::hw {

/// What the last matmuls read of each bank of the scratchpad, spread evenly over their cycles: what
/// they leave to reads that come after all others', as those of parameters ahead of their command.
class ArrayUse {
 public:
  explicit ArrayUse(const Machine& machine)
      : array_(machine.array),
        bank_bytes_(machine.scratchpad.bank_bytes()),
        banks_(machine.scratchpad.banks),
        ports_(machine.scratchpad.ports) {}

  /// A matmul that is in the array in the cycles [from, to).
  void add(const cmd::Matmul& matmul, std::uint64_t from, std::uint64_t to) {
    const ArrayReads reads = matmul_reads(array_, matmul);
    const auto add_tile = [&](const LocalTile& tile, const StoredShape& shape,
                              std::uint64_t words) {
      const std::uint64_t end =
          tile.address + (shape.rows - 1) * std::uint64_t{tile.pitch} + shape.cols;
      for_each_bank(bank_bytes_, tile.address, std::min(end, banks_ * bank_bytes_), words,
                    [&](std::size_t bank, std::uint64_t share) {
                      if (share != 0) uses_[count_++ % kKept] = {bank, from, to, share};
                    });
    };
    add_tile(matmul.a, a_shape(matmul), reads.a);
    add_tile(matmul.b, b_shape(matmul), reads.b);
  }

  /// Words that the bank of an address has left in the cycles [from, to).
  [[nodiscard]] std::uint64_t left(std::uint64_t address, std::uint64_t from,
                                   std::uint64_t to) const {
    if (from >= to) return 0;
    const std::uint64_t bank = address / bank_bytes_;
    std::uint64_t taken = 0;
    for (std::size_t i = 0; i < std::min(count_, kKept); ++i) {
      const Use& use = uses_[i];
      const std::uint64_t begin = std::max(from, use.from), end = std::min(to, use.to);
      if (use.bank == bank && begin < end) {
        taken += use.words * (end - begin) / (use.to - use.from);
      }
    }
    const std::uint64_t all = (to - from) * ports_;
    return all - std::min(all, taken);
  }

 private:
  static constexpr std::size_t kKept = 32;
  struct Use {
    std::uint64_t bank = 0, from = 0, to = 0, words = 0;
  };

  Machine::Array array_;
  std::uint64_t bank_bytes_, banks_, ports_;
  std::array<Use, kKept> uses_;
  std::size_t count_ = 0;
};

}  // namespace systole::hw
