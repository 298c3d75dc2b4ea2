#include "model/checkpoint/gpt2_names.h"

#include "model/checkpoint/checkpoint_names.h"

namespace systole::model {
namespace {

bool begins(const std::string& text, const std::string& beginning) {
  return text.compare(0, beginning.size(), beginning) == 0;
}

}  // namespace

Gpt2Names::Gpt2Names(const std::string& prefix)
    : word(prefix + "wte.weight"),
      position(prefix + "wpe.weight"),
      norm(prefix + "ln_f"),
      layers(prefix + "h.") {}

Gpt2Names::Layer Gpt2Names::layer(std::uint32_t index) const {
  const std::string name = layers + std::to_string(index) + ".";
  const std::string cross = name + "crossattention.";
  return {name + "ln_1",     name + "attn.c_attn", name + "attn.c_proj",   name + "ln_2",
          name + "mlp.c_fc", name + "mlp.c_proj",  name + "ln_cross_attn", cross + "q_attn",
          cross + "c_attn",  cross + "c_proj"};
}

TextShape shape_of_tables(const CheckpointReader& reader, const std::string& word,
                          const std::string& position, const std::string& mlp,
                          std::size_t hidden_at) {
  const auto words = reader.dimensions(word, 2);
  const auto positions = reader.dimensions(position, 2);
  TextShape shape;
  shape.vocabulary = reader.number(word, words[0], 1, kMaxVocabulary);
  shape.encoder.width = reader.number(word, words[1], 1, kMaxTextWidth);
  shape.encoder.hidden =
      reader.number(mlp, reader.dimensions(mlp, 2)[hidden_at], 1, kMaxTextHidden);
  shape.positions = reader.number(position, positions[0], 1, kMaxPositions);
  shape.encoder.heads =
      checkpoint_heads(reader.file(), shape.encoder.width, part_of_encoder_decoder(word));
  return shape;
}

TextShape gpt2_shape(const CheckpointReader& reader, const Gpt2Names& names) {
  TextShape shape =
      shape_of_tables(reader, names.word, names.position, names.layer(0).fc1 + ".weight", 1);
  shape.encoder.causal = true;
  shape.encoder.layers = count_blocks(reader.file(), names.layers, ".attn.c_attn.weight");
  return shape;
}

void skip_gpt2_masks(CheckpointReader& reader, const Gpt2Names& names, std::uint32_t layers) {
  for (std::uint32_t i = 0; i < layers; ++i) {
    const std::string layer = names.layers + std::to_string(i) + ".";
    for (const char* attention : {"attn.", "crossattention."}) {
      reader.skip(layer + attention + "bias");
      reader.skip(layer + attention + "masked_bias");
    }
  }
}

void skip_task_heads(CheckpointReader& reader, const std::string& prefix) {
  for (const std::string& name : reader.file().names()) {
    for (const std::string& beginning :
         {prefix + "pooler.", std::string("cls."), std::string("classifier."),
          std::string("qa_outputs."), std::string("lm_head."), std::string("score."),
          prefix + "embeddings.position_ids", prefix + "embeddings.token_type_ids"}) {
      if (begins(name, beginning)) reader.skip(name);
    }
  }
}

}  // namespace systole::model
