#include "model/build/encoder_graph.h"

#include <algorithm>
#include <utility>

#include "hw/number/integer.h"
#include "model/build/encoder_blocks.h"
#include "model/graph/graph_builder.h"
#include "model/graph/stages.h"

namespace systole::model {
namespace {

/// Little-endian elements of a residual-stream tensor.
std::vector<std::uint8_t> stream_bytes(const std::int32_t* values, std::size_t count,
                                       hw::DType type) {
  const std::size_t width = hw::bytes_of(type);
  std::vector<std::uint8_t> bytes(count * width);
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<std::uint32_t>(values[i]);
    for (std::size_t b = 0; b < width; ++b) {
      bytes[i * width + b] = static_cast<std::uint8_t>(value >> (8 * b));
    }
  }
  return bytes;
}

/// The residual stream after the embedding. Its row 0, the class token with its position, is the
/// same for every image and thus constant.
View append_embedding(GraphBuilder& builder, EncoderBlocks& blocks, const IntegerVit& vit) {
  const std::uint32_t width = vit.shape.encoder.width;
  const std::uint32_t patches = vit.shape.patches();
  const hw::DType type = blocks.residual_type();

  Tensor input;
  input.name = "patches";
  input.rows = patches;
  input.cols = vit.shape.patch_samples();
  input.kind = Tensor::Kind::kInput;
  input.scale = 1.0 / 127.0;
  const View pixels = builder.whole(builder.add_tensor(std::move(input)));

  Tensor table;
  table.name = "position";
  table.rows = patches;
  table.cols = width;
  table.type = type;
  table.kind = Tensor::Kind::kConstant;
  table.scale = vit.embedding_scale;
  table.data = stream_bytes(vit.position.data() + width, std::size_t{patches} * width, type);
  const View position = builder.whole(builder.add_tensor(std::move(table)));

  std::vector<std::int32_t> stream(std::size_t{vit.shape.tokens()} * width, 0);
  const hw::IntRange range = hw::symmetric_range(blocks.residual_bits());
  std::transform(vit.position.begin(), vit.position.begin() + width, stream.begin(),
                 [&](std::int32_t x) { return static_cast<std::int32_t>(hw::saturate(x, range)); });
  Tensor embedding;
  embedding.name = "embedding";
  embedding.rows = vit.shape.tokens();
  embedding.cols = width;
  embedding.type = type;
  embedding.scale = vit.embedding_scale;
  embedding.data = stream_bytes(stream.data(), stream.size(), type);
  const View tokens = builder.whole(builder.add_tensor(std::move(embedding)));

  const View projected =
      blocks.linear("patch_embed", {pixels}, vit.patch_embed, blocks.residual_bits(), type);
  const View sum = builder.stage("patch_embed.position", projected,
                                 add_tensor_stage(type, {}, kBranchBits, blocks.rounding()),
                                 hw::DType::kS32, {{}, position});
  View patch_rows = tokens;
  patch_rows.row = 1;
  patch_rows.rows = patches;
  builder.stage_to("patch_embed.clamp", sum, clamp_stage(blocks.residual_bits()), patch_rows);
  return tokens;
}

}  // namespace

Graph make_vit_graph(const IntegerVit& vit) {
  GraphBuilder builder(vit.name);
  EncoderBlocks blocks(builder, vit.encoder);
  const bool post = vit.shape.encoder.post_norm;

  View stream = append_embedding(builder, blocks, vit);
  if (post) stream = blocks.layer_norm("norm", stream, vit.norm);
  for (std::uint32_t i = 0; i < vit.shape.encoder.layers; ++i) stream = blocks.block(i, stream);

  // Only the class token is classified.
  stream.rows = 1;
  if (!post) stream = blocks.layer_norm("norm", stream, vit.norm);
  const View logits = blocks.linear("head", {stream}, vit.head, kLogitBits, hw::DType::kS32);
  Tensor& output = builder.tensor(logits.tensor);
  output.name = "logits";
  output.kind = Tensor::Kind::kOutput;
  output.scale = vit.logit_scale;
  return std::move(builder).take();
}

Graph make_encoder_graph(const IntegerEncoder& encoder, std::uint32_t length, std::string name,
                         double embedding_scale, std::uint32_t batch) {
  GraphBuilder builder(std::move(name));
  EncoderBlocks blocks(builder, encoder, {batch, 0});
  View stream = blocks.input("embedding", batch * length, blocks.stream_type(), embedding_scale);
  for (std::uint32_t i = 0; i < encoder.shape.layers; ++i) stream = blocks.block(i, stream);
  builder.tensor(stream.tensor).kind = Tensor::Kind::kOutput;
  return std::move(builder).take();
}

}  // namespace systole::model
