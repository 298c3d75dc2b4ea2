#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "model/checkpoint/keep_mask.h"
#include "model/checkpoint/network_checkpoint.h"
#include "model/checkpoint/picture_normalisation.h"
#include "model/network/embedding_walk.h"
#include "model/network/network_walk.h"

namespace systole::model {
namespace {

/// Reads layers of a network of real numbers, and what all of them have in common.
class RealLayerReader {
 public:
  explicit RealLayerReader(const NetworkFile& file) : file_(file) {
    if (!file.document().is_integer()) return;
    throw hw::InputError(hw::printable(file.path()) +
                         ": a network of integers, expected one of real numbers");
  }

  void linear(const NetworkNode& node, FloatLinear& layer) const {
    const std::vector<std::size_t>& shape = file_.constants().tensor(node.inputs[1]).shape;
    layer.outputs = static_cast<std::uint32_t>(shape[0]);
    layer.inputs = static_cast<std::uint32_t>(shape[1]);
    layer.weight = file_.reals(node.inputs[1]);
    layer.bias = node.inputs.size() > 2 ? file_.reals(node.inputs[2])
                                        : std::vector<double>(layer.outputs, 0.0);
  }

  void norm(const NetworkNode& node, FloatNorm& norm) {
    norm.weight = file_.reals(node.inputs[1]);
    norm.bias = file_.reals(node.inputs[2]);
    const auto epsilon = node.attributes.at("epsilon").get<double>();
    if (has_epsilon_ && epsilon != epsilon_) {
      file_.fail(node, "attribute 'epsilon': is not that of the other layer_norms");
    }
    has_epsilon_ = true;
    epsilon_ = epsilon;
  }

  void gelu(const NetworkNode& node, FloatBlock&) {
    const GeluForm form = node.attributes.at("form") == "erf" ? GeluForm::kErf : GeluForm::kTanh;
    if (gelus_++ != 0 && form != gelu_) {
      file_.fail(node, "attribute 'form': is not that of the other gelus");
    }
    gelu_ = form;
    last_gelu_ = &node;
  }

  void attention(const NetworkNode& node, FloatBlock& block) const {
    if (node.inputs.size() < 4) return;
    block.keep = read_keep_mask(file_.constants(), node.inputs[3],
                                node.attributes.at("heads").get<std::size_t>(),
                                static_cast<std::size_t>(file_.shape_of(node.output)[0]));
  }

  void query_key_value(const NetworkNode& query, const NetworkNode& key, const NetworkNode& value,
                       FloatBlock& block) const {
    linear(query, block.qkv);
    for (const NetworkNode* node : {&key, &value}) {
      FloatLinear part;
      linear(*node, part);
      block.qkv.weight.insert(block.qkv.weight.end(), part.weight.begin(), part.weight.end());
      block.qkv.bias.insert(block.qkv.bias.end(), part.bias.begin(), part.bias.end());
      block.qkv.outputs += part.outputs;
    }
  }

  void cross(const CrossNodes& nodes, FloatBlock&) const {
    file_.fail(*nodes.attention, "expected encoder-decoders of integers alone");
  }
  void encoder(const NetworkNode& node, FloatLink& link) const { linear(node, link.encoder); }
  void decoder(const NetworkNode& node, FloatLink& link) const { linear(node, link.decoder); }
  static void add1(const NetworkNode&, FloatBlock&, bool) {}
  static void add2(const NetworkNode&, FloatBlock&, bool) {}

  [[nodiscard]] double norm_epsilon() const { return epsilon_; }
  [[nodiscard]] GeluForm gelu_form() const { return gelu_; }
  [[nodiscard]] const NetworkNode& last_gelu() const { return *last_gelu_; }

  /// The node before the blocks, and before the LayerNorm that precedes those of a post-norm
  /// network.
  const NetworkNode& first(const NetworkNode& place, const WalkedEncoder& encoder,
                           FloatNorm& first_norm) {
    const NetworkNode* node = file_.producer(encoder.entry);
    if (node != nullptr && encoder.shape.post_norm) {
      if (!node->is("layer_norm")) {
        file_.fail(*node, "expected a layer_norm of the embedding before post-norm blocks");
      }
      norm(*node, first_norm);
      node = file_.producer(node->inputs[0]);
    }
    if (node == nullptr) file_.fail(place, "the blocks before it read a graph input");
    return *node;
  }

 private:
  const NetworkFile& file_;
  bool has_epsilon_ = false;
  double epsilon_ = 0.0;
  GeluForm gelu_ = GeluForm::kErf;
  const NetworkNode* last_gelu_ = nullptr;
  std::size_t gelus_ = 0;
};

}  // namespace

bool reads_pictures(const NetworkDocument& document) {
  return std::any_of(document.nodes.begin(), document.nodes.end(),
                     [](const NetworkNode& node) { return node.is("patches"); });
}

VitCheckpoint read_vit_checkpoint(const NetworkFile& file) {
  const NetworkWalk walk(file);
  RealLayerReader reader(file);
  VitCheckpoint checkpoint;
  checkpoint.path = file.path();
  const VitEnds ends = vit_ends(walk);
  reader.linear(*ends.head, checkpoint.head);
  if (ends.norm != nullptr) reader.norm(*ends.norm, checkpoint.norm);
  const WalkedEncoder encoder =
      read_blocks(walk, reader, *ends.row, ends.blocks_end, checkpoint.blocks);
  if (reader.gelu_form() != GeluForm::kErf) {
    file.fail(reader.last_gelu(), "attribute 'form': expected \"erf\" in a vision model");
  }
  const NetworkNode& sum = reader.first(*ends.row, encoder, checkpoint.norm);
  const PictureEmbedding embedding = picture_embedding(walk, sum);
  checkpoint.shape = picture_shape(walk, embedding, *ends.head, encoder.shape);
  checkpoint.norm_epsilon = reader.norm_epsilon();
  reader.linear(*embedding.projection, checkpoint.patch_embed);
  checkpoint.cls_token = file.reals(embedding.token->inputs[1]);
  checkpoint.position = file.reals(sum.inputs[1]);
  if (embedding.normalise != nullptr) {
    const nlohmann::json& given = embedding.normalise->attributes;
    PictureNormalisation normalisation;
    normalisation.rescale = given.at("rescale").get<double>();
    normalisation.mean = given.at("mean").get<std::vector<double>>();
    normalisation.deviation = given.at("deviation").get<std::vector<double>>();
    if (normalisation.mean.size() != checkpoint.shape.channels ||
        normalisation.deviation.size() != checkpoint.shape.channels) {
      file.fail(*embedding.normalise,
                "attributes 'mean', 'deviation': expected a number for each channel");
    }
    fold_normalisation(normalisation, checkpoint.patch_embed, checkpoint.shape.patch);
    checkpoint.shape.levels = kByteLevels;
  }
  return checkpoint;
}

TextWithHead read_text_checkpoint(const NetworkFile& file) {
  const NetworkWalk walk(file);
  RealLayerReader reader(file);
  TextWithHead found;
  TextCheckpoint& checkpoint = found.text;
  checkpoint.path = file.path();
  const TextEnds ends = text_ends(walk, walk.last());
  const NetworkNode* last = ends.last;
  const NetworkNode* const head = last->is("linear") ? last : nullptr;
  if (head != nullptr) {
    if (head->inputs.size() > 2) file.fail(*head, "expected a head without bias");
    found.head = file.reals(head->inputs[1]);
    last = file.producer(head->inputs[0]);
    if (last == nullptr) file.fail(*head, "reads a graph input, expected the last layer_norm");
  }
  const bool has_norm = !walk.ending(last->output).is_block;
  if (has_norm) {
    if (!last->is("layer_norm")) {
      file.fail(*last, "expected a Transformer block or the layer_norm after the last one");
    }
    reader.norm(*last, checkpoint.norm);
  }
  const WalkedEncoder encoder = read_blocks(
      walk, reader, *last, has_norm ? last->inputs[0] : last->output, checkpoint.blocks);
  if (has_norm == encoder.shape.post_norm) {
    file.fail(*last, "expected a layer_norm after the last block of a pre-norm network alone");
  }
  const NetworkNode& sum = reader.first(*last, encoder, checkpoint.norm);
  const TextEmbedding embedding = text_embedding(walk, sum);
  TextShape& shape = checkpoint.shape;
  shape.encoder = encoder.shape;
  const std::size_t width = encoder.shape.width;
  checkpoint.word = file.reals(embedding.word->inputs[1]);
  checkpoint.position = file.reals(embedding.position->inputs[0]);
  const auto offset = embedding.position->attributes.at("offset").get<std::size_t>();
  checkpoint.position.erase(
      checkpoint.position.begin(),
      checkpoint.position.begin() + static_cast<std::ptrdiff_t>(offset * width));
  if (embedding.token_type != nullptr) {
    // As load_text_checkpoint() has it: type 0 is a part of `position`.
    const std::vector<double> type = file.reals(embedding.token_type->inputs[1]);
    for (std::size_t i = 0; i < checkpoint.position.size(); ++i) {
      checkpoint.position[i] += type[i % width];
    }
    for (std::size_t i = 0; i < type.size(); ++i) {
      checkpoint.token_type.push_back(type[i] - type[i % width]);
    }
    shape.token_types = rows_of_constant(file, embedding.token_type->inputs[1]);
  }
  shape.vocabulary = rows_of_constant(file, embedding.word->inputs[1]);
  shape.positions = static_cast<std::uint32_t>(checkpoint.position.size() / width);
  if (ends.classes != nullptr) {
    FloatTextHead& classifier = checkpoint.head.emplace();
    reader.linear(*ends.dense, classifier.dense);
    if (ends.function->is("relu")) classifier.function = HeadFunction::kRelu;
    reader.linear(*ends.classes, classifier.classes);
    shape.classes = text_classes(walk, ends, encoder.shape.width);
  }
  checkpoint.norm_epsilon = reader.norm_epsilon();
  checkpoint.gelu = reader.gelu_form();
  check_text_shape(walk, sum, shape.vocabulary, shape.positions, shape.token_types, shape.encoder);
  if (head != nullptr && found.head.size() != checkpoint.word.size()) {
    file.fail(*head, "expected a row for each word of the vocabulary");
  }
  return found;
}

}  // namespace systole::model
