#pragma once

#include <vector>

#include "hw/number/half.h"
#include "mapper/ring/layout.h"
#include "model/float/gpt.h"

/// What is in the memories of the cores before the first token.
namespace systole::mapper::dfx {

/// Core `core`'s HBM: its weights as tiles, empty caches after them.
[[nodiscard]] std::vector<hw::Half> hbm_image(const model::Gpt& gpt, const hw::Machine& machine,
                                              const CoreLayout& layout);

/// Its DDR: tables, biases and LayerNorms, the same for all cores unless the output vocabulary
/// stands there.
[[nodiscard]] std::vector<hw::Half> ddr_image(const model::Gpt& gpt, const hw::Machine& machine,
                                              const CoreLayout& layout);

}  // namespace systole::mapper::dfx
