#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "hw/number/integer.h"
#include "model/checkpoint/keep_mask.h"
#include "model/integer/integer_network.h"
#include "model/integer/integer_vit_check.h"
#include "model/metadata/datapath_metadata.h"
#include "model/metadata/text_shape.h"
#include "model/network/embedding_walk.h"
#include "model/network/network_ops.h"
#include "model/network/network_walk.h"

namespace systole::model {
namespace {

std::int32_t limited(std::int64_t value) {
  return static_cast<std::int32_t>(hw::saturate(value, hw::full_range(8 * sizeof(std::int32_t))));
}

/// Reads layers of an integer network, and the scales of what they give.
class IntegerLayerReader {
 public:
  IntegerLayerReader(const NetworkFile& file, IntegerEncoder& encoder)
      : file_(file), encoder_(encoder) {
    encoder.datapath = network_datapath(file);
  }

  void linear(const NetworkNode& node, IntegerLinear& layer) const {
    if (node.inputs.size() > kUngroupedOperands) {
      file_.fail(node, "input 'group_scale': expected weights in groups in Llamas alone");
    }
    read_linear(file_, node, layer);
  }

  void norm(const NetworkNode& node, IntegerLayerNorm& norm) {
    norm.multiplier = file_.constants().copy<std::int32_t>(node.inputs[1]);
    norm.addend = file_.constants().copy<std::int32_t>(node.inputs[2]);
    norm.shift = node.attributes.at("shift").get<std::uint32_t>();
    norm.scale = file_.scale_of(node.output);
    operands_.push_back({&node, node.output});
  }

  void gelu(const NetworkNode& node, IntegerBlock& block) {
    operands_.push_back({&node, node.inputs[0]});
    operands_.push_back({&node, node.output});
    block.gelu = gelu_of(node);
    block.scales.gelu_in = file_.scale_of(node.inputs[0]);
    block.scales.gelu_out = file_.scale_of(node.output);
  }

  void attention(const NetworkNode& node, IntegerBlock& block) {
    block.score = factor_of(node, "score");
    block.context = factor_of(node, "context");
    block.scales.context = file_.scale_of(node.output);
    const hw::Dyadic code = factor_of(node, "exp_to_code");
    if (std::exchange(has_code_, true) && !(code == encoder_.exp_to_code)) {
      file_.fail(node, "attribute 'exp_to_code': is not that of the block after it");
    }
    encoder_.exp_to_code = code;
    if (node.inputs.size() == 4) {
      block.keep = read_keep_mask(file_.constants(), node.inputs[3],
                                  node.attributes.at("heads").get<std::size_t>(),
                                  static_cast<std::size_t>(file_.shape_of(node.output)[0]));
    }
  }

  void cross(const CrossNodes& nodes, IntegerBlock& block) {
    IntegerCross& cross = block.cross.emplace();
    norm(*nodes.norm, cross.norm);
    linear(*nodes.query, cross.query);
    linear(*nodes.key, cross.key_value);
    append(*nodes.value, cross.key_value);
    linear(*nodes.proj, cross.proj);
    IntegerBlock same;
    attention(*nodes.attention, same);
    cross.score = same.score;
    cross.context = same.context;
    static_cast<void>(identity(*nodes.add, false));
    cross.scales = {file_.scale_of(nodes.query->output), file_.scale_of(nodes.key->output),
                    file_.scale_of(nodes.value->output), same.scales.context,
                    file_.scale_of(nodes.add->output)};
  }

  void query_key_value(const NetworkNode& query, const NetworkNode& key, const NetworkNode& value,
                       IntegerBlock& block) const {
    linear(query, block.qkv);
    append(key, block.qkv);
    append(value, block.qkv);
    block.scales.query = file_.scale_of(query.output);
    block.scales.key = file_.scale_of(key.output);
    block.scales.value = file_.scale_of(value.output);
  }

  void encoder(const NetworkNode& node, IntegerHeadMix& link) const {
    linear(node, link.encoder);
    link.latent_scale = file_.scale_of(node.output);
  }
  void decoder(const NetworkNode& node, IntegerHeadMix& link) const {
    linear(node, link.decoder);
    link.scale = file_.scale_of(node.output);
    // That of a folded encoder is the scale of the projection.
    link.latent_scale = file_.scale_of(node.inputs[0]);
  }

  void add1(const NetworkNode& node, IntegerBlock& block, bool post) const {
    block.scales.attention_residual = file_.scale_of(node.output);
    if (identity(node, post)) block.attention_identity = factor_of(node, "factor");
  }
  void add2(const NetworkNode& node, IntegerBlock& block, bool post) const {
    block.scales.mlp_residual = file_.scale_of(node.output);
    if (identity(node, post)) block.mlp_identity = factor_of(node, "factor");
  }

  /// The layers of `ends`, which has a head.
  [[nodiscard]] IntegerTextHead head(const TextEnds& ends) const {
    IntegerTextHead head;
    linear(*ends.dense, head.dense);
    linear(*ends.classes, head.classes);
    if (ends.function->is("tanh")) {
      head.argument = factor_of(*ends.function, "argument");
      head.output = factor_of(*ends.function, "factor");
      head.fraction_bits = ends.function->attributes.at("fraction_bits").get<std::int64_t>();
    } else {
      head.function = HeadFunction::kRelu;
    }
    head.pooled_scale = file_.scale_of(ends.function->output);
    head.logit_scale = file_.scale_of(ends.classes->output);
    return head;
  }

  /// That all values which LayerNorms and GELUs give or read have the width of the network's.
  void check_widths() const {
    const std::string expected = encoder_.row_scales ? "s16" : "s8";
    for (const auto& [node, value] : operands_) {
      const std::string& type = file_.document().tensors.at(value).type;
      if (type == expected) continue;
      file_.fail(*node, value + ": type is " + type + ", expected " + expected +
                            (encoder_.row_scales ? " where rows have scales" : ""));
    }
  }

  [[nodiscard]] std::vector<std::int32_t> words(const std::string& name) const {
    return file_.constants().copy<std::int32_t>(name);
  }

 private:
  /// The outputs of a layer after those of `layer`.
  void append(const NetworkNode& node, IntegerLinear& layer) const {
    IntegerLinear part;
    linear(node, part);
    const auto add = [](auto& to, const auto& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    add(layer.weight.edit(), part.weight);
    add(layer.bias, part.bias);
    add(layer.factor, part.factor);
    layer.outputs += part.outputs;
    layer.int4 = layer.int4 && part.int4;
  }

  [[nodiscard]] bool identity(const NetworkNode& node, bool post) const {
    const bool has = node.attributes.contains("factor");
    if (has == post) return has;
    file_.fail(node, post ? "attribute 'factor' is missing, expected that of the identity"
                          : "attribute 'factor': expected none in a pre-norm block");
  }

  const NetworkFile& file_;
  IntegerEncoder& encoder_;
  bool has_code_ = false;
  std::vector<std::pair<const NetworkNode*, std::string>> operands_;
};

/// Reads what the vision models, texts and mere layers have in common; the value that the first
/// block reads.
template <typename Network>
std::string read_encoder(const NetworkWalk& walk, IntegerLayerReader& reader,
                         const NetworkNode& place, const std::string& value, Network& network,
                         std::string* memory = nullptr) {
  IntegerEncoder& encoder = network.encoder;
  network.name = walk.file().document().name;
  network.source = walk.file().document().source;
  const WalkedEncoder found = read_blocks(walk, reader, place, value, encoder.blocks);
  encoder.shape = found.shape;
  encoder.folded_encoders = found.folded_encoders;
  encoder.row_scales = found.row_scales;
  if (memory != nullptr) *memory = found.memory;
  if (memory == nullptr && !found.memory.empty()) {
    walk.file().fail(
        place, "its blocks attend to another text, expected input " + std::string(kTargetIds));
  }
  return found.entry;
}

/// The node that makes what the first block reads, or in a post-norm network the node before its
/// LayerNorm.
const NetworkNode& read_first_norm(const NetworkWalk& walk, IntegerLayerReader& reader,
                                   const NetworkNode& place, const std::string& entry,
                                   const EncoderShape& shape, IntegerLayerNorm& norm) {
  const NetworkNode* node = walk.file().producer(entry);
  if (node == nullptr) walk.file().fail(place, "the blocks before it read a graph input");
  if (!shape.post_norm) return *node;
  if (!node->is("layer_norm")) {
    walk.file().fail(*node, "expected a layer_norm of the embedding before post-norm blocks");
  }
  reader.norm(*node, norm);
  node = walk.file().producer(node->inputs[0]);
  if (node == nullptr) walk.file().fail(place, "the blocks before it read a graph input");
  return *node;
}

}  // namespace

std::vector<hw::Dyadic> read_factors(const NetworkFile& file, const NetworkNode& node,
                                     std::size_t first) {
  const auto multipliers = file.constants().copy<std::int32_t>(node.inputs[first]);
  const auto shifts = file.constants().copy<std::int8_t>(node.inputs[first + 1]);
  std::vector<hw::Dyadic> factors;
  factors.reserve(multipliers.size());
  for (std::size_t i = 0; i < multipliers.size(); ++i) {
    factors.push_back({multipliers[i], shifts[i]});
  }
  return factors;
}

void read_linear(const NetworkFile& file, const NetworkNode& node, IntegerLinear& layer,
                 bool may_have_bits) {
  if (!may_have_bits && node.attributes.contains("bits")) {
    file.fail(node, "attribute 'bits': expected in graphs without attention alone");
  }
  const std::vector<std::size_t>& shape = file.constants().tensor(node.inputs[1]).shape;
  layer.outputs = static_cast<std::uint32_t>(shape[0]);
  layer.inputs = static_cast<std::uint32_t>(shape[1]);
  layer.weight = file.constants().share<std::int8_t>(node.inputs[1]);
  layer.bias = file.constants().copy<std::int32_t>(node.inputs[2]);
  layer.factor = read_factors(file, node, 3);
  layer.int4 = layer.fits_int4();
}

hw::Machine::Datapath network_datapath(const NetworkFile& file) {
  if (!file.document().is_integer()) {
    throw hw::InputError(hw::printable(file.path()) +
                         ": a network of real numbers, expected one of integers: systole quantise "
                         "makes it");
  }
  const std::string place = hw::printable(file.path()) + ": datapath";
  const hw::Machine::Datapath datapath = read_datapath({file.document().datapath, place});
  const std::map<std::string, std::string> known = datapath_metadata(datapath);
  for (const auto& [key, value] : file.document().datapath) {
    if (known.count(key) == 0) {
      throw hw::InputError(place + " '" + hw::printable(key) + "': unknown key");
    }
  }
  return datapath;
}

IntegerKind integer_kind(const NetworkDocument& document) {
  const auto has = [&](const char* op) {
    return std::any_of(document.nodes.begin(), document.nodes.end(),
                       [&](const NetworkNode& node) { return node.is(op); });
  };
  if (has("patches")) return IntegerKind::kVit;
  if (has("rms_norm")) return IntegerKind::kLlama;
  const std::vector<std::string>& inputs = document.inputs;
  if (std::find(inputs.begin(), inputs.end(), kTargetIds) != inputs.end()) {
    return IntegerKind::kSeq2Seq;
  }
  if (has("embedding")) return IntegerKind::kText;
  const bool pictures =
      std::any_of(document.nodes.begin(), document.nodes.end(),
                  [](const NetworkNode& node) { return is_picture_op(node.op->name); });
  return has("attention") && !pictures ? IntegerKind::kLayers : IntegerKind::kOperators;
}

IntegerVit read_vit_network(const NetworkFile& file) {
  const NetworkWalk walk(file);
  IntegerVit vit;
  IntegerLayerReader reader(file, vit.encoder);
  const VitEnds ends = vit_ends(walk);
  reader.linear(*ends.head, vit.head);
  vit.logit_scale = file.scale_of(ends.head->output);
  if (ends.norm != nullptr) reader.norm(*ends.norm, vit.norm);
  const std::string entry = read_encoder(walk, reader, *ends.row, ends.blocks_end, vit);
  const NetworkNode& sum =
      read_first_norm(walk, reader, *ends.row, entry, vit.encoder.shape, vit.norm);
  const PictureEmbedding embedding = picture_embedding(walk, sum);
  vit.shape = picture_shape(walk, embedding, *ends.head, vit.encoder.shape);
  reader.linear(*embedding.projection, vit.patch_embed);
  vit.position = reader.words(sum.inputs[1]);
  const std::vector<std::int32_t> token = reader.words(embedding.token->inputs[1]);
  std::transform(token.begin(), token.end(), vit.position.begin(), vit.position.begin(),
                 [](std::int64_t a, std::int64_t b) { return limited(a + b); });
  vit.embedding_scale = file.scale_of(sum.output);
  if (vit.encoder.row_scales) {
    file.fail(*ends.head, "rows of the blocks before it have scales: of networks of texts alone");
  }
  reader.check_widths();
  check_integer_vit(vit, file.path());
  return vit;
}

IntegerText read_text(const NetworkWalk& walk, const NetworkNode& end, std::string* memory,
                      const char* ids) {
  const NetworkFile& file = walk.file();
  const TextEnds ends = text_ends(walk, end);
  const NetworkNode& last = *ends.last;
  IntegerText text;
  IntegerLayerReader reader(file, text.encoder);
  if (ends.classes != nullptr) text.head = reader.head(ends);
  const bool has_norm = !walk.ending(last.output).is_block;
  if (has_norm) {
    if (!last.is("layer_norm")) file.fail(last, "expected the layer_norm after the last block");
    reader.norm(last, text.norm);
  }
  const std::string entry =
      read_encoder(walk, reader, last, has_norm ? last.inputs[0] : last.output, text, memory);
  if (has_norm == text.encoder.shape.post_norm) {
    file.fail(last, "expected a layer_norm after the last block of a pre-norm network alone");
  }
  const NetworkNode& sum =
      read_first_norm(walk, reader, last, entry, text.encoder.shape, text.norm);
  const TextEmbedding embedding = text_embedding(walk, sum);
  if (ids != nullptr && embedding.word->inputs[0] != ids) {
    file.fail(*embedding.word, "expected the words of " + std::string(ids));
  }
  text.embedding_scale = file.scale_of(sum.output);
  text.word = reader.words(embedding.word->inputs[1]);
  const std::size_t width = text.encoder.shape.width;
  const std::vector<std::int32_t> table = reader.words(embedding.position->inputs[0]);
  const auto offset = embedding.position->attributes.at("offset").get<std::size_t>();
  text.position.assign(table.begin() + static_cast<std::ptrdiff_t>(offset * width), table.end());
  if (embedding.token_type != nullptr) {
    // As IntegerText has it: type 0 is a part of `position`.
    const std::vector<std::int32_t> type = reader.words(embedding.token_type->inputs[1]);
    for (std::size_t i = 0; i < text.position.size(); ++i) {
      text.position[i] = limited(std::int64_t{text.position[i]} + type[i % width]);
    }
    if (type.size() > width) {
      for (std::size_t i = 0; i < type.size(); ++i) {
        text.token_type.push_back(limited(std::int64_t{type[i]} - type[i % width]));
      }
    }
    text.shape.token_types = rows_of_constant(file, embedding.token_type->inputs[1]);
  }
  text.shape.encoder = text.encoder.shape;
  text.shape.classes = text_classes(walk, ends, text.encoder.shape.width);
  text.shape.vocabulary = rows_of_constant(file, embedding.word->inputs[1]);
  text.shape.positions = static_cast<std::uint32_t>(text.position.size() / width);
  check_text_shape(walk, sum, text.shape.vocabulary, text.shape.positions, text.shape.token_types,
                   text.shape.encoder);
  reader.check_widths();
  if (ends.dense != nullptr &&
      (&walk.coded(*ends.dense) != ends.dense) != text.encoder.row_scales) {
    file.fail(*ends.dense, "whether its row has a scale is not as in the blocks before it");
  }
  check_integer_text(text, file.path());
  return text;
}

IntegerText read_text_network(const NetworkFile& file) {
  const NetworkWalk walk(file);
  return read_text(walk, walk.last(), nullptr);
}

IntegerLayers read_layers_network(const NetworkFile& file) {
  const NetworkWalk walk(file);
  const NetworkNode& last = walk.last();
  IntegerLayers layers;
  IntegerLayerReader reader(file, layers.encoder);
  const std::string entry = read_encoder(walk, reader, last, last.output, layers);
  if (!walk.is_input(entry)) {
    file.fail(*file.producer(entry), "expected the graph input before the first block");
  }
  const NetworkShape shape = file.shape_of(entry);
  constexpr std::int64_t kMostLength = 1 << 16;
  if (shape[0] == kTokens || shape[0] > kMostLength) {
    file.fail(last, "expected a fixed number of tokens, at most 65536");
  }
  check_blocks(walk, last, layers.encoder.shape);
  layers.length = static_cast<std::uint32_t>(shape[0]);
  layers.embedding_scale = file.scale_of(entry);
  reader.check_widths();
  check_integer_layers(layers, file.path());
  return layers;
}

}  // namespace systole::model
