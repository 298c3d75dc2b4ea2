#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/integer/integer_vit.h"
#include "model/mask/attention_mask.h"

/// A network under a fixed attention mask of a file, as `systole sparsify` writes it.
namespace systole::testbench {

/// The mask of each layer as the blocks of a network hold it (model/checkpoint/keep_mask.h).
[[nodiscard]] std::vector<std::vector<std::uint8_t>> keep_of(const model::AttentionMask& mask);

/// The mask in `file` for an encoder on `tokens` tokens: of every layer, or one layer for all.
/// Throws InputError, which names the file, for a causal network, another number of layers, heads
/// or tokens, and for a row that keeps no key.
[[nodiscard]] std::vector<std::vector<std::uint8_t>> load_keep(const std::string& file,
                                                               const model::EncoderShape& shape,
                                                               std::uint32_t tokens);

/// Puts it in place of the masks that the network has. Throws InputError also if the datapath's
/// multipliers cannot make a pruned score vanish.
void set_keep(const std::string& file, std::uint32_t tokens, model::IntegerEncoder& encoder);

}  // namespace systole::testbench
