#include "model/checkpoint/text_checkpoint.h"

#include <cstddef>
#include <optional>

#include "base/error.h"
#include "model/checkpoint/checkpoint_names.h"
#include "model/checkpoint/checkpoint_reader.h"
#include "model/checkpoint/gpt2_names.h"
#include "model/checkpoint/network_checkpoint.h"
#include "model/format/safetensors.h"

namespace systole::model {
namespace {

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

/// The head of BertForSequenceClassification, if the file has one.
std::optional<FloatTextHead> read_bert_head(CheckpointReader& reader, const std::string& prefix,
                                            TextShape& shape) {
  const std::string classifier = "classifier.weight";
  if (!reader.file().has(prefix + "pooler.dense.weight") || !reader.file().has(classifier)) {
    return std::nullopt;
  }
  const std::size_t classes = reader.dimensions(classifier, 2)[0];
  if (classes < kMinTextClasses) return std::nullopt;
  shape.classes = reader.number(classifier, classes, kMinTextClasses, kMaxTextClasses);
  const std::uint32_t width = shape.encoder.width;
  return FloatTextHead{reader.linear(prefix + "pooler.dense", width, width), HeadFunction::kTanh,
                       reader.linear("classifier", shape.classes, width)};
}

FloatBlock read_gpt2_block(CheckpointReader& reader, const Gpt2Names::Layer& names,
                           const EncoderShape& shape) {
  const std::uint32_t width = shape.width;
  FloatBlock block;
  block.norm1 = reader.norm(names.norm1, width);
  block.qkv = reader.transposed_linear(names.qkv, 3 * width, width);
  block.proj = reader.transposed_linear(names.proj, width, width);
  block.norm2 = reader.norm(names.norm2, width);
  block.fc1 = reader.transposed_linear(names.fc1, shape.hidden, width);
  block.fc2 = reader.transposed_linear(names.fc2, width, shape.hidden);
  return block;
}

FloatCross read_gpt2_cross(CheckpointReader& reader, const Gpt2Names::Layer& names,
                           std::uint32_t width) {
  return {reader.norm(names.cross_norm, width),
          reader.transposed_linear(names.cross_query, width, width),
          reader.transposed_linear(names.cross_key_value, 2 * width, width),
          reader.transposed_linear(names.cross_proj, width, width)};
}

}  // namespace

TextCheckpoint read_bert(CheckpointReader& reader, const std::string& prefix) {
  const std::string embeddings = prefix + "embeddings.";
  const std::string layers = prefix + "encoder.layer.";
  const std::string words = embeddings + "word_embeddings.weight";
  const std::string positions = embeddings + "position_embeddings.weight";
  TextCheckpoint checkpoint;
  TextShape& shape = checkpoint.shape;
  shape = shape_of_tables(reader, words, positions, layers + "0.intermediate.dense.weight", 0);
  shape.encoder.post_norm = true;
  shape.encoder.layers = count_blocks(reader.file(), layers, ".attention.self.query.weight");
  checkpoint.norm_epsilon = kBertNormEpsilon;
  const std::size_t width = shape.encoder.width;
  checkpoint.word = reader.read(words, {shape.vocabulary, width});
  checkpoint.position = reader.read(positions, {shape.positions, width});
  const std::string types = embeddings + "token_type_embeddings.weight";
  shape.token_types = reader.number(types, reader.dimensions(types, 2)[0], 1, kMaxTokenTypes);
  const std::vector<double> type = reader.read(types, {shape.token_types, width});
  for (std::size_t i = 0; i < checkpoint.position.size(); ++i) {
    checkpoint.position[i] += type[i % width];
  }
  for (std::size_t i = 0; i < type.size(); ++i) {
    checkpoint.token_type.push_back(type[i] - type[i % width]);
  }
  checkpoint.norm = reader.norm(embeddings + "LayerNorm", width);
  for (std::uint32_t i = 0; i < shape.encoder.layers; ++i) {
    checkpoint.blocks.push_back(
        read_bert_block(reader, layers + std::to_string(i) + ".", shape.encoder));
  }
  checkpoint.head = read_bert_head(reader, prefix, shape);
  return checkpoint;
}

TextCheckpoint read_gpt2(CheckpointReader& reader, const std::string& prefix, bool cross) {
  const Gpt2Names names(prefix);
  TextCheckpoint checkpoint;
  checkpoint.shape = gpt2_shape(reader, names);
  checkpoint.norm_epsilon = kGpt2NormEpsilon;
  checkpoint.gelu = GeluForm::kTanh;
  const TextShape& shape = checkpoint.shape;
  const std::size_t width = shape.encoder.width;
  checkpoint.word = reader.read(names.word, {shape.vocabulary, width});
  checkpoint.position = reader.read(names.position, {shape.positions, width});
  checkpoint.norm = reader.norm(names.norm, width);
  for (std::uint32_t i = 0; i < shape.encoder.layers; ++i) {
    const Gpt2Names::Layer layer = names.layer(i);
    checkpoint.blocks.push_back(read_gpt2_block(reader, layer, shape.encoder));
    if (cross) {
      checkpoint.blocks.back().cross = read_gpt2_cross(reader, layer, shape.encoder.width);
    }
  }
  skip_gpt2_masks(reader, names, shape.encoder.layers);
  return checkpoint;
}

TextCheckpoint load_text_checkpoint(const std::string& path) {
  const Safetensors file = Safetensors::open(path);
  if (is_network_file(file)) return read_text_checkpoint(NetworkFile(file)).text;
  const CheckpointFamily family = checkpoint_family(file);
  CheckpointReader reader(file);
  if (!is_text(family)) {
    throw hw::InputError(file.path() + ": names of " + family_name(family.names) +
                         ", expected BERT or GPT-2");
  }
  const bool bert = family.names == CheckpointNames::kBert;
  TextCheckpoint checkpoint =
      bert ? read_bert(reader, family.prefix) : read_gpt2(reader, family.prefix);
  checkpoint.path = path;
  skip_task_heads(reader, family.prefix);
  reader.check_all_used();
  return checkpoint;
}

}  // namespace systole::model
