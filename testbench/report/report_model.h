#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "model/graph/describe_model.h"
#include "model/integer/integer_text.h"
#include "model/integer/integer_vit.h"
#include "model/metadata/vit_shape.h"
#include "testbench/network/network_size.h"

namespace systole::testbench {

/// Shape, products, scales and sizes of a model, at most kTextWidth columns.
[[nodiscard]] std::string model_text(const model::IntegerVit& vit, const model::ModelInfo& info);

[[nodiscard]] nlohmann::ordered_json model_json(const model::IntegerVit& vit,
                                                const model::ModelInfo& info);

/// Of a text network, whose work is that of as many tokens as the graph of `info` has.
[[nodiscard]] std::string model_text(const model::IntegerText& text, const model::ModelInfo& info);

[[nodiscard]] nlohmann::ordered_json model_json(const model::IntegerText& text,
                                                const model::ModelInfo& info);

/// "12 post-norm blocks, width 768, 12 heads, MLP 3072".
[[nodiscard]] std::string blocks_text(const model::EncoderShape& shape);
/// "224 x 224 pixels, 3 channels of 256 levels".
[[nodiscard]] std::string pixels_text(const model::VitShape& shape);

/// "12 post-norm blocks, width 768, 12 heads, MLP 3,072, 512 tokens": a shape in use.
[[nodiscard]] std::string size_text(const NetworkSize& size);

/// The same of a network by its shape, as far as a shape without weights has them.
[[nodiscard]] std::string model_text(const NetworkSize& size, const model::ModelInfo& info);

[[nodiscard]] nlohmann::ordered_json model_json(const NetworkSize& size,
                                                const model::ModelInfo& info);

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
