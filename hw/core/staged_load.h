#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "hw/core/bank_words.h"
#include "hw/dma/operand_arrivals.h"
#include "hw/dma/result_rows.h"
#include "hw/machine/machine.h"
#include "hw/memory/bank_service.h"
#include "hw/memory/word_code.h"
#include "hw/postop/parameter_words.h"
#include "hw/postop/store_set_up.h"
#include "hw/program/program.h"

namespace systole::hw {

/// A load whose rows pass stages before the anchor: the cycle contract of
/// rtl/core/systole_load_stages.sv. Who has the port says what arrives, and in which cycles the
/// scratchpad is used.
///
/// - It has the load unit to itself: it starts when all loads before it are complete, and the next
///   one starts when it is.
/// - Its tile is read from the start on, then those of its tensor operands, into buffers.
/// - In the cycle after the one with which the first vector is there, of all tiles, its stages
///   begin as those of a move do (store_times() of hw/dma/store_schedule.h): micro-code unless they
///   hold the chain, parameters, factors of rows. Nothing comes ahead of that.
/// - Vectors then enter the stages as they and their operands are there, and results are written as
///   they leave: the load unit goes first at the scratchpad.
class StagedLoad {
 public:
  /// All has arrived.
  static constexpr std::uint64_t kAllKnown = std::numeric_limits<std::uint64_t>::max();

  StagedLoad() = default;
  /// `sums`: it goes to the accumulator.
  StagedLoad(const cmd::Load& load, const Chain& chain, const Machine& machine, bool sums);

  /// Rows of the tile, and then of each tensor operand, in the order in which they are asked for.
  void begin_rows(std::uint64_t element, bool is_last) { arrivals_.begin_rows(element, is_last); }
  /// See OperandArrivals.
  void arrive(std::uint64_t address, std::uint64_t bytes, std::uint64_t done) {
    arrivals_.arrive(address, bytes, done);
  }

  /// Goes on as far as is known. What has not arrived does not before cycle `not_before`.
  /// `read(banks, cycle)`: parameters, a word of the scratchpad, in a cycle as BankService has
  /// them; `write(address, bytes, words, cycle)`: a piece of results for a byte address of its
  /// memory, in so many cycles up to that one.
  template <typename Read, typename Write>
  void go_on(std::uint64_t not_before, StoreSetUp& set_up, const Read& read, const Write& write) {
    if (!begun_ && !begin(set_up, read)) return;
    InputTimes inputs;
    inputs.not_before = not_before;
    arrivals_.tell(inputs);
    while (rows_left_ != 0) {
      const std::optional<std::uint64_t> leaves = rows_.next(inputs);
      if (!leaves) return;
      const std::uint64_t at = rows_.piece_address(), bytes = rows_.piece_bytes();
      // Words that a code reads first are read ahead.
      const std::uint64_t words = accesses_to_write(code_, at, at + bytes, word_bytes_);
      written_ = std::max(written_, *leaves - std::min(*leaves, words)) + words;
      write(at, bytes, words, written_);
      if (rows_.take(written_)) --rows_left_;
    }
  }

  /// All results have been written: the cycle with which it is complete.
  [[nodiscard]] bool is_over() const noexcept { return rows_left_ == 0; }
  [[nodiscard]] std::uint64_t completed() const noexcept { return written_ + settling_; }
  /// By row that has left the stages: the cycle after that.
  [[nodiscard]] const std::vector<std::uint64_t>& left() const noexcept { return rows_.left(); }

 private:
  /// Its stages begin, if it is known when: the first vector is there.
  template <typename Read>
  bool begin(StoreSetUp& set_up, const Read& read) {
    InputTimes inputs;
    arrivals_.tell(inputs);
    if (inputs.known == 0) return false;
    const std::uint64_t begins = inputs.there[0] + 1;
    for (std::uint64_t word = 0; word < parameters_.count(); ++word) {
      read(parameters_.access(word, sram_), begins + word);
    }
    command_.dispatched = command_.started = command_.readable = begins;
    flow_.start(begins, set_up.begin(command_, begins + parameters_.count() + 1) - begins);
    rows_ = ResultRows(flow_, shape_, to_);
    begun_ = true;
    return true;
  }

  Machine::Sram sram_;            ///< the scratchpad
  WordCode code_;                 ///< of the memory that it goes to
  std::uint64_t word_bytes_ = 1;  ///< of a port of that
  std::uint64_t settling_ = 0;    ///< from the last piece to completion
  OperandArrivals arrivals_;
  ParameterWords parameters_;
  StoreSetUp::Command command_;
  ResultFlow flow_;
  ResultRows::Shape shape_;
  RowWrite to_;
  ResultRows rows_;
  bool begun_ = false;
  std::uint64_t rows_left_ = 0;
  std::uint64_t written_ = 0;  ///< the cycle in which the last piece so far has left
};

}  // namespace systole::hw
