#include "model/seeded/seeded_chain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "hw/description/toml_text.h"
#include "hw/number/integer.h"
#include "model/build/operator_rules.h"
#include "model/graph/elements.h"
#include "model/metadata/datapath_metadata.h"
#include "model/network/network_shapes.h"
#include "model/seeded/chain_constants.h"
#include "model/seeded/seeded_constants.h"

namespace systole::model {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMaxChainBytes = std::size_t{1} << 20;
/// Elements of an input.
constexpr std::int64_t kMostChainElements = std::int64_t{1} << 28;

/// TOML as the document of a network has it; nothing for what JSON has not.
ordered_json json_of(const toml::node& node) {
  if (const auto* value = node.as_integer()) return value->get();
  if (const auto* value = node.as_floating_point()) return value->get();
  if (const auto* value = node.as_boolean()) return value->get();
  if (const auto* value = node.as_string()) return value->get();
  ordered_json list;
  if (const auto* values = node.as_array()) {
    list = ordered_json::array();
    for (const toml::node& value : *values) list.push_back(json_of(value));
  }
  return list;
}

class ChainReader {
 public:
  ChainReader(const std::string& path, std::uint64_t seed, const hw::Machine::Datapath& datapath)
      : path_(path),
        seed_(seed),
        datapath_(datapath),
        root_(hw::parse_toml(hw::read_toml(path, kMaxChainBytes, "a chain of operators"),
                             hw::printable(path), kMaxChainBytes, "a chain of operators")),
        name_(root_.contains("name") ? text(required(root_, "name"))
                                     : std::filesystem::path(path).stem().string()),
        writer_(name_, "seeded"),
        constants_(writer_, hw::printable(path), seed, datapath) {}

  OperatorNetwork read() {
    only(root_, {"name", "inputs", "nodes"});
    writer_.set_datapath(datapath_metadata(datapath_));
    const toml::array& inputs = tables("inputs");
    for (const toml::node& input : inputs) add_input(*input.as_table());
    for (const toml::node& node : tables("nodes")) add_node(*node.as_table());
    const NetworkFile file = writer_.file(path_, last_);
    std::map<std::string, std::vector<std::uint8_t>> others;
    for (std::size_t i = 1; i < file.document().inputs.size(); ++i) {
      const std::string& input = file.document().inputs[i];
      others[input] = seeded_codes(tensor_of(input), seed_ + kOtherSeeds + i, datapath_);
    }
    return make_operator_network(file, others);
  }

 private:
  using Value = ChainValue;
  /// A node and where it is.
  struct Draft : ChainNode {
    const toml::table* table = nullptr;
    [[nodiscard]] const std::string& name() const { return node.name; }
  };

  /// Seeds of inputs after the first, away from those of inferences.
  static constexpr std::uint64_t kOtherSeeds = 1000000;

  [[noreturn]] void fail(const toml::node& node, const std::string& what) const {
    throw hw::InputError(hw::toml_place(hw::printable(path_), node.source().begin) + what);
  }
  [[noreturn]] void fail(const Draft& draft, const std::string& what) const {
    fail(*draft.table, fmt::format("node '{}': {}", hw::printable(draft.name()), what));
  }

  void only(const toml::table& table, const std::vector<std::string_view>& keys) const {
    for (const auto& [key, node] : table) {
      if (std::find(keys.begin(), keys.end(), key.str()) != keys.end()) continue;
      fail(node, fmt::format("{}: unknown key, expected one of {}",
                             hw::printable(std::string(key.str())), fmt::join(keys, ", ")));
    }
  }
  const toml::node& required(const toml::table& table, std::string_view key) const {
    if (const toml::node* node = table.get(key)) return *node;
    fail(table, fmt::format("{} is missing", key));
  }
  std::string text(const toml::node& node) const {
    if (node.as_string() == nullptr || node.as_string()->get().empty()) {
      fail(node, "found " + hw::found_text(node) + ", expected a text that is not empty");
    }
    return node.as_string()->get();
  }
  std::vector<std::string> texts(const toml::node& node) const {
    const toml::array* list = node.as_array();
    if (list == nullptr) fail(node, "found " + hw::found_text(node) + ", expected a list of names");
    std::vector<std::string> names;
    for (const toml::node& entry : *list) names.push_back(text(entry));
    return names;
  }
  std::int64_t count(const toml::node& node, std::int64_t most) const {
    const auto* value = node.as_integer();
    if (value == nullptr || value->get() < 1 || value->get() > most) {
      fail(node, fmt::format("found {}, expected a whole number from 1 to {}", hw::found_text(node),
                             most));
    }
    return value->get();
  }
  /// A list of tables, at least one.
  const toml::array& tables(std::string_view key) const {
    const toml::node& node = required(root_, key);
    const toml::array* list = node.as_array();
    if (list == nullptr || list->empty() || !list->is_homogeneous(toml::node_type::table)) {
      fail(node, fmt::format("{}: expected [[{}]] once or more", key, key));
    }
    return *list;
  }

  void add_input(const toml::table& table) {
    only(table, {"name", "type", "shape"});
    const std::string name = text(required(table, "name"));
    Value value;
    value.type = text(required(table, "type"));
    if (value.type != "s8" && value.type != "s16" && value.type != "s32") {
      fail(required(table, "type"),
           fmt::format("found '{}', expected s8, s16 or s32", hw::printable(value.type)));
    }
    const toml::node& shape = required(table, "shape");
    const toml::array* sizes = shape.as_array();
    if (sizes == nullptr || (sizes->size() != 2 && sizes->size() != 3)) {
      fail(shape, "expected [rows, columns] or [channels, height, width]");
    }
    std::int64_t elements = 1;
    for (const toml::node& size : *sizes) {
      value.shape.push_back(count(size, kMostSide));
      elements *= value.shape.back();
    }
    if (elements > kMostChainElements) {
      fail(shape, fmt::format("{} elements, expected at most {}", elements, kMostChainElements));
    }
    value.deviation = code_deviation(value.type, datapath_);
    add_value(table, name, value);
    writer_.input(name, {value.type, value.shape, 1.0 / code_deviation(value.type, datapath_)});
  }

  void add_value(const toml::table& table, const std::string& name, Value value) {
    if (!values_.emplace(name, std::move(value)).second) {
      fail(table, fmt::format("'{}': occurs twice", hw::printable(name)));
    }
    last_ = name;
  }

  void add_node(const toml::table& table) {
    ++nodes_;
    Draft draft = drafted(table);
    take_operands(draft);
    take_attributes(draft);
    try {
      constants_.fill(draft);
    } catch (const hw::InputError& error) {
      fail(draft, error.what());
    }
    draft.node.attributes = draft.attributes;
    const NetworkShape shape =
        result_shape(draft.node, draft.shapes, [&](const std::string& what) { fail(draft, what); });
    add_value(table, draft.name(), {draft.type, shape, draft.deviation});
    writer_.node(draft.name(), draft.node.op->name.data(), draft.node.inputs,
                 {draft.type, shape, 1.0 / draft.deviation}, draft.attributes);
  }

  Draft drafted(const toml::table& table) {
    Draft draft;
    draft.table = &table;
    const std::string op = text(required(table, "op"));
    draft.node.name =
        table.contains("name") ? text(required(table, "name")) : fmt::format("{}{}", op, nodes_);
    draft.node.op = find_network_op(op);
    if (draft.node.op == nullptr || !is_graph_op(draft.node) || op == "normalise") {
      std::vector<std::string_view> known;
      for (const NetworkOp& other : network_ops()) {
        NetworkNode node;
        node.op = &other;
        if (is_graph_op(node) && other.name != "normalise") known.push_back(other.name);
      }
      fail(required(table, "op"),
           fmt::format("op '{}': expected one of {}", hw::printable(op), fmt::join(known, ", ")));
    }
    return draft;
  }

  [[nodiscard]] static std::size_t activations(const NetworkOp& op) {
    const auto& inputs = op.integer.inputs;
    return static_cast<std::size_t>(std::count_if(inputs.begin(), inputs.end(), [](const auto& in) {
      return in.kind == OpInput::Kind::kActivation;
    }));
  }

  void take_operands(Draft& draft) {
    const std::size_t wanted = activations(*draft.node.op);
    const toml::table& table = *draft.table;
    if (table.contains("inputs")) {
      draft.node.inputs = texts(required(table, "inputs"));
    } else if (wanted == 1) {
      draft.node.inputs = {last_};
    }
    if (draft.node.inputs.size() != wanted) {
      fail(draft, fmt::format("inputs: found {}, expected {} for {}", draft.node.inputs.size(),
                              wanted, draft.node.op->name));
    }
    for (const std::string& input : draft.node.inputs) {
      const auto found = values_.find(input);
      if (found == values_.end()) {
        fail(draft, fmt::format("input '{}': no input and no node before it has this name",
                                hw::printable(input)));
      }
      draft.operands.push_back(&found->second);
      draft.shapes.push_back(found->second.shape);
    }
  }

  /// A list of four entries that all count.
  template <typename Counts>
  static bool are_sides(const toml::array* list, Counts counts) {
    return list != nullptr && list->size() == 4 && std::all_of(list->begin(), list->end(), counts);
  }

  /// Sizes of weights are keys of a node here.
  [[nodiscard]] static std::vector<std::string_view> size_keys(const NetworkNode& node) {
    if (node.is("linear")) return {"outputs"};
    if (node.is("convolution")) return {"outputs", "rows", "cols"};
    return {};
  }

  void take_attributes(Draft& draft) {
    std::vector<std::string_view> keys = {"name", "op", "inputs", "type"};
    for (const std::string_view key : size_keys(draft.node)) keys.push_back(key);
    for (const OpAttribute& attribute : draft.node.op->integer.attributes) {
      keys.push_back(attribute.name);
      const std::string name(attribute.name);
      if (const toml::node* node = draft.table->get(name)) {
        draft.attributes[name] = json_of(*node);
        const auto counts = [&](const toml::node& entry) {
          const auto* value = entry.as_integer();
          return value != nullptr && static_cast<double>(value->get()) >= attribute.low &&
                 static_cast<double>(value->get()) <= attribute.high;
        };
        if (attribute.kind == OpAttribute::Kind::kCount && !counts(*node)) {
          fail(*node, fmt::format("{}: found {}, expected a whole number from {} to {}", name,
                                  hw::found_text(*node), attribute.low, attribute.high));
        }
        if (attribute.kind == OpAttribute::Kind::kSides && !counts(*node) &&
            !are_sides(node->as_array(), counts)) {
          fail(*node, fmt::format("{}: found {}, expected a whole number from {} to {} or four of "
                                  "them: [top, left, bottom, right]",
                                  name, hw::found_text(*node), attribute.low, attribute.high));
        }
        if (attribute.kind == OpAttribute::Kind::kFlag && node->as_boolean() == nullptr) {
          fail(*node, fmt::format("{}: expected true or false", name));
        }
      }
    }
    only(*draft.table, keys);
    for (const std::string_view key : size_keys(draft.node)) {
      draft.sizes[std::string(key)] =
          count(required(*draft.table, key), key == "outputs" ? kMostSide : kMostKernel);
    }
    if (draft.table->contains("type")) draft.type = text(required(*draft.table, "type"));
  }

  [[nodiscard]] Tensor tensor_of(const std::string& input) const {
    const Value& value = values_.at(input);
    Tensor tensor;
    tensor.name = input;
    tensor.type = value_dtype(value.type);
    const bool picture = value.shape.size() == 3;
    tensor.rows =
        static_cast<std::uint32_t>(picture ? value.shape[1] * value.shape[2] : value.shape[0]);
    tensor.cols = static_cast<std::uint32_t>(picture ? value.shape[0] : value.shape[1]);
    return tensor;
  }

  static constexpr std::int64_t kMostSide = 1 << 16;
  static constexpr std::int64_t kMostKernel = 255;

  const std::string path_;
  const std::uint64_t seed_;
  const hw::Machine::Datapath datapath_;
  const toml::table root_;
  const std::string name_;
  NetworkWriter writer_;
  ChainConstants constants_;
  std::map<std::string, Value> values_;
  std::string last_;  ///< the value before the next node
  std::size_t nodes_ = 0;
};

}  // namespace

std::vector<std::uint8_t> seeded_codes(const Tensor& tensor, std::uint64_t seed,
                                       const hw::Machine::Datapath& datapath) {
  const bool narrow = hw::bytes_of(tensor.type) == 1;
  const double deviation = narrow ? kOperandDeviation : stream_deviation(datapath);
  const hw::IntRange range = hw::symmetric_range(narrow ? 8 : datapath.residual_bits);
  SeededNumbers numbers(seed, SeedPurpose::kInput, 0);
  std::vector<std::uint8_t> bytes(tensor.bytes());
  for (std::size_t i = 0; i < std::size_t{tensor.rows} * tensor.cols; ++i) {
    const auto value =
        static_cast<std::int32_t>(hw::saturate(std::llrint(numbers.normal(deviation)), range));
    if (!store_element(bytes.data(), i, tensor.type, value)) {
      throw std::logic_error("seeded codes: a value does not fit its type");
    }
  }
  return bytes;
}

OperatorNetwork read_chain(const std::string& path, std::uint64_t seed,
                           const hw::Machine::Datapath& datapath) {
  return ChainReader(path, seed, datapath).read();
}

}  // namespace systole::model
