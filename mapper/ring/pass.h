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
  std::uint32_t stream;      ///< residual stream
  std::uint32_t normalised;  ///< and what becomes of it
  std::uint32_t scratch;
  std::uint32_t value, key, query;  ///< of the core's heads
  std::uint32_t scores;             ///< of the core's heads, each as long as the context
  std::uint32_t attended;           ///< of all heads
  std::uint32_t projected;
  std::uint32_t hidden;
  std::uint32_t pitch;    ///< elements from one row to the next; these two are of no row:
  std::uint32_t logits;   ///< of the core's part of the vocabulary
  std::uint32_t winners;  ///< a register of each core: its largest logit, and which it is
};

/// Makes the passes of one core.
class PassMaker {
 public:
  /// Throws InputError if the network does not fit the machine.
  PassMaker(const TextShape& shape, const hw::Machine& machine, std::uint32_t core);

  /// Of the tokens `ids` at the places from `position` on: as many as max_rows() at most. `logits`:
  /// with the output vocabulary, for the last of them.
  [[nodiscard]] Pass make(const std::vector<std::uint32_t>& ids, std::uint32_t position,
                          bool logits) const;

  /// Tokens that can run together.
  [[nodiscard]] std::uint32_t max_rows() const { return max_rows_; }

  [[nodiscard]] const CoreLayout& layout() const { return layout_; }
  [[nodiscard]] const Registers& registers() const { return registers_; }
  [[nodiscard]] const Sizes& sizes() const { return sizes_; }
  /// Elements of the register file that are in use.
  [[nodiscard]] std::uint32_t register_elements() const;

 private:
  friend class PassWriter;

  const TextShape shape_;
  const hw::Machine machine_;
  const std::uint32_t core_;
  const Sizes sizes_;
  const CoreLayout layout_;
  Registers registers_{};
  std::uint32_t max_rows_ = 1;
  std::vector<Exchange> exchanges_;  ///< of row 0
};

}  // namespace systole::mapper::dfx
