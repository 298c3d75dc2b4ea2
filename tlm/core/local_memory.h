#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "hw/core/bank_words.h"
#include "hw/core/operand_stream.h"
#include "hw/core/sum_traffic.h"
#include "hw/engines.h"
#include "hw/machine/machine.h"
#include "hw/memory/word_code.h"
#include "tlm/common/stored_use.h"
#include "tlm/common/value_queue.h"
#include "tlm/core/banked_sram.h"

namespace systole::tlm_model {

/// The memories inside a core.
struct LocalMemory {
  /// `engine`: keeps the sums of the accumulator in the place of `accumulator`, which then only
  /// holds what passes between it and the units. nullptr: the sums are in `accumulator` alone.
  explicit LocalMemory(const hw::Machine& machine, hw::AccumulatorEngine* engine = nullptr)
      : scratchpad_code(hw::scratchpad_code(machine)),
        accumulator_code(hw::accumulator_code(machine)),
        scratchpad(machine.scratchpad, hw::scratchpad_word_bytes(machine)),
        accumulator(machine.accumulator, hw::accumulator_word_bytes(machine)),
        accumulator_engine(engine),
        statistics(machine.postop.row_statistics, 0),
        array(machine),
        sums(machine) {
    if (sums.serves()) array.steps().keep_sums();
  }

  [[nodiscard]] std::int32_t* accumulators() noexcept {
    return reinterpret_cast<std::int32_t*>(accumulator.data());
  }

  /// The parameter block at an address of the scratchpad that check_program() has found aligned.
  [[nodiscard]] const std::int32_t* parameters(std::uint32_t address) noexcept {
    return reinterpret_cast<const std::int32_t*>(scratchpad.data() + address);
  }

  /// Reads of the parameter block of a chain for rows of `cols` elements: a word of the scratchpad
  /// a cycle from `started` on. Steps are to be filled in.
  [[nodiscard]] std::vector<StoredUse> parameter_uses(const hw::ChainUse& use,
                                                      const hw::Chain& chain, std::uint64_t cols,
                                                      std::uint64_t started) const {
    const std::uint64_t bytes = std::uint64_t{4} * hw::parameter_words(chain) * cols;
    const std::uint64_t word = scratchpad.word_bytes();
    std::vector<StoredUse> uses;
    for (std::uint64_t at = 0; at < bytes; at += word) {
      StoredUse& part = uses.emplace_back();
      part.space = hw::Space::kScratchpad;
      part.address = use.parameters + at;
      part.pitch = part.bytes = std::min(word, bytes - at);
      part.cycle = static_cast<std::int64_t>(started + at / word);
    }
    return uses;
  }

  /// The half of the accumulator in which element `c` resides, 0 or 1.
  [[nodiscard]] std::uint8_t accumulator_half(std::uint32_t c) const noexcept {
    return std::uint64_t{c} * sizeof(std::int32_t) < accumulator.size() / 2 ? 0 : 1;
  }

  const hw::WordCode scratchpad_code, accumulator_code;
  BankedSram scratchpad;
  BankedSram accumulator;
  hw::AccumulatorEngine* const accumulator_engine;
  std::vector<std::uint32_t> statistics;  ///< sums and maxima of rows
  hw::OperandStream array;                ///< what it reads of the scratchpad
  std::function<void()> advance_array;    ///< as far as others' uses of the scratchpad are known
  /// Of the cycles before this one nobody will know any more what the scratchpad had left.
  std::function<void(std::uint64_t until)> read_ahead;
  void forget_before(std::uint64_t cycle) {
    if (read_ahead) read_ahead(cycle);
    // Parameters are read a cycle after the one for which the banks are asked.
    const std::uint64_t asked = cycle - std::min<std::uint64_t>(cycle, 1);
    array.prune_before(asked);
    scratchpad.prune_before(std::min(asked, array.oldest_sums()));
  }
  hw::SumTraffic sums;  ///< who uses the accumulator when
  /// Others' uses of the scratchpad before cycle `now` are known.
  void advance_sums(std::uint64_t now) {
    if (!sums.serves()) return;
    advance_array();
    sums.know(array, scratchpad.service(), now);
  }
  UseObserver* observer = nullptr;  ///< of scratchpad and accumulator, if there are values
  /// Values are computed by its actions, which move them to and from main memory, too; null: by the
  /// units, when their requests have brought what they need.
  ValueQueue* values = nullptr;
};

}  // namespace systole::tlm_model
