#pragma once

#include <functional>
#include <vector>

#include "hw/postop/postop.h"

/// A chain composed for execution. Constants, operand kinds and functions are resolved once, when
/// the kernel is made; running it tests no opcode. Blocks of rows pass through all stages while
/// they are in the first-level cache, each stage as one vectorised loop (hw/kernel/row_kernels.h).
namespace systole::hw {

class ChainKernel {
 public:
  /// The chain must have passed check_chain().
  explicit ChainKernel(Chain chain);

  [[nodiscard]] const Chain& chain() const noexcept { return chain_; }

  /// Computes a tile; see apply_chain().
  void apply(const ChainOperands& operands) const;

  /// What the stages of one execution share, and the block that they work on.
  class Frame;
  using Step = std::function<void(Frame& frame)>;

 private:
  Chain chain_;
  std::vector<Step> steps_;
};

}  // namespace systole::hw
