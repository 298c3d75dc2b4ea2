#include "model/network/network_document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "model/format/safetensors_entries.h"
#include "model/network/strict_json.h"

namespace systole::model {
namespace {

/// Of a list whose last `count` may be left out.
std::string optional_text(std::size_t count) {
  if (count == 0) return "";
  return count == 1 ? " (the last is optional)" : fmt::format(" (the last {} are optional)", count);
}

using nlohmann::json;

/// With the limit below, MACs of any node fit 64 bits.
constexpr std::int64_t kMostSize = std::int64_t{1} << 22;
/// Elements of a tensor: no program of this machine addresses as many.
constexpr std::int64_t kMostElements = std::int64_t{1} << 40;
constexpr std::size_t kMostRank = 4;

/// A part of the document, and where it is, for messages.
class Part {
 public:
  Part(const json& value, std::string place) : value_(value), place_(std::move(place)) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw hw::InputError(place_ + ": " + what);
  }

  [[nodiscard]] const json& value() const { return value_; }
  [[nodiscard]] bool has(const char* key) const { return value_.contains(key); }

  /// The object has these keys and no others, but for `optional`.
  void require_keys(const std::vector<std::string>& keys,
                    const std::vector<std::string>& optional) const {
    if (!value_.is_object()) fail("expected an object");
    for (const std::string& key : keys) {
      if (!value_.contains(key)) fail(fmt::format("'{}' is missing", key));
    }
    for (const auto& entry : value_.items()) {
      const auto is = [&](const std::string& key) { return key == entry.key(); };
      if (std::any_of(keys.begin(), keys.end(), is)) continue;
      if (std::any_of(optional.begin(), optional.end(), is)) continue;
      std::vector<std::string> known = keys;
      known.insert(known.end(), optional.begin(), optional.end());
      fail(fmt::format("unknown key {}, expected {}", in_quotes(entry.key()),
                       fmt::join(known, ", ")));
    }
  }

  [[nodiscard]] Part at(const std::string& key) const {
    return {value_.at(key), fmt::format("{}: '{}'", place_, key)};
  }

  [[nodiscard]] std::string text(bool may_be_empty = false) const {
    if (!value_.is_string()) fail("expected a text");
    auto text = value_.get<std::string>();
    if (text.empty() && !may_be_empty) fail("expected a text that is not empty");
    return text;
  }

  [[nodiscard]] std::vector<std::string> texts() const {
    if (!value_.is_array() || value_.empty()) fail("expected a list of one name or more");
    std::vector<std::string> texts;
    for (const json& entry : value_) texts.push_back(Part(entry, place_).text());
    return texts;
  }

  [[nodiscard]] std::int64_t count(std::int64_t low, std::int64_t high) const {
    if (value_.is_number_unsigned() &&
        value_.get<std::uint64_t>() <= static_cast<std::uint64_t>(high)) {
      const auto found = value_.get<std::int64_t>();
      if (found >= low) return found;
    }
    fail(fmt::format("found {}, expected a whole number from {} to {}", shown(), low, high));
  }

  [[nodiscard]] double real(double low, double high) const {
    const double found = value_.is_number() ? value_.get<double>() : NAN;
    if (found >= low && found <= high) return found;
    fail(fmt::format("found {}, expected a number from {} to {}", shown(), low, high));
  }

  [[nodiscard]] std::string shown() const {
    constexpr std::size_t kShown = 40;
    return hw::printable(value_.dump(-1, ' ', true, json::error_handler_t::replace), kShown);
  }

 private:
  const json& value_;
  std::string place_;
};

NetworkShape read_shape(const Part& part) {
  if (!part.value().is_array() || part.value().size() > kMostRank) {
    part.fail(fmt::format("expected a list of at most {} sizes", kMostRank));
  }
  NetworkShape shape;
  std::int64_t elements = 1;
  for (const json& entry : part.value()) {
    if (entry.is_string() && entry == kTokensWord) {
      shape.push_back(kTokens);
      continue;
    }
    if (!entry.is_number_unsigned() || entry == 0U ||
        entry.get<std::uint64_t>() > static_cast<std::uint64_t>(kMostSize)) {
      part.fail(fmt::format("found {}, expected sizes from 1 to {} or \"{}\"", part.shown(),
                            kMostSize, kTokensWord));
    }
    shape.push_back(entry.get<std::int64_t>());
    if (shape.back() > kMostElements / elements) {
      part.fail(fmt::format("{} has more than {} elements", part.shown(), kMostElements));
    }
    elements *= shape.back();
  }
  return shape;
}

NetworkScale read_scale(const Part& part) {
  NetworkScale scale;
  if (part.value().is_object()) {
    part.require_keys({"axis", "values"}, {});
    scale.axis = static_cast<std::size_t>(part.at("axis").count(0, kMostRank - 1));
    scale.values = part.at("values").text();
    return scale;
  }
  constexpr double kSmallest = 1e-300;
  scale.value = part.real(kSmallest, 1 / kSmallest);
  return scale;
}

NetworkTensor read_tensor(const Part& part, bool is_constant) {
  NetworkTensor tensor;
  if (is_constant) {
    part.require_keys({"scale"}, {});  // the rest is in the file's own header
  } else {
    part.require_keys({"type", "shape"}, {"scale"});
    tensor.type = part.at("type").text();
    static const std::set<std::string> types = {"f32", "i64", "u8", "s8", "s16", "s32"};
    if (types.count(tensor.type) == 0) {
      part.at("type").fail(
          fmt::format("found {}, expected {}", in_quotes(tensor.type), fmt::join(types, ", ")));
    }
    tensor.shape = read_shape(part.at("shape"));
  }
  if (part.has("scale")) tensor.scale = read_scale(part.at("scale"));
  return tensor;
}

void check_attribute(const Part& part, const OpAttribute& attribute) {
  switch (attribute.kind) {
    case OpAttribute::Kind::kCount:
      (void)part.count(static_cast<std::int64_t>(attribute.low),
                       static_cast<std::int64_t>(attribute.high));
      return;
    case OpAttribute::Kind::kInteger:
      if (!part.value().is_number_integer() ||
          (part.value().is_number_unsigned() &&
           part.value().get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))) {
        part.fail(fmt::format("found {}, expected a whole number", part.shown()));
      }
      return;
    case OpAttribute::Kind::kReal:
      (void)part.real(attribute.low, attribute.high);
      return;
    case OpAttribute::Kind::kReals: {
      constexpr std::size_t kMost = 512;
      if (!part.value().is_array() || part.value().empty() || part.value().size() > kMost) {
        part.fail(fmt::format("expected a list of 1 to {} numbers", kMost));
      }
      for (const json& entry : part.value()) {
        const double value = entry.is_number() ? entry.get<double>() : NAN;
        if (!(value >= attribute.low && value <= attribute.high)) {
          part.fail(fmt::format("found {}, expected numbers from {} to {}", part.shown(),
                                attribute.low, attribute.high));
        }
      }
      return;
    }
    case OpAttribute::Kind::kSides: {
      const json& all = part.value();
      const auto fits = [&](const json& side) {
        return side.is_number_integer() && side >= attribute.low && side <= attribute.high;
      };
      if (fits(all)) return;
      if (all.is_array() && all.size() == 4 && std::all_of(all.begin(), all.end(), fits)) return;
      part.fail(
          fmt::format("found {}, expected a whole number from {} to {} or four of them: "
                      "[top, left, bottom, right]",
                      part.shown(), attribute.low, attribute.high));
    }
    case OpAttribute::Kind::kFlag:
      if (!part.value().is_boolean()) part.fail("expected true or false");
      return;
    case OpAttribute::Kind::kWord: {
      if (std::count(attribute.words.begin(), attribute.words.end(), part.text()) == 0) {
        part.fail(fmt::format("found {}, expected \"{}\"", part.shown(),
                              fmt::join(attribute.words, "\" or \"")));
      }
      return;
    }
    case OpAttribute::Kind::kFactor:
      break;
  }
  // A shift has 8 bits in every file, a multiplier 32; the datapath may have less.
  const json& value = part.value();
  const auto fits = [](const json& entry, std::int64_t low, std::int64_t high) {
    if (!entry.is_number_integer()) return false;
    if (entry.is_number_unsigned() && entry.get<std::uint64_t>() > INT32_MAX) return false;
    return entry.get<std::int64_t>() >= low && entry.get<std::int64_t>() <= high;
  };
  if (!value.is_array() || value.size() != 2 || !fits(value[0], INT32_MIN, INT32_MAX) ||
      !fits(value[1], INT8_MIN, INT8_MAX)) {
    part.fail(fmt::format("found {}, expected [multiplier, shift] of 32 and 8 bits", part.shown()));
  }
}

NetworkNode read_node(const Part& part, const NetworkDocument& document) {
  part.require_keys({"name", "op", "inputs", "outputs", "attributes"}, {});
  NetworkNode node;
  node.name = part.at("name").text();
  const std::string op = part.at("op").text();
  node.op = find_network_op(op);
  const OpForm* form = node.op == nullptr ? nullptr : &document.form(*node.op);
  if (form == nullptr || form->inputs.empty()) {
    std::vector<std::string_view> known;
    for (const NetworkOp& other : network_ops()) {
      if (!document.form(other).inputs.empty()) known.push_back(other.name);
    }
    part.fail(fmt::format("op {} is not supported{}, expected {}", in_quotes(op),
                          document.is_integer() ? " in a network of integers" : "",
                          fmt::join(known, ", ")));
  }
  node.inputs = part.at("inputs").texts();
  const auto least =
      static_cast<std::size_t>(std::count_if(form->inputs.begin(), form->inputs.end(),
                                             [](const OpInput& input) { return !input.optional; }));
  if (node.inputs.size() < least || node.inputs.size() > form->inputs.size()) {
    std::vector<std::string_view> names;
    for (const OpInput& input : form->inputs) names.push_back(input.name);
    part.at("inputs").fail(fmt::format("found {}, expected {}{} for {}", node.inputs.size(),
                                       fmt::join(names, ", "), optional_text(names.size() - least),
                                       op));
  }
  const std::vector<std::string> outputs = part.at("outputs").texts();
  if (outputs.size() != 1) part.at("outputs").fail("expected one name");
  node.output = outputs.front();
  const Part attributes = part.at("attributes");
  std::vector<std::string> required, optional;
  for (const OpAttribute& attribute : form->attributes) {
    (attribute.optional ? optional : required).emplace_back(attribute.name);
  }
  attributes.require_keys(required, optional);
  for (const OpAttribute& attribute : form->attributes) {
    const std::string name(attribute.name);
    if (attributes.value().contains(name)) check_attribute(attributes.at(name), attribute);
  }
  node.attributes = attributes.value();
  return node;
}

}  // namespace

std::string network_shape_text(const NetworkShape& shape) {
  std::vector<std::string> sizes;
  sizes.reserve(shape.size());
  for (const std::int64_t size : shape) {
    sizes.push_back(size == kTokens ? kTokensWord : std::to_string(size));
  }
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

bool is_network_file(const Safetensors& file) {
  const auto format = file.metadata().find("format");
  return format != file.metadata().end() && format->second == kNetworkFormat;
}

NetworkDocument read_network_document(const Safetensors& file) {
  const std::string path = hw::printable(file.path());
  const auto text = file.metadata().find(kNetworkKey);
  if (!is_network_file(file) || text == file.metadata().end()) {
    throw hw::InputError(fmt::format("{}: metadata '{}' is missing, expected a network file", path,
                                     is_network_file(file) ? kNetworkKey : "format"));
  }
  const json root = parse_strict_json(text->second, path + ": network");
  const Part whole(root, path + ": network");
  // The version first: all else may differ in another one.
  if (!root.is_object() || !root.contains("format_version")) {
    whole.fail("'format_version' is missing");
  }
  if (root["format_version"] != kNetworkVersion) {
    whole.at("format_version")
        .fail(fmt::format("found {}, expected {}", whole.at("format_version").shown(),
                          kNetworkVersion));
  }
  whole.require_keys(
      {"format_version", "name", "source", "architecture", "inputs", "outputs", "tensors", "nodes"},
      {"datapath"});
  NetworkDocument document;
  document.name = hw::printable(whole.at("name").text());
  document.source = hw::printable(whole.at("source").text(true));
  document.architecture = whole.at("architecture").value();
  if (!document.architecture.is_object()) whole.at("architecture").fail("expected an object");
  if (whole.has("datapath")) {
    const Part datapath = whole.at("datapath");
    if (!datapath.value().is_object() || datapath.value().empty()) {
      datapath.fail("expected the keys of a machine's datapath");
    }
    for (const auto& entry : datapath.value().items()) {
      document.datapath[entry.key()] = datapath.at(entry.key()).text();
    }
  }
  document.inputs = whole.at("inputs").texts();
  document.outputs = whole.at("outputs").texts();
  if (!root["tensors"].is_object()) whole.at("tensors").fail("expected an object");
  for (const auto& entry : root["tensors"].items()) {
    const Part part(entry.value(), fmt::format("{}: tensor {}", path, in_quotes(entry.key())));
    document.tensors[entry.key()] = read_tensor(part, file.has(entry.key()));
  }
  if (!root["nodes"].is_array() || root["nodes"].empty()) {
    whole.at("nodes").fail("expected a list of one node or more");
  }
  for (const json& entry : root["nodes"]) {
    const bool named = entry.is_object() && entry.contains("name") && entry["name"].is_string();
    const std::string place =
        named ? fmt::format("{}: node {}", path, in_quotes(entry["name"].get<std::string>()))
              : fmt::format("{}: node number {}", path, document.nodes.size());
    document.nodes.push_back(read_node({entry, place}, document));
  }
  return document;
}

NetworkFile::NetworkFile(Safetensors file)
    : file_(std::move(file)), document_(read_network_document(file_)) {
  check_network(document_, file_);
  for (std::size_t i = 0; i < document_.nodes.size(); ++i) {
    producers_[document_.nodes[i].output] = i;
  }
}

const NetworkNode* NetworkFile::producer(const std::string& value) const {
  const auto found = producers_.find(value);
  return found == producers_.end() ? nullptr : &document_.nodes[found->second];
}

NetworkShape NetworkFile::shape_of(const std::string& value) const {
  if (!file_.has(value)) return document_.tensors.at(value).shape;
  const std::vector<std::size_t>& shape = file_.tensor(value).shape;
  return {shape.begin(), shape.end()};
}

double NetworkFile::scale_of(const std::string& value) const {
  const auto found = document_.tensors.find(value);
  if (found == document_.tensors.end() || !found->second.scale) return 0.0;
  return found->second.scale->value;
}

std::vector<double> NetworkFile::reals(const std::string& constant) const {
  const TensorView& view = file_.tensor(constant);
  if (view.dtype == FileDtype::kF64) return file_.copy<double>(constant);
  if (view.dtype != FileDtype::kI8) {
    const std::vector<float> values = file_.as_float(constant);
    return {values.begin(), values.end()};
  }
  // As ONNX's DequantizeLinear: a product of two float32.
  const NetworkScale& scale = document_.tensors.at(constant).scale.value();
  const auto codes = file_.copy<std::int8_t>(constant);
  const std::vector<float> scales = scale.axis
                                        ? file_.as_float(scale.values)
                                        : std::vector<float>{static_cast<float>(scale.value)};
  std::size_t inner = codes.size();  // elements for each index of the axis
  if (scale.axis) {
    inner = 1;
    for (std::size_t i = *scale.axis + 1; i < view.shape.size(); ++i) inner *= view.shape[i];
  }
  std::vector<double> values(codes.size());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    values[i] = static_cast<float>(codes[i]) * scales[i / inner % scales.size()];
  }
  return values;
}

void NetworkFile::fail(const NetworkNode& node, const std::string& what) const {
  throw hw::InputError(
      fmt::format("{}: node {}: {}", hw::printable(path()), in_quotes(node.name), what));
}

}  // namespace systole::model
