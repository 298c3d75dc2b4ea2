#include "model/network/network_writer.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "hw/number/half.h"
#include "model/format/float_formats.h"

namespace systole::model {
namespace {

using nlohmann::ordered_json;

ordered_json shape_json(const NetworkShape& shape) {
  ordered_json sizes = ordered_json::array();
  for (const std::int64_t size : shape) {
    sizes.push_back(size == kTokens ? ordered_json(kTokensWord) : ordered_json(size));
  }
  return sizes;
}

template <typename Narrow>
bool holds_all(const std::vector<double>& values, Narrow narrow) {
  return std::all_of(values.begin(), values.end(),
                     [&](double value) { return double{narrow(value)} == value; });
}

float as_half(double value) { return f16_to_float(hw::to_half(value).bits); }

}  // namespace

NetworkWriter::NetworkWriter(const std::string& name, const std::string& source)
    : document_({{"format_version", kNetworkVersion},
                 {"name", name},
                 {"source", source},
                 {"architecture", ordered_json::object()},
                 {"inputs", ordered_json::array()},
                 {"outputs", ordered_json::array()},
                 {"tensors", ordered_json::object()},
                 {"nodes", ordered_json::array()}}) {}

void NetworkWriter::set_datapath(const std::map<std::string, std::string>& datapath) {
  document_["datapath"] = datapath;
}

void NetworkWriter::set_architecture(ordered_json architecture) {
  document_["architecture"] = std::move(architecture);
}

std::string NetworkWriter::input(const std::string& name, const Value& value) {
  document_["inputs"].push_back(name);
  add_value(name, value);
  return name;
}

std::string NetworkWriter::constant(TensorData tensor) {
  tensor.name = prefix_ + tensor.name;
  constants_.push_back(std::move(tensor));
  return constants_.back().name;
}

std::string NetworkWriter::reals(const std::string& name, const std::vector<std::size_t>& shape,
                                 const std::vector<double>& values) {
  const auto as_float = [](double value) { return static_cast<float>(value); };
  if (!holds_all(values, as_float)) {
    return constant(make_tensor(name, FileDtype::kF64, shape, values));
  }
  if (!holds_all(values, as_half)) {
    return constant(make_tensor(name, FileDtype::kF32, shape,
                                std::vector<float>(values.begin(), values.end())));
  }
  std::vector<std::uint16_t> codes(values.size());
  std::transform(values.begin(), values.end(), codes.begin(),
                 [](double value) { return hw::to_half(value).bits; });
  return constant(make_tensor(name, FileDtype::kF16, shape, codes));
}

std::string NetworkWriter::node(const std::string& name, const char* op,
                                const std::vector<std::string>& inputs, const Value& value,
                                const ordered_json& attributes) {
  const std::string full = prefix_ + name;
  document_["nodes"].push_back({{"name", full},
                                {"op", op},
                                {"inputs", inputs},
                                {"outputs", {full}},
                                {"attributes", attributes}});
  add_value(full, value);
  return full;
}

std::map<std::string, std::string> NetworkWriter::metadata(const std::string& output) {
  document_["outputs"] = {output};
  std::map<std::string, std::string> metadata = {{"format", kNetworkFormat},
                                                 {kNetworkKey, document_.dump()}};
  if (!tokeniser_.empty()) metadata[kTokeniserKey] = tokeniser_;
  return metadata;
}

void NetworkWriter::write(const std::string& path, const std::string& output) {
  write_safetensors(path, constants_, metadata(output));
}

NetworkFile NetworkWriter::file(const std::string& path, const std::string& output) {
  return NetworkFile(Safetensors::of_bytes(path, safetensors_bytes(constants_, metadata(output))));
}

void NetworkWriter::add_value(const std::string& name, const Value& value) {
  ordered_json& entry = document_["tensors"][name];
  entry = {{"type", value.type}, {"shape", shape_json(value.shape)}};
  if (value.scale != 0.0) entry["scale"] = value.scale;
}

}  // namespace systole::model
