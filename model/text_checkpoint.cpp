#include "model/text_checkpoint.h"

#include <cstddef>

#include "hw/error.h"
#include "model/checkpoint_names.h"
#include "model/checkpoint_reader.h"
#include "model/safetensors.h"

namespace systole::model {
namespace {

/// What the two tables and the MLP of the first block say; the heads are still missing.
TextShape shape_of(const CheckpointReader& reader, const std::string& word,
                   const std::string& position, const std::string& mlp, std::size_t hidden_at) {
  const auto words = reader.dimensions(word, 2);
  const auto positions = reader.dimensions(position, 2);
  TextShape shape;
  shape.vocabulary = reader.number(word, words[0], 1, kMaxVocabulary);
  shape.encoder.width = reader.number(word, words[1], 1, kMaxTextWidth);
  shape.encoder.hidden =
      reader.number(mlp, reader.dimensions(mlp, 2)[hidden_at], 1, kMaxTextHidden);
  shape.positions = reader.number(position, positions[0], 1, kMaxPositions);
  shape.encoder.heads = checkpoint_heads(reader.file(), shape.encoder.width);
  return shape;
}

FloatBlock read_bert_block(CheckpointReader& reader, const std::string& prefix,
                           const EncoderShape& shape) {
  FloatBlock block;
  block.qkv = reader.query_key_value(prefix + "attention.self.", shape.width);
  block.proj = reader.linear(prefix + "attention.output.dense", shape.width, shape.width);
  block.norm1 = reader.norm(prefix + "attention.output.LayerNorm", shape.width);
  block.fc1 = reader.linear(prefix + "intermediate.dense", shape.hidden, shape.width);
  block.fc2 = reader.linear(prefix + "output.dense", shape.width, shape.hidden);
  block.norm2 = reader.norm(prefix + "output.LayerNorm", shape.width);
  return block;
}

TextCheckpoint read_bert(CheckpointReader& reader, const std::string& prefix) {
  const std::string embeddings = prefix + "embeddings.";
  const std::string layers = prefix + "encoder.layer.";
  const std::string words = embeddings + "word_embeddings.weight";
  const std::string positions = embeddings + "position_embeddings.weight";
  TextCheckpoint checkpoint;
  TextShape& shape = checkpoint.shape;
  shape = shape_of(reader, words, positions, layers + "0.intermediate.dense.weight", 0);
  shape.encoder.post_norm = true;
  shape.encoder.layers = count_blocks(reader.file(), layers, ".attention.self.query.weight");
  checkpoint.norm_epsilon = kBertNormEpsilon;
  const std::size_t width = shape.encoder.width;
  checkpoint.word = reader.read(words, {shape.vocabulary, width});
  checkpoint.position = reader.read(positions, {shape.positions, width});
  const std::string types = embeddings + "token_type_embeddings.weight";
  const std::size_t type_count = reader.dimensions(types, 2)[0];
  const std::vector<double> type = reader.read(types, {type_count, width});
  for (std::size_t i = 0; type_count != 0 && i < checkpoint.position.size(); ++i) {
    checkpoint.position[i] += type[i % width];
  }
  checkpoint.norm = reader.norm(embeddings + "LayerNorm", width);
  for (std::uint32_t i = 0; i < shape.encoder.layers; ++i) {
    checkpoint.blocks.push_back(
        read_bert_block(reader, layers + std::to_string(i) + ".", shape.encoder));
  }
  return checkpoint;
}

FloatBlock read_gpt2_block(CheckpointReader& reader, const std::string& prefix,
                           const EncoderShape& shape) {
  const std::uint32_t width = shape.width;
  FloatBlock block;
  block.norm1 = reader.norm(prefix + "ln_1", width);
  block.qkv = reader.transposed_linear(prefix + "attn.c_attn", 3 * width, width);
  block.proj = reader.transposed_linear(prefix + "attn.c_proj", width, width);
  block.norm2 = reader.norm(prefix + "ln_2", width);
  block.fc1 = reader.transposed_linear(prefix + "mlp.c_fc", shape.hidden, width);
  block.fc2 = reader.transposed_linear(prefix + "mlp.c_proj", width, shape.hidden);
  return block;
}

TextCheckpoint read_gpt2(CheckpointReader& reader, const std::string& prefix) {
  const std::string words = prefix + "wte.weight", positions = prefix + "wpe.weight";
  const std::string layers = prefix + "h.";
  TextCheckpoint checkpoint;
  TextShape& shape = checkpoint.shape;
  shape = shape_of(reader, words, positions, layers + "0.mlp.c_fc.weight", 1);
  shape.encoder.causal = true;
  shape.encoder.layers = count_blocks(reader.file(), layers, ".attn.c_attn.weight");
  checkpoint.norm_epsilon = kGpt2NormEpsilon;
  checkpoint.gelu = GeluForm::kTanh;
  const std::size_t width = shape.encoder.width;
  checkpoint.word = reader.read(words, {shape.vocabulary, width});
  checkpoint.position = reader.read(positions, {shape.positions, width});
  checkpoint.norm = reader.norm(prefix + "ln_f", width);
  for (std::uint32_t i = 0; i < shape.encoder.layers; ++i) {
    const std::string layer = layers + std::to_string(i) + ".";
    checkpoint.blocks.push_back(read_gpt2_block(reader, layer, shape.encoder));
    reader.skip(layer + "attn.bias");  // the causal mask as a table
    reader.skip(layer + "attn.masked_bias");
  }
  return checkpoint;
}

bool begins(const std::string& text, const std::string& beginning) {
  return text.compare(0, beginning.size(), beginning) == 0;
}

/// What stands beside the network in files for a task, and buffers.
void skip_heads(CheckpointReader& reader, const std::string& prefix) {
  for (const std::string& name : reader.file().names()) {
    for (const std::string& beginning :
         {prefix + "pooler.", std::string("cls."), std::string("classifier."),
          std::string("qa_outputs."), std::string("lm_head."), std::string("score."),
          prefix + "embeddings.position_ids", prefix + "embeddings.token_type_ids"}) {
      if (begins(name, beginning)) reader.skip(name);
    }
  }
}

}  // namespace

TextCheckpoint load_text_checkpoint(const std::string& path) {
  const Safetensors file = Safetensors::open(path);
  const CheckpointFamily family = checkpoint_family(file);
  CheckpointReader reader(file);
  if (!is_text(family)) {
    throw hw::InputError(file.path() + ": a vision model, expected BERT or GPT-2");
  }
  const bool bert = family.names == CheckpointNames::kBert;
  TextCheckpoint checkpoint =
      bert ? read_bert(reader, family.prefix) : read_gpt2(reader, family.prefix);
  checkpoint.path = path;
  skip_heads(reader, family.prefix);
  reader.check_all_used();
  return checkpoint;
}

}  // namespace systole::model
