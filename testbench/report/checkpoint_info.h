#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "model/metadata/vit_shape.h"

namespace systole::testbench {

/// What a real-valued checkpoint is.
struct CheckpointInfo {
  std::string path;
  std::string family;  ///< "BERT", "GPT-2", "ViT"
  model::EncoderShape shape;
  std::string input;             ///< for people
  bool generates = false;        ///< `systole generate` takes it
  std::string validation_bits;   ///< per token, as its training recorded; empty: it did not
  std::uint64_t parameters = 0;  ///< elements of all its tensors
};

/// Reads and checks the whole checkpoint; throws InputError as its loader does.
[[nodiscard]] CheckpointInfo describe_checkpoint(const std::string& path);

/// At most kTextWidth columns.
[[nodiscard]] std::string checkpoint_text(const CheckpointInfo& info);
[[nodiscard]] nlohmann::ordered_json checkpoint_json(const CheckpointInfo& info);

}  // namespace systole::testbench
