#include "model/build/operator_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "hw/number/dyadic.h"
#include "hw/number/integer.h"
#include "model/build/operator_rules.h"
#include "model/graph/graph_builder.h"
#include "model/graph/graph_check.h"
#include "model/integer/integer_network.h"

namespace systole::model {
namespace {

class OperatorLowering {
 public:
  OperatorLowering(const NetworkFile& file,
                   const std::map<std::string, std::vector<std::uint8_t>>& others)
      : file_(file),
        others_(others),
        datapath_(network_datapath(file)),
        builder_(file.document().name),
        rules_(file, datapath_, builder_, values_) {}

  OperatorNetwork run() {
    const NetworkDocument& document = file_.document();
    require_one_result();
    for (std::size_t i = 0; i < document.inputs.size(); ++i) add_input(document.inputs[i], i == 0);
    for (const NetworkNode& node : document.nodes) {
      if (!is_graph_op(node)) {
        file_.fail(node, fmt::format("op '{}': expected one that is not of Transformers alone, as "
                                     "no block of one reads it",
                                     node.op->name));
      }
      require_fixed(node);
      const View result = node.is("normalise") ? normalise(node) : rules_.append(node);
      builder_.tensor(result.tensor).scale = file_.scale_of(node.output);
      values_[node.output] = result;
    }
    Tensor& result = builder_.tensor(values_.at(document.outputs.front()).tensor);
    if (result.kind == Tensor::Kind::kInput) {
      fail("outputs: the pictures themselves, expected the result of an operator");
    }
    result.kind = Tensor::Kind::kOutput;
    OperatorNetwork network{document.name, document.source, datapath_, std::move(builder_).take(),
                            std::move(pictures_)};
    check(network.graph);
    return network;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw hw::InputError(hw::printable(file_.path()) + ": " + what);
  }

  void require_one_result() const {
    const NetworkDocument& document = file_.document();
    if (document.outputs.size() != 1) {
      fail(fmt::format("outputs: found {}, expected 1", document.outputs.size()));
    }
    if (document.inputs.size() != 1 + others_.size()) {
      fail(
          fmt::format("inputs: found {}, expected {}", document.inputs.size(), 1 + others_.size()));
    }
  }

  void require_fixed(const NetworkNode& node) const {
    const NetworkShape shape = file_.shape_of(node.output);
    if (std::count(shape.begin(), shape.end(), kTokens) == 0) return;
    file_.fail(node, "output: an open number of tokens, expected a fixed one without an embedding");
  }

  /// Names of stages that one node makes may be those of another.
  void check(const Graph& graph) const {
    try {
      check_graph(graph);
    } catch (const std::invalid_argument& error) {
      fail(error.what());
    }
  }

  void add_input(const std::string& name, bool of_inference) {
    const NetworkTensor& value = file_.document().tensors.at(name);
    if (value.type == "f32" || value.type == "i64") {
      fail(fmt::format("input '{}': type is {}, expected u8, s8, s16 or s32", hw::printable(name),
                       value.type));
    }
    Tensor tensor;
    tensor.name = name;
    const auto [rows, cols] = matrix_of(name);
    tensor.rows = rows;
    tensor.cols = cols;
    tensor.type = value_dtype(value.type);
    tensor.kind = of_inference ? Tensor::Kind::kInput : Tensor::Kind::kConstant;
    tensor.scale = file_.scale_of(name);
    if (!of_inference) tensor.data = others_.at(name);
    values_[name] = builder_.whole(builder_.add_tensor(std::move(tensor)));
    if (of_inference && value.type == "u8") take_pictures(name, value.shape);
  }

  /// Rows and columns of a value in memory: a picture has a row for each pixel.
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> matrix_of(const std::string& name) const {
    constexpr std::int64_t kMostRows = std::int64_t{1} << 30;
    const NetworkShape shape = file_.shape_of(name);
    const bool open = std::count(shape.begin(), shape.end(), kTokens) != 0;
    const bool picture = shape.size() == 3;
    if (open || (shape.size() != 2 && !picture) || (picture && shape[1] * shape[2] > kMostRows)) {
      fail(
          fmt::format("input '{}': shape is {}, expected rows and columns, or channels, height "
                      "and width",
                      hw::printable(name), network_shape_text(shape)));
    }
    const std::int64_t rows = picture ? shape[1] * shape[2] : shape[0];
    return {static_cast<std::uint32_t>(rows),
            static_cast<std::uint32_t>(picture ? shape[0] : shape[1])};
  }

  void take_pictures(const std::string& name, const NetworkShape& shape) {
    if (shape.size() != 3 || shape[1] != shape[2]) {
      fail(fmt::format("input '{}': shape is {}, expected a square picture, as its type is u8",
                       hw::printable(name), network_shape_text(shape)));
    }
    const NetworkShape result = file_.shape_of(file_.document().outputs.front());
    PictureInput input;
    input.format.channels = static_cast<std::uint32_t>(shape[0]);
    input.format.side = static_cast<std::uint32_t>(shape[1]);
    input.format.levels = kByteLevels;
    // Logits have a class in each column.
    input.format.classes = static_cast<std::uint32_t>(result.size() == 3 ? result[0] : result[1]);
    pictures_ = std::move(input);
  }

  /// What the host does: the codes of pictures are the input of all that follows.
  View normalise(const NetworkNode& node) {
    if (node.inputs[0] != file_.document().inputs.front() || !pictures_) {
      file_.fail(node, "input 'x': expected the network's picture, which the host normalises");
    }
    PictureInput& input = *pictures_;
    if (!input.multiplier.empty()) file_.fail(node, "a second normalise, expected one");
    input.multiplier = file_.constants().copy<std::int32_t>(node.inputs[1]);
    input.addend = file_.constants().copy<std::int32_t>(node.inputs[2]);
    input.shift = node.attributes.at("shift").get<std::uint32_t>();
    input.format.levels = node.attributes.value("levels", kByteLevels);
    for (const NetworkNode& other : file_.document().nodes) {
      if (&other != &node && other.inputs[0] == node.inputs[0]) {
        file_.fail(other, "input 'x': the picture before its normalise, expected its result");
      }
    }
    builder_.tensor(values_.at(node.inputs[0]).tensor).type = hw::DType::kS8;
    return values_.at(node.inputs[0]);
  }

  const NetworkFile& file_;
  const std::map<std::string, std::vector<std::uint8_t>>& others_;
  const hw::Machine::Datapath datapath_;
  GraphBuilder builder_;
  std::map<std::string, View> values_;
  OperatorRules rules_;
  std::optional<PictureInput> pictures_;
};

}  // namespace

std::vector<std::uint8_t> PictureInput::bytes(const Image& image) const {
  const std::size_t pixels = image.height * image.width;
  std::vector<std::uint8_t> bytes(pixels * image.channels);
  for (std::size_t c = 0; c < image.channels; ++c) {
    for (std::size_t p = 0; p < pixels; ++p) {
      std::int64_t code = image.values[c * pixels + p];
      if (!multiplier.empty()) {
        code = hw::shift_right(code * multiplier[c] + addend[c], shift, hw::Rounding::kHalfUp);
        code = hw::saturate(code, hw::symmetric_range(8));
      }
      bytes[p * image.channels + c] = static_cast<std::uint8_t>(code);  // two's complement
    }
  }
  return bytes;
}

bool is_graph_op(const NetworkNode& node) {
  return node.is("normalise") || OperatorRules::has(node.op->name);
}

OperatorNetwork make_operator_network(
    const NetworkFile& file, const std::map<std::string, std::vector<std::uint8_t>>& others) {
  return OperatorLowering(file, others).run();
}

}  // namespace systole::model
