#include "model/build/text_graph.h"

#include <utility>

#include "model/build/encoder_blocks.h"
#include "model/graph/graph_builder.h"

namespace systole::model {
namespace {

Graph make_graph(const IntegerText& text, std::uint32_t rows, EncoderBlocks::Rows parts) {
  GraphBuilder builder(text.name);
  EncoderBlocks blocks(builder, text.encoder, parts);
  const bool post = text.shape.encoder.post_norm;
  View stream = blocks.input("embedding", rows, blocks.residual_type(), text.embedding_scale);
  if (post) stream = blocks.layer_norm("norm", stream, text.norm);
  for (std::uint32_t i = 0; i < text.shape.encoder.layers; ++i) stream = blocks.block(i, stream);
  if (!post) stream = blocks.layer_norm("norm", stream, text.norm);
  builder.tensor(stream.tensor).kind = Tensor::Kind::kOutput;
  return std::move(builder).take();
}

}  // namespace

Graph make_text_graph(const IntegerText& text, std::uint32_t length) {
  return make_graph(text, length, {});
}

Graph make_text_decode_graph(const IntegerText& text, std::uint32_t positions) {
  return make_graph(text, 1, {1, positions});
}

}  // namespace systole::model
