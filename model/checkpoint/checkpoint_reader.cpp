#include "model/checkpoint/checkpoint_reader.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/printable.h"
#include "model/checkpoint/keep_mask.h"

namespace systole::model {
namespace {

std::string element_text(std::size_t index) { return "element " + std::to_string(index); }

}  // namespace

std::vector<double> CheckpointReader::read(const std::string& name, const Shape& shape) {
  use(name, shape, kFloatDtypes);
  const std::vector<float> values = file_.as_float(name);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) fail(name, element_text(i) + " is not finite");
  }
  return {values.begin(), values.end()};
}

std::vector<hw::Half> CheckpointReader::halves(const std::string& name, const Shape& shape) {
  use(name, shape, {FileDtype::kF16, FileDtype::kBf16, FileDtype::kF32});
  const std::vector<float> values = file_.as_float(name);
  std::vector<hw::Half> rounded(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    rounded[i] = hw::to_half(values[i]);
    if ((rounded[i].bits & hw::kHalfMagnitude) < hw::kHalfInfinity.bits) continue;
    if (!std::isfinite(values[i])) fail(name, element_text(i) + " is not finite");
    fail(name, fmt::format("{} is {}, expected at most 65504, the largest number of FP16",
                           element_text(i), values[i]));
  }
  return rounded;
}

FloatNorm CheckpointReader::norm(const std::string& name, std::size_t width) {
  const bool old_names = file_.has(name + ".gamma");
  return {read(name + (old_names ? ".gamma" : ".weight"), {width}),
          read(name + (old_names ? ".beta" : ".bias"), {width})};
}

FloatLinear CheckpointReader::linear(const std::string& name, std::uint32_t outputs,
                                     std::uint32_t inputs) {
  return {inputs, outputs, read(name + ".weight", {outputs, inputs}),
          read(name + ".bias", {outputs})};
}

FloatLinear CheckpointReader::transposed_linear(const std::string& name, std::uint32_t outputs,
                                                std::uint32_t inputs) {
  const std::vector<double> stored = read(name + ".weight", {inputs, outputs});
  FloatLinear layer{inputs, outputs, std::vector<double>(stored.size()),
                    read(name + ".bias", {outputs})};
  for (std::size_t i = 0; i < inputs; ++i) {
    for (std::size_t o = 0; o < outputs; ++o) {
      layer.weight[o * inputs + i] = stored[i * outputs + o];
    }
  }
  return layer;
}

FloatLinear CheckpointReader::query_key_value(const std::string& prefix, std::uint32_t width) {
  FloatLinear layer;
  layer.inputs = width;
  for (const char* part : {"query", "key", "value"}) {
    const FloatLinear projection = linear(prefix + part, width, width);
    layer.outputs += width;
    layer.weight.insert(layer.weight.end(), projection.weight.begin(), projection.weight.end());
    layer.bias.insert(layer.bias.end(), projection.bias.begin(), projection.bias.end());
  }
  return layer;
}

std::vector<std::uint8_t> CheckpointReader::mask(const std::string& name, std::size_t heads,
                                                 std::size_t tokens) {
  if (!file_.has(name)) return {};
  used_.insert(name);
  return read_keep_mask(file_, name, heads, tokens);
}

void CheckpointReader::check_all_used() const {
  for (const std::string& name : file_.names()) {
    if (used_.count(name) != 0) continue;
    fail(name, "not part of the network that metadata and names describe");
  }
}

CheckpointReader::Shape CheckpointReader::dimensions(const std::string& name,
                                                     std::size_t rank) const {
  const Shape& shape = file_.tensor(name).shape;
  if (shape.size() == rank) return shape;
  fail(name, fmt::format("shape is {}, expected {} dimensions", shape_text(shape), rank));
}

std::uint32_t CheckpointReader::number(const std::string& name, std::size_t value,
                                       std::uint32_t lowest, std::uint32_t highest) const {
  if (value >= lowest && value <= highest) return static_cast<std::uint32_t>(value);
  fail(name, fmt::format("a dimension makes {}, expected {} to {}", value, lowest, highest));
}

void CheckpointReader::use(const std::string& name, const Shape& shape,
                           const std::vector<FileDtype>& dtypes) {
  if (!file_.has(name)) fail(name, "missing, expected shape " + shape_text(shape));
  file_.expect(name, dtypes, shape);
  used_.insert(name);
}

void CheckpointReader::fail(const std::string& name, const std::string& what) const {
  throw hw::InputError(
      fmt::format("{}: tensor '{}': {}", hw::printable(file_.path()), hw::printable(name), what));
}

}  // namespace systole::model
