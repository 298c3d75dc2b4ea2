#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "model/format/safetensors_entries.h"
#include "model/network/network_document.h"
#include "model/network/network_shapes.h"

namespace systole::model {
namespace {

class NetworkCheck {
 public:
  NetworkCheck(NetworkDocument& document, const Safetensors& file)
      : document_(document), file_(file), path_(hw::printable(file.path())) {}

  void run() {
    check_names();
    check_operands();
    sort_nodes();
    for (const NetworkNode& node : document_.nodes) check_node(node);
    check_scales();
    check_all_used();
    check_values();
  }

 private:
  using Kind = OpInput::Kind;

  [[noreturn]] void fail(const std::string& what) const {
    throw hw::InputError(path_ + ": " + what);
  }
  [[noreturn]] void fail(const NetworkNode& node, const std::string& what) const {
    fail(fmt::format("node {}: {}", in_quotes(node.name), what));
  }

  /// Nodes and values have their own names.
  void check_names() {
    for (const std::string& input : document_.inputs) {
      if (document_.tensors.count(input) == 0 || file_.has(input)) {
        fail(fmt::format("input {}: expected its type and shape in 'tensors', and no constant",
                         in_quotes(input)));
      }
      if (!made_.emplace(input, kNone).second) {
        fail(fmt::format("input {}: occurs twice", in_quotes(input)));
      }
    }
    std::set<std::string> names;
    for (std::size_t i = 0; i < document_.nodes.size(); ++i) {
      const NetworkNode& node = document_.nodes[i];
      if (!names.insert(node.name).second) fail(node, "another node has this name");
      if (file_.has(node.output)) {
        fail(node, fmt::format("output {}: is a constant", in_quotes(node.output)));
      }
      if (!made_.emplace(node.output, i).second) {
        fail(node, fmt::format("output {}: is a graph input or another node's output",
                               in_quotes(node.output)));
      }
      if (document_.tensors.count(node.output) == 0) {
        fail(node, fmt::format("output {}: expected its type and shape in 'tensors'",
                               in_quotes(node.output)));
      }
    }
    for (const auto& [name, tensor] : document_.tensors) {
      if (!file_.has(name) && made_.count(name) == 0) {
        fail(fmt::format("tensor {}: neither a constant nor a graph input nor the output of a node",
                         in_quotes(name)));
      }
    }
    for (const std::string& output : document_.outputs) {
      const auto found = made_.find(output);
      if (found == made_.end() || found->second == kNone) {
        fail(fmt::format("output {}: no node makes it", in_quotes(output)));
      }
      read_.insert(output);
    }
  }

  void check_operands() {
    for (const NetworkNode& node : document_.nodes) {
      const std::vector<OpInput>& expected = document_.form(*node.op).inputs;
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        check_operand(node, expected[i], node.inputs[i]);
        read_.insert(node.inputs[i]);
      }
    }
  }

  void check_operand(const NetworkNode& node, const OpInput& input, const std::string& name) const {
    const auto fail_here = [&](const std::string& what) {
      fail(node, fmt::format("input '{}' ({}): {}", input.name, hw::printable(name), what));
    };
    if (input.kind == Kind::kActivation) {
      if (made_.count(name) != 0) return;
      fail_here(file_.has(name) ? "is a constant, expected a graph input or a node's output"
                                : "missing: no graph input and no node's output has this name");
    }
    if (!file_.has(name)) {
      fail_here(made_.count(name) != 0 ? "is no constant, expected a tensor of the file"
                                       : "missing: the file has no tensor of this name");
    }
    const FileDtype dtype = file_.tensor(name).dtype;
    const std::vector<FileDtype> dtypes = dtypes_of(input.kind);
    if (std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end()) return;
    const auto entry = document_.tensors.find(name);
    const bool scaled = entry != document_.tensors.end() && entry->second.scale;
    if (input.kind == Kind::kReal && dtype == FileDtype::kI8 && scaled) return;
    std::vector<std::string_view> names;
    names.reserve(dtypes.size());
    for (const FileDtype known : dtypes) names.push_back(dtype_name(known));
    fail_here(fmt::format("dtype is {}, expected {}{}", dtype_name(dtype), fmt::join(names, " or "),
                          input.kind == Kind::kReal ? ", or I8 with a scale" : ""));
  }

  /// Kahn's algorithm; of the nodes that are ready the first in the file is next.
  void sort_nodes() {
    std::vector<std::size_t> waits(document_.nodes.size());
    std::vector<std::vector<std::size_t>> readers(document_.nodes.size());
    std::set<std::size_t> ready;
    for (std::size_t i = 0; i < waits.size(); ++i) {
      for (const std::string& input : document_.nodes[i].inputs) {
        const auto found = made_.find(input);
        if (found == made_.end() || found->second == kNone) continue;
        readers[found->second].push_back(i);
        ++waits[i];
      }
      if (waits[i] == 0) ready.insert(i);
    }
    std::vector<NetworkNode> sorted;
    while (!ready.empty()) {
      const std::size_t next = *ready.begin();
      ready.erase(ready.begin());
      sorted.push_back(document_.nodes[next]);
      for (const std::size_t reader : readers[next]) {
        if (--waits[reader] == 0) ready.insert(reader);
      }
    }
    for (std::size_t i = 0; i < waits.size(); ++i) {
      if (waits[i] != 0) fail(document_.nodes[i], "its inputs depend on its own output: a cycle");
    }
    document_.nodes = std::move(sorted);
  }

  [[nodiscard]] NetworkShape shape_of(const std::string& name) const {
    if (!file_.has(name)) return document_.tensors.at(name).shape;
    const std::vector<std::size_t>& shape = file_.tensor(name).shape;
    return {shape.begin(), shape.end()};
  }

  /// What an operator reads as `input` number 0; the others that are no constants have the same.
  [[nodiscard]] std::vector<std::string> input_types(const NetworkOp& op) const {
    if (op.name == "embedding" || op.name == "scaled_embedding") return {"i64"};
    if (op.name == "normalise") return {"u8"};
    if (is_picture_op(op.name) && document_.is_integer()) return {"s8", "u8"};
    if (op.name == "patches") {
      return document_.is_integer() ? std::vector<std::string>{"u8"}
                                    : std::vector<std::string>{"u8", "f32"};
    }
    if (!document_.is_integer()) return {"f32"};
    if (op.name == "linear" || op.name == "attention" || op.name == "head_mix" ||
        op.name == "relu") {
      return {"s8"};
    }
    if (op.name == "gelu") return {"s8", "s16"};
    if (op.name == "divide") return {"s8", "s16"};
    if (op.name == "weigh") return {"s32"};
    if (op.name == "rope" || op.name == "silu" || op.name == "tanh" || op.name == "multiply" ||
        op.name == "route") {
      return {"s16"};
    }
    return {"s8", "s16", "s32"};
  }

  [[nodiscard]] std::vector<std::string> output_types(const NetworkOp& op) const {
    if (!document_.is_integer()) return {"f32"};
    if (op.name == "linear" || op.name == "select_row" || op.name == "convolution" ||
        op.name == "requantise" || op.name == "divide") {
      return {"s8", "s16", "s32"};
    }
    if (op.name == "gelu" || op.name == "layer_norm" || op.name == "attention")
      return {"s8", "s16"};
    if (op.name == "head_mix" || op.name == "patches" || op.name == "quantise_rows" ||
        op.name == "rope" || op.name == "tanh" || op.name == "relu" || op.name == "normalise" ||
        op.name == "average_pool") {
      return {"s8"};
    }
    if (op.name == "route") return {"u8"};
    if (op.name == "rms_norm" || op.name == "silu") return {"s16"};
    return {"s16", "s32"};
  }

  void require_type(const NetworkNode& node, const std::string& role, const std::string& name,
                    const std::vector<std::string>& types) const {
    const std::string& type = document_.tensors.at(name).type;
    if (std::find(types.begin(), types.end(), type) != types.end()) return;
    fail(node, fmt::format("{} ({}): type is {}, expected {}", role, hw::printable(name), type,
                           fmt::join(types, " or ")));
  }

  void check_node(const NetworkNode& node) const {
    const std::vector<OpInput>& expected = document_.form(*node.op).inputs;
    std::vector<NetworkShape> shapes;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      shapes.push_back(shape_of(node.inputs[i]));
      if (expected[i].kind != Kind::kActivation) continue;
      const bool shares = document_.is_integer() && expected[i].name == "shares";
      require_type(node, fmt::format("input '{}'", expected[i].name), node.inputs[i],
                   shares ? std::vector<std::string>{"u8"} : input_types(*node.op));
    }
    const bool keeps_type = document_.is_integer() && (node.is("max_pool") || node.is("pad"));
    require_type(node, "output", node.output,
                 keeps_type ? std::vector{document_.tensors.at(node.inputs[0]).type}
                            : output_types(*node.op));
    const NetworkShape shape =
        result_shape(node, shapes, [&](const std::string& what) { fail(node, what); });
    const NetworkShape& declared = document_.tensors.at(node.output).shape;
    if (shape == declared) return;
    fail(node, fmt::format("output ({}): shape is {}, expected {}", hw::printable(node.output),
                           network_shape_text(declared), network_shape_text(shape)));
  }

  void check_scales() {
    for (const auto& [name, tensor] : document_.tensors) {
      if (!tensor.scale || !tensor.scale->axis) continue;
      const std::string place = fmt::format("tensor {}: 'scale'", in_quotes(name));
      const NetworkShape shape = shape_of(name);
      const std::string& values = tensor.scale->values;
      if (*tensor.scale->axis >= shape.size() || shape[*tensor.scale->axis] == kTokens) {
        fail(fmt::format("{}: axis {} of shape {} has no fixed size", place, *tensor.scale->axis,
                         network_shape_text(shape)));
      }
      if (!file_.has(values)) {
        fail(fmt::format("{}: missing: the file has no tensor {}", place, in_quotes(values)));
      }
      (void)file_.expect(values, kFloatDtypes,
                         {static_cast<std::size_t>(shape[*tensor.scale->axis])});
      for (const float value : file_.as_float(values)) {
        if (value > 0 && std::isfinite(value)) continue;
        fail(fmt::format("{}: {} has the value {}, expected finite numbers above 0", place,
                         in_quotes(values), value));
      }
      read_.insert(values);
    }
  }

  void check_all_used() const {
    for (const NetworkNode& node : document_.nodes) {
      if (read_.count(node.output) == 0) {
        fail(node, "no node reads its output, and it is none of the network");
      }
    }
    for (const std::string& input : document_.inputs) {
      if (read_.count(input) == 0)
        fail(fmt::format("input {}: no node reads it", in_quotes(input)));
    }
    for (const std::string& name : file_.names()) {
      if (read_.count(name) == 0) {
        fail(fmt::format("tensor {}: no node reads it", in_quotes(name)));
      }
    }
  }

  /// Real constants are finite.
  void check_values() const {
    for (const std::string& name : file_.names()) {
      const FileDtype dtype = file_.tensor(name).dtype;
      if (std::find(kFloatDtypes.begin(), kFloatDtypes.end(), dtype) == kFloatDtypes.end())
        continue;
      const std::vector<float> values = file_.as_float(name);
      const auto bad = std::find_if(values.begin(), values.end(),
                                    [](float value) { return !std::isfinite(value); });
      if (bad != values.end()) {
        fail(fmt::format("tensor {}: element {} is not finite", in_quotes(name),
                         bad - values.begin()));
      }
    }
  }

  static constexpr std::size_t kNone = ~std::size_t{0};

  NetworkDocument& document_;
  const Safetensors& file_;
  std::string path_;
  std::map<std::string, std::size_t> made_;  ///< activation to its node; kNone: graph input
  std::set<std::string> read_;               ///< by a node or by who uses the network
};

}  // namespace

void check_network(NetworkDocument& document, const Safetensors& file) {
  NetworkCheck(document, file).run();
}

}  // namespace systole::model
