#pragma once

#include <string>

#include "model/integer/integer_text.h"
#include "model/integer/integer_vit.h"

namespace systole::model {

/// The part of visit_vit() for the auto-encoder on Q or K.
template <typename Visitor, typename Link>
void visit_link(Visitor& visitor, const std::string& prefix, const std::string& operand, Link& link,
                const IntegerEncoder& encoder) {
  const EncoderShape& shape = encoder.shape;
  if (!encoder.folded_encoders) {
    visitor.linear(prefix + "encoder_" + operand, link.encoder, shape.latent_heads, shape.heads);
  }
  visitor.scale(prefix + "encoder_" + operand, link.latent_scale);
  visitor.linear(prefix + "decoder_" + operand, link.decoder, shape.heads, shape.latent_heads);
  visitor.scale(prefix + "decoder_" + operand, link.scale);
}

/// The part of visit_vit() for the blocks and what they share; `tokens` are those of a mask.
template <typename Visitor, typename Encoder>
void visit_encoder(Visitor& visitor, Encoder& encoder, std::uint32_t tokens) {
  const EncoderShape& shape = encoder.shape;
  const std::uint32_t width = shape.width;
  visitor.factor("softmax", encoder.exp_to_code);
  for (std::size_t i = 0; i < encoder.blocks.size(); ++i) {
    auto& block = encoder.blocks[i];
    const std::string prefix = "blocks." + std::to_string(i) + ".";
    visitor.norm(prefix + "norm1", block.norm1, width);
    visitor.linear(prefix + "attn.qkv", block.qkv, encoder.qkv_outputs(), width);
    if (shape.latent_heads != 0) {
      visit_link(visitor, prefix + "attn.", "q", block.query_link, encoder);
      visit_link(visitor, prefix + "attn.", "k", block.key_link, encoder);
    }
    visitor.mask(prefix + "attn.keep_mask", block.keep, shape.heads, tokens);
    visitor.scale(prefix + "attn.query", block.scales.query);
    visitor.scale(prefix + "attn.key", block.scales.key);
    visitor.scale(prefix + "attn.value", block.scales.value);
    visitor.factor(prefix + "attn.score", block.score);
    visitor.factor(prefix + "attn.context", block.context);
    visitor.scale(prefix + "attn.context", block.scales.context);
    visitor.linear(prefix + "attn.proj", block.proj, width, width);
    visitor.scale(prefix + "attn.residual", block.scales.attention_residual);
    visitor.norm(prefix + "norm2", block.norm2, width);
    visitor.linear(prefix + "mlp.fc1", block.fc1, shape.hidden, width);
    visitor.scale(prefix + "mlp.fc1", block.scales.gelu_in);
    visitor.number(prefix + "mlp.gelu.b", block.gelu.b);
    visitor.number(prefix + "mlp.gelu.c", block.gelu.c);
    visitor.number(prefix + "mlp.gelu.one", block.gelu.one);
    visitor.factor(prefix + "mlp.gelu", block.gelu.output);
    visitor.scale(prefix + "mlp.gelu", block.scales.gelu_out);
    visitor.linear(prefix + "mlp.fc2", block.fc2, width, shape.hidden);
    visitor.scale(prefix + "mlp.residual", block.scales.mlp_residual);
    if (shape.post_norm) {
      visitor.factor(prefix + "attn.identity", block.attention_identity);
      visitor.factor(prefix + "mlp.identity", block.mlp_identity);
    }
  }
}

/// Visits every constant of an integer network under its name in the file: the one list of them,
/// for writing and for reading. `Vit` is IntegerVit or const IntegerVit, its shape, what is folded
/// and the number of its blocks are set. A visitor has
///   linear(name, layer, outputs, inputs), norm(name, norm, width), factor(name, dyadic),
///   table(name, values, rows, cols), number(name, int64), scale(name, double),
///   mask(name, keep, heads, tokens).
template <typename Visitor, typename Vit>
void visit_vit(Visitor& visitor, Vit& vit) {
  const std::uint32_t width = vit.shape.encoder.width;
  visitor.linear("patch_embed", vit.patch_embed, width, vit.shape.patch_samples());
  visitor.table("position", vit.position, vit.shape.tokens(), width);
  visitor.scale("embedding", vit.embedding_scale);
  visit_encoder(visitor, vit.encoder, vit.shape.tokens());
  visitor.norm("norm", vit.norm, width);
  visitor.linear("head", vit.head, vit.shape.classes, width);
  visitor.scale("logits", vit.logit_scale);
}

/// The same for IntegerText or const IntegerText.
template <typename Visitor, typename Text>
void visit_text(Visitor& visitor, Text& text) {
  const std::uint32_t width = text.shape.encoder.width;
  visitor.table("word", text.word, text.shape.vocabulary, width);
  visitor.table("position", text.position, text.shape.positions, width);
  if (text.shape.token_types > 1) {
    visitor.table("token_type", text.token_type, text.shape.token_types, width);
  }
  visitor.scale("embedding", text.embedding_scale);
  visit_encoder(visitor, text.encoder, 0);
  visitor.norm("norm", text.norm, width);
  if (!text.head) return;
  auto& head = *text.head;
  visitor.linear("head.dense", head.dense, width, width);
  if (head.function == HeadFunction::kTanh) {
    visitor.factor("head.tanh.argument", head.argument);
    visitor.factor("head.tanh.output", head.output);
    visitor.number("head.tanh.fraction_bits", head.fraction_bits);
  }
  visitor.scale("head.pooled", head.pooled_scale);
  visitor.linear("head.classes", head.classes, text.shape.classes, width);
  visitor.scale("logits", head.logit_scale);
}

}  // namespace systole::model
