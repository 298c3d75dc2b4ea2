#pragma once

#include <algorithm>
#include <cstdint>

#include "base/round.h"
#include "hw/machine/machine.h"
#include "hw/memory/bank_service.h"

namespace systole::hw {

/// The words of the scratchpad that have a command's parameters, in the order in which the store
/// unit reads them (rtl/store/systole_parameter_buffers.sv): row after row of `cols` words of 32
/// bits, each row from its begin, in as many reads as its vectors take.
class ParameterWords {
 public:
  ParameterWords() = default;
  /// `rows`: parameter_words() of the chain; `lanes`: columns of a vector; `word`: bytes of a port
  /// of the scratchpad.
  ParameterWords(std::uint64_t address, std::uint64_t rows, std::uint64_t cols, std::uint64_t lanes,
                 std::uint64_t word)
      : address_(address), row_bytes_(4 * cols), step_(std::min(word, 4 * lanes)) {
    in_row_ = cols / lanes * ceil_div(4 * lanes, word) + ceil_div(4 * (cols % lanes), word);
    count_ = rows * in_row_;
  }

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  /// Bytes of a read.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return step_; }
  /// Byte address of a word.
  [[nodiscard]] std::uint64_t address(std::uint64_t word) const {
    return address_ + word / in_row_ * row_bytes_ + word % in_row_ * step_;
  }
  /// Words from this one on that follow each other in memory.
  [[nodiscard]] std::uint64_t run(std::uint64_t word) const { return in_row_ - word % in_row_; }
  /// The banks of a word. At the end of the memory there is no bank after the last one.
  [[nodiscard]] BankAccess access(std::uint64_t word, const Machine::Sram& sram) const {
    BankAccess access = bank_access(address(word), step_, BlockSize(sram.bank_bytes()));
    access.crosses = access.crosses && access.bank + 1 != sram.banks;
    return access;
  }
  /// Words from this one on, of those that follow each other, that are in the same bank as it
  /// alone; 0: it has a part in the next one.
  [[nodiscard]] std::uint64_t run_in_bank(std::uint64_t word, const Machine::Sram& sram) const {
    const BankAccess first = access(word, sram);
    if (first.crosses) return 0;
    if (first.bank + 1 == sram.banks) return run(word);
    const std::uint64_t room = (first.bank + std::uint64_t{1}) * sram.bank_bytes() - address(word);
    return std::min(run(word), room / step_);
  }

 private:
  std::uint64_t address_ = 0, row_bytes_ = 0, step_ = 1;
  std::uint64_t in_row_ = 1, count_ = 0;
};

}  // namespace systole::hw
