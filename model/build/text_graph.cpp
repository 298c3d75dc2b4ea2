#include "model/build/text_graph.h"

#include <utility>

#include "model/build/encoder_blocks.h"
#include "model/graph/graph_builder.h"
#include "model/graph/stages.h"

namespace systole::model {
namespace {

/// The logits of the text whose states are `stream`: the head reads its first token alone.
View append_head(GraphBuilder& builder, EncoderBlocks& blocks, const IntegerText& text,
                 View stream) {
  const IntegerTextHead& head = *text.head;
  stream.rows = 1;
  const bool tanh = head.function == HeadFunction::kTanh;
  const View dense =
      blocks.linear("pooler", blocks.operand("class", stream), head.dense,
                    tanh ? kTanhInputBits : kOperandBits, tanh ? hw::DType::kS16 : hw::DType::kS8);
  builder.tensor(dense.tensor).scale = tanh ? kTanhInputScale : head.pooled_scale;
  const View pooled = tanh ? builder.stage("pooler.tanh", dense,
                                           tanh_stage(head.tanh(), kOperandBits), hw::DType::kS8)
                           : builder.stage("pooler.relu", dense,
                                           hw::default_stage(hw::StageOp::kRelu), hw::DType::kS8);
  builder.tensor(pooled.tensor).scale = head.pooled_scale;
  const View logits = blocks.linear("head", {pooled}, head.classes, kLogitBits, hw::DType::kS32);
  Tensor& output = builder.tensor(logits.tensor);
  output.name = "logits";
  output.scale = head.logit_scale;
  return logits;
}

Graph make_graph(const IntegerText& text, std::uint32_t rows, EncoderBlocks::Rows parts) {
  GraphBuilder builder(text.name);
  EncoderBlocks blocks(builder, text.encoder, parts);
  const bool post = text.shape.encoder.post_norm;
  View stream = blocks.input("embedding", rows, blocks.residual_type(), text.embedding_scale);
  if (post) stream = blocks.layer_norm("norm", stream, text.norm);
  for (std::uint32_t i = 0; i < text.shape.encoder.layers; ++i) stream = blocks.block(i, stream);
  if (!post) stream = blocks.layer_norm("norm", stream, text.norm);
  if (text.head) stream = append_head(builder, blocks, text, stream);
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
