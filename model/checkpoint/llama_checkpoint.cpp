#include "model/checkpoint/llama_checkpoint.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "model/network/llama_walk.h"

namespace systole::model {
namespace {

/// Reads layers of a Llama of real numbers.
class FloatLlamaReader {
 public:
  explicit FloatLlamaReader(const NetworkFile& file) : file_(file) {}

  void linear(const NetworkNode& node, LlamaLinear& layer) const {
    const std::vector<std::size_t>& shape = file_.constants().tensor(node.inputs[1]).shape;
    layer.outputs = static_cast<std::uint32_t>(shape[0]);
    layer.inputs = static_cast<std::uint32_t>(shape[1]);
    layer.weight = floats(node.inputs[1]);
    if (node.inputs.size() > 2) layer.bias = floats(node.inputs[2]);
  }

  /// Files of Hugging Face pair feature i of a head with i + width / 2: the rows of the layer are
  /// put side by side.
  void rotated(const NetworkNode& projection, const NetworkNode& rope, LlamaLinear& layer) const {
    linear(projection, layer);
    if (attribute_or(rope, "interleaved", false)) return;
    const auto heads = rope.attributes.at("heads").get<std::size_t>();
    if (layer.outputs / heads % 2 != 0) file_.fail(rope, "heads of an odd width");
    interleave(layer.weight, heads, layer.inputs);
    if (!layer.bias.empty()) interleave(layer.bias, heads, 1);
  }
  void head_norm(const NetworkNode& node, const NetworkNode& rope, std::vector<float>& weight) {
    norm(node, weight);
    if (!attribute_or(rope, "interleaved", false)) interleave(weight, 1, 1);
  }

  void norm(const NetworkNode& node, std::vector<float>& weight) {
    weight = floats(node.inputs[1]);
    const auto epsilon = node.attributes.at("epsilon").get<double>();
    if (norms_++ != 0 && epsilon != epsilon_) {
      file_.fail(node, "attribute 'epsilon': is not that of the other rms_norms");
    }
    epsilon_ = epsilon;
  }

  void gated(const NetworkNode& activation, const NetworkNode&, const NetworkNode*,
             FloatLlamaBlock&) {
    if (!activation.is("gelu")) return;
    const GeluForm form = activation.attributes.at("form").get<std::string>() == "tanh"
                              ? GeluForm::kTanh
                              : GeluForm::kErf;
    if (gelu_.value_or(form) != form) {
      file_.fail(activation, "attribute 'form': is not that of the other gates");
    }
    gelu_ = form;
  }
  void router(const NetworkNode& node, FloatLlamaBlock& block) const { linear(node, block.router); }
  static void attention(const NetworkNode&, FloatLlamaBlock&) {}

  void words(const NetworkNode& node, double factor, LlamaCheckpoint& llama) const {
    llama.word = floats(node.inputs[1]);
    llama.word_factor = factor;
    if (!llama.shape.tied) return;
    // It is the table of words.
    llama.output.weight.clear();
    llama.output.weight.shrink_to_fit();
  }
  void output(const NetworkNode& node, LlamaCheckpoint& llama) const {
    linear(node, llama.output);
    if (!llama.output.bias.empty()) file_.fail(node, "input 'bias': expected none of the logits");
  }

  [[nodiscard]] double norm_epsilon() const { return epsilon_; }
  [[nodiscard]] GeluForm gelu() const { return gelu_.value_or(GeluForm::kTanh); }

 private:
  /// Puts feature i of each of `heads` heads beside feature i + width / 2; a feature has `row`
  /// values.
  static void interleave(std::vector<float>& values, std::size_t heads, std::size_t row) {
    const std::vector<float> from = std::exchange(values, std::vector<float>(values.size()));
    const std::size_t width = values.size() / row / heads;
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::size_t i = 0; i < width; ++i) {
        const std::size_t source = h * width + i / 2 + i % 2 * (width / 2);
        std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(source * row), row,
                    values.begin() + static_cast<std::ptrdiff_t>((h * width + i) * row));
      }
    }
  }
  [[nodiscard]] std::vector<float> floats(const std::string& name) const {
    if (file_.constants().tensor(name).dtype != FileDtype::kI8) {
      return file_.constants().as_float(name);
    }
    const std::vector<double> values = file_.reals(name);
    return {values.begin(), values.end()};
  }

  const NetworkFile& file_;
  double epsilon_ = 0.0;
  std::size_t norms_ = 0;
  std::optional<GeluForm> gelu_;
};

}  // namespace

bool is_llama(const NetworkDocument& document) {
  return std::any_of(document.nodes.begin(), document.nodes.end(),
                     [](const NetworkNode& node) { return node.is("rms_norm"); });
}

LlamaCheckpoint read_llama_checkpoint(const NetworkFile& file) {
  if (file.document().is_integer()) {
    throw hw::InputError(hw::printable(file.path()) +
                         ": a network of integers, expected one of real numbers");
  }
  const NetworkWalk walk(file);
  FloatLlamaReader reader(file);
  LlamaCheckpoint llama;
  llama.path = file.path();
  llama.name = file.document().name;
  read_llama(walk, reader, llama);
  llama.norm_epsilon = reader.norm_epsilon();
  llama.gelu = reader.gelu();
  return llama;
}

}  // namespace systole::model
