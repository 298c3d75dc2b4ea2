#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/format/safetensors_writer.h"
#include "tests/support/random/seeded_tensors.h"

namespace systole::model {

/// A checkpoint file in the making: one block of width 8 on 4 x 4 pictures, with seeded weights.
/// Tests spoil parts of it before they write it.
struct TinyVit : test::SeededTensors {
  TinyVit() {
    metadata = {{"img", "4"},   {"patch", "2"}, {"d", "8"},    {"h", "2"},  {"L", "1"},
                {"ratio", "2"}, {"ncls", "3"},  {"post", "0"}, {"ae", "0"}, {"up", "1"}};
    add("patch_embed.proj.weight", {8, 1, 2, 2}, 0.5);
    add("patch_embed.proj.bias", {8}, 0.1);
    add("cls_token", {1, 1, 8}, 0.5);
    add("pos_embed", {1, 5, 8}, 0.5);
    for (const std::string norm : {"blocks.0.norm1", "blocks.0.norm2", "norm"}) {
      add_norm(norm, 8, 0.5);
    }
    add_linear("blocks.0.attn.qkv", 24, 8);
    add_linear("blocks.0.attn.proj", 8, 8);
    add_linear("blocks.0.mlp.fc1", 16, 8);
    add_linear("blocks.0.mlp.fc2", 8, 16);
    add_linear("head", 3, 8);
  }

  /// An auto-encoder across heads on Q and K, from 2 heads to 1.
  void add_auto_encoder() {
    metadata["ae"] = "1";
    for (const std::string operand : {"q", "k"}) {
      add_linear("blocks.0.attn.encoder_" + operand, 1, 2);
      add_linear("blocks.0.attn.decoder_" + operand, 2, 1);
    }
  }

  /// A mask for 2 heads of 5 tokens; bit k of a row is key k.
  void add_mask(const std::vector<std::uint8_t>& rows) {
    tensors.push_back(make_tensor("blocks.0.attn.keep_mask", FileDtype::kU8, {2, 5, 1}, rows));
  }
};

}  // namespace systole::model
