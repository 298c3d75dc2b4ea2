#include "model/deeploy/deeploy_network.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/printable.h"
#include "model/format/safetensors.h"
#include "model/format/safetensors_entries.h"
#include "model/network/network_document.h"
#include "model/network/strict_json.h"

namespace systole::model {
namespace {

using nlohmann::json;

constexpr std::size_t kMostRank = 8;

std::size_t elements_of(const std::vector<std::size_t>& shape) {
  std::size_t elements = 1;
  for (const std::size_t size : shape) elements *= size;
  return elements;
}

/// Reads the parts of the document, each with its place in messages.
class Reader {
 public:
  explicit Reader(std::string place) : place_(std::move(place)) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw hw::InputError(place_ + ": " + what);
  }
  [[nodiscard]] const json& at(const json& object, const char* key) const {
    if (!object.is_object() || !object.contains(key)) fail(fmt::format("'{}' is missing", key));
    return object[key];
  }
  [[nodiscard]] std::string text(const json& object, const char* key) const {
    const json& value = at(object, key);
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
      fail(fmt::format("'{}': expected a text", key));
    }
    return value.get<std::string>();
  }
  [[nodiscard]] std::vector<std::string> texts(const json& object, const char* key) const {
    const json& value = at(object, key);
    if (!value.is_array()) fail(fmt::format("'{}': expected a list of names", key));
    std::vector<std::string> texts;
    for (const json& entry : value) {
      if (!entry.is_string()) fail(fmt::format("'{}': expected a list of names", key));
      texts.push_back(entry.get<std::string>());
    }
    return texts;
  }
  /// Of an activation.
  [[nodiscard]] std::vector<std::size_t> shape(const json& tensors, const std::string& name) const {
    const json& value = at(at(tensors, name.c_str()), "shape");
    if (!value.is_array() || value.size() > kMostRank) {
      fail(fmt::format("shape of {}: expected at most {} sizes", in_quotes(name), kMostRank));
    }
    std::vector<std::size_t> shape;
    std::size_t elements = 1;
    for (const json& entry : value) {
      const bool is_size = entry.is_number_unsigned() && entry != 0U;
      const std::uint64_t size = is_size ? entry.get<std::uint64_t>() : 0;
      if (!is_size || size > kMostDeeployElements / elements) {
        fail(fmt::format("shape of {}: expected sizes from 1, at most {} elements", in_quotes(name),
                         kMostDeeployElements));
      }
      shape.push_back(size);
      elements *= size;
    }
    return shape;
  }

 private:
  std::string place_;
};

IntegerTensor constant(const Safetensors& file, const std::string& name) {
  const TensorView& view = file.tensor(name);
  if (view.element_count() > kMostDeeployElements) {
    throw hw::InputError(fmt::format("{}: tensor {}: more than {} elements",
                                     hw::printable(file.path()), in_quotes(name),
                                     kMostDeeployElements));
  }
  IntegerTensor tensor{view.shape, {}};
  if (view.dtype == FileDtype::kI64) {
    tensor.values = file.as_int64(name);
  } else {
    const std::vector<std::int32_t> words = file.as_int32(name);
    tensor.values.assign(words.begin(), words.end());
  }
  return tensor;
}

bool fits(const IntegerTensor& tensor) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  return std::all_of(tensor.values.begin(), tensor.values.end(),
                     [](std::int64_t value) { return value >= -kMost && value <= kMost; });
}

}  // namespace

DeeployNetwork DeeployNetwork::open(const std::string& path) {
  const Safetensors file = Safetensors::open(path);
  const std::string place = hw::printable(path);
  const Reader whole(place + ": network");
  const auto text = file.metadata().find(kNetworkKey);
  if (!is_network_file(file) || text == file.metadata().end()) {
    throw hw::InputError(place + ": expected a network file");
  }
  const json root = parse_strict_json(text->second, place + ": network");
  const json& architecture = whole.at(root, "architecture");
  if (!architecture.is_object() || architecture.value("family", json()) != "deeploy") {
    whole.fail("'architecture': expected the family \"deeploy\", a network of Deeploy");
  }
  DeeployNetwork network;
  network.path_ = place;
  const json& tensors = whole.at(root, "tensors");
  const json& nodes = whole.at(root, "nodes");
  if (!nodes.is_array()) whole.fail("'nodes': expected a list");
  for (const std::string& name : file.names()) network.constants_[name] = constant(file, name);
  std::set<std::string> known;
  for (const auto& [name, tensor] : network.constants_) {
    if (!fits(tensor)) whole.fail(fmt::format("tensor {}: beyond 32 bits", in_quotes(name)));
    known.insert(name);
  }
  const auto add = [&](const Reader& where, const std::string& name) {
    if (!known.insert(name).second) {
      where.fail(fmt::format("{}: made twice", in_quotes(name)));
    }
  };
  for (const std::string& name : whole.texts(root, "inputs")) {
    add(whole, name);
    network.inputs_[name] = whole.shape(tensors, name);
  }
  for (const json& entry : nodes) {
    DeeployNode node;
    node.name = whole.text(entry, "name");
    const Reader here(fmt::format("{}: node {}", place, in_quotes(node.name)));
    node.op = here.text(entry, "op");
    const std::vector<std::string>& ops = deeploy_operators();
    if (std::find(ops.begin(), ops.end(), node.op) == ops.end()) {
      here.fail(fmt::format("op {} is not supported, expected {}", in_quotes(node.op),
                            fmt::join(ops, ", ")));
    }
    node.inputs = here.texts(entry, "inputs");
    for (const std::string& input : node.inputs) {
      if (known.count(input) == 0) {
        here.fail(fmt::format("input {}: neither a constant nor made before", in_quotes(input)));
      }
    }
    const std::vector<std::string> made = here.texts(entry, "outputs");
    if (made.size() != 1) here.fail("'outputs': expected one name");
    node.output = made.front();
    node.shape = here.shape(tensors, node.output);
    node.attributes = here.at(entry, "attributes");
    add(here, node.output);
    network.nodes_.push_back(std::move(node));
  }
  network.outputs_ = whole.texts(root, "outputs");
  for (const std::string& output : network.outputs_) {
    if (known.count(output) == 0) {
      whole.fail(fmt::format("output {}: no node makes it", in_quotes(output)));
    }
  }
  return network;
}

IntegerTensors DeeployNetwork::run(const IntegerTensors& inputs) const {
  IntegerTensors values;
  for (const auto& [name, shape] : inputs_) {
    const auto given = inputs.find(name);
    if (given == inputs.end() || given->second.values.size() != elements_of(shape)) {
      throw hw::InputError(fmt::format("{}: input {}: expected {} values", path_, in_quotes(name),
                                       elements_of(shape)));
    }
    values[name] = {shape, given->second.values};
    if (!fits(values[name])) {
      throw hw::InputError(fmt::format("{}: input {}: beyond 32 bits", path_, in_quotes(name)));
    }
  }
  for (const DeeployNode& node : nodes_) {
    std::vector<const IntegerTensor*> operands;
    for (const std::string& input : node.inputs) {
      const auto found = values.find(input);
      operands.push_back(found != values.end() ? &found->second : &constants_.at(input));
    }
    const auto fail = [&](const std::string& what) {
      throw hw::InputError(fmt::format("{}: node {}: {}", path_, in_quotes(node.name), what));
    };
    IntegerTensor result;
    try {
      result = compute(node, operands);
    } catch (const hw::InputError& error) {
      fail(error.what());
    }
    if (result.shape != node.shape) {
      fail(fmt::format("its result is {}, expected {}", shape_text(result.shape),
                       shape_text(node.shape)));
    }
    if (!fits(result)) fail("a result beyond 32 bits");
    values[node.output] = std::move(result);
  }
  return values;
}

}  // namespace systole::model
