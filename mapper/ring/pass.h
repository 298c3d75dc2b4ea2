#pragma once

#include <cstdint>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/ring/pass.h"
#include "mapper/ring/layout.h"

namespace systole::mapper::dfx {

using hw::dfx::Exchange;
using hw::dfx::Pass;

/// Where the vectors of a row are in the register file, by element.
struct Registers {
  std::uint32_t stream;      ///< residual stream; of a Llama the root of epsilon after it
  std::uint32_t normalised;  ///< and what becomes of it
  std::uint32_t scratch;
  std::uint32_t value, key, query;  ///< of the core's heads
  std::uint32_t scores;             ///< of the core's heads, each as long as the context
  std::uint32_t attended;           ///< of all heads
  std::uint32_t projected;
  std::uint32_t hidden;
  std::uint32_t gate;     ///< of a Llama: of the core's part of the hidden layer
  std::uint32_t pitch;    ///< elements from one row to the next
  std::uint32_t logits;   ///< of the core's part of the vocabulary
  std::uint32_t winners;  ///< a register of each core: its largest logit, and which it is
  std::uint32_t
      logits_pitch;      ///< of these two, between rows with logits; 0: one row alone has some
  std::uint32_t handed;  ///< streams that cores of a pipeline hand on, one after the other
};

/// A token that runs through the network.
struct PassRow {
  std::uint32_t id = 0;
  std::uint32_t position = 0;  ///< in its text
  std::uint32_t text = 0;      ///< whose caches it uses
};

/// Makes the passes of one core.
class PassMaker {
 public:
  /// `texts`: that are generated side by side. Throws InputError if the network does not fit the
  /// machine.
  PassMaker(const GptShape& shape, const hw::Machine& machine, std::uint32_t core,
            std::uint32_t texts = 1);

  /// Of as many tokens as max_rows() at most, those of a text in the order of their positions. Rows
  /// from number `first_logits` on go through the output vocabulary too: of one text, the last row
  /// at most.
  [[nodiscard]] Pass make(const std::vector<PassRow>& rows, std::size_t first_logits) const;
  /// Of the tokens `ids` of the only text from `position` on; `logits`: of the last of them.
  [[nodiscard]] Pass make(const std::vector<std::uint32_t>& ids, std::uint32_t position,
                          bool logits) const;

  /// Tokens that can run together.
  [[nodiscard]] std::uint32_t max_rows() const { return max_rows_; }

  [[nodiscard]] const CoreLayout& layout() const { return layout_; }
  [[nodiscard]] const Registers& registers() const { return registers_; }
  [[nodiscard]] const Sizes& sizes() const { return sizes_; }
  /// Elements of the register file that are in use.
  [[nodiscard]] std::uint32_t register_elements() const { return register_elements_; }

 private:
  friend class PassWriter;
  friend class RowWriter;

  [[nodiscard]] bool is_pipelined() const {
    return machine_.dfx.parallelism == hw::dfx::Parallelism::kPipelined;
  }
  /// Registers of logits and winners, and how many rows there can be. `next`: the first free one.
  void place_logits(std::uint32_t next);

  const GptShape shape_;
  const hw::Machine machine_;
  const std::uint32_t core_, texts_;
  const Sizes sizes_;
  const CoreLayout layout_;
  Registers registers_{};
  std::uint32_t max_rows_ = 1;
  std::uint32_t register_elements_ = 0;
  std::vector<Exchange> exchanges_;  ///< of row 0
};

}  // namespace systole::mapper::dfx
