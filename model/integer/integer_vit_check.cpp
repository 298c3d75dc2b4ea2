#include "model/integer/integer_vit_check.h"

#include "base/error.h"
#include "hw/number/integer.h"
#include "model/checkpoint/keep_mask.h"
#include "model/integer/constant_check.h"
#include "model/integer/row_scales.h"

namespace systole::model {
namespace {

/// Of networks of Transformer blocks.
class Check : public ConstantCheck {
 public:
  using ConstantCheck::ConstantCheck;

  void head(const IntegerTextHead& head) const {
    linear("head.dense", head.dense);
    if (head.function == HeadFunction::kTanh) {
      factor("head.tanh.argument", head.argument, 0);
      factor("head.tanh.output", head.output, 0);
      in_range("head.tanh.fraction_bits", head.fraction_bits, hw::kMinExpFractionBits,
               hw::kMaxSiluFractionBits);
    }
    scale("head.pooled", head.pooled_scale);
    linear("head.classes", head.classes);
    scale("logits", head.logit_scale);
  }

  void link(const std::string& prefix, const std::string& operand,
            const IntegerHeadMix& link) const {
    linear(prefix + "encoder_" + operand, link.encoder);
    linear(prefix + "decoder_" + operand, link.decoder);
    scale(prefix + "encoder_" + operand, link.latent_scale);
    scale(prefix + "decoder_" + operand, link.scale);
  }

  /// That the scores leave room for pruned ones.
  void mask(const std::string& name, hw::Dyadic score, std::uint32_t head_width) const {
    try {
      static_cast<void>(prune_factor(score, head_width, multiplier_bits()));
    } catch (const hw::InputError& error) {
      throw hw::InputError(place() + ": " + name + ": " + error.what());
    }
  }

  void cross(const std::string& prefix, const IntegerCross& cross) const {
    norm(prefix + "norm", cross.norm);
    linear(prefix + "query", cross.query);
    linear(prefix + "kv", cross.key_value);
    factor(prefix + "score", cross.score, 0);
    factor(prefix + "context", cross.context, 0);
    linear(prefix + "proj", cross.proj);
    scale(prefix + "query", cross.scales.query);
    scale(prefix + "key", cross.scales.key);
    scale(prefix + "value", cross.scales.value);
    scale(prefix + "context", cross.scales.context);
    scale(prefix + "residual", cross.scales.residual);
  }

  void block(const std::string& prefix, const IntegerBlock& block, const EncoderShape& shape,
             bool row_scales) const {
    norm(prefix + "norm1", block.norm1);
    norm(prefix + "norm2", block.norm2);
    linear(prefix + "attn.qkv", block.qkv);
    factor(prefix + "attn.score", block.score, 0);
    factor(prefix + "attn.context", block.context, 0);
    linear(prefix + "attn.proj", block.proj);
    linear(prefix + "mlp.fc1", block.fc1);
    gelu(prefix + "mlp.gelu", block.gelu, value_bits(row_scales));
    linear(prefix + "mlp.fc2", block.fc2);
    if (shape.latent_heads != 0) {
      link(prefix + "attn.", "q", block.query_link);
      link(prefix + "attn.", "k", block.key_link);
    }
    if (block.cross) cross(prefix + "cross.", *block.cross);
    if (!block.keep.empty()) mask(prefix + "attn.keep_mask", block.score, shape.head_width());
    if (shape.post_norm) {
      factor(prefix + "attn.identity", block.attention_identity, 1);
      factor(prefix + "mlp.identity", block.mlp_identity, 1);
    }
  }

  void scales(const std::string& prefix, const IntegerBlock::Scales& scales) const {
    scale(prefix + "attn.query", scales.query);
    scale(prefix + "attn.key", scales.key);
    scale(prefix + "attn.value", scales.value);
    scale(prefix + "attn.context", scales.context);
    scale(prefix + "attn.residual", scales.attention_residual);
    scale(prefix + "mlp.fc1", scales.gelu_in);
    scale(prefix + "mlp.gelu", scales.gelu_out);
    scale(prefix + "mlp.residual", scales.mlp_residual);
  }
};

void check_encoder(const Check& check, const IntegerEncoder& encoder) {
  check.factor("softmax", encoder.exp_to_code, 0);
  for (std::size_t i = 0; i < encoder.blocks.size(); ++i) {
    const std::string prefix = "blocks." + std::to_string(i) + ".";
    check.block(prefix, encoder.blocks[i], encoder.shape, encoder.row_scales);
    check.scales(prefix, encoder.blocks[i].scales);
  }
}

}  // namespace

void check_integer_vit(const IntegerVit& vit, const std::string& place) {
  const Check check(place, vit.encoder.datapath);
  const hw::IntRange stream = hw::symmetric_range(vit.encoder.datapath.residual_bits);
  check.linear("patch_embed", vit.patch_embed);
  check.all_in_range("position", vit.position, stream.lo, stream.hi);
  check.scale("embedding", vit.embedding_scale);
  check.norm("norm", vit.norm);
  check_encoder(check, vit.encoder);
  check.linear("head", vit.head);
  check.scale("logits", vit.logit_scale);
}

void check_integer_text(const IntegerText& text, const std::string& place) {
  const Check check(place, text.encoder.datapath);
  const hw::IntRange stream = hw::symmetric_range(text.encoder.datapath.residual_bits);
  check.all_in_range("word", text.word, stream.lo, stream.hi);
  check.all_in_range("position", text.position, stream.lo, stream.hi);
  check.all_in_range("token_type", text.token_type, stream.lo, stream.hi);
  check.scale("embedding", text.embedding_scale);
  check.norm("norm", text.norm);
  check_encoder(check, text.encoder);
  if (text.head) check.head(*text.head);
}

void check_integer_layers(const IntegerLayers& layers, const std::string& place) {
  const Check check(place, layers.encoder.datapath);
  check.scale("embedding", layers.embedding_scale);
  check_encoder(check, layers.encoder);
}

void check_integer_seq2seq(const IntegerSeq2Seq& network, const std::string& place) {
  check_integer_text(network.encoder, place + ": encoder");
  check_integer_text(network.decoder, place + ": decoder");
  const Check check(place, network.decoder.encoder.datapath);
  check.linear("output", network.output);
  check.scale("logits", network.logit_scale);
}

}  // namespace systole::model
