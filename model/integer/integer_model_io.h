#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "model/checkpoint/keep_mask.h"
#include "model/format/safetensors.h"
#include "model/format/safetensors_writer.h"
#include "model/integer/integer_vit.h"

/// The two visitors of model/integer/integer_vit_fields.h: what stands in the file of an integer
/// model.
namespace systole::model {

/// Writing: every visited constant becomes a tensor.
class ConstantWriter {
 public:
  void linear(const std::string& name, const IntegerLinear& layer, std::size_t outputs,
              std::size_t inputs) {
    add(name + ".weight", FileDtype::kI8, {outputs, inputs}, layer.weight);
    add(name + ".bias", FileDtype::kI32, {outputs}, layer.bias);
    factors(name, layer.factor, {outputs});
  }

  void norm(const std::string& name, const IntegerLayerNorm& norm, std::size_t width) {
    add(name + ".multiplier", FileDtype::kI32, {width}, norm.multiplier);
    add(name + ".bias", FileDtype::kI32, {width}, norm.addend);
    add<std::int8_t>(name + ".shift", FileDtype::kI8, {}, {static_cast<std::int8_t>(norm.shift)});
    scale(name, norm.scale);
  }

  void factor(const std::string& name, hw::Dyadic factor) { factors(name, {factor}, {}); }

  void table(const std::string& name, const std::vector<std::int32_t>& values, std::size_t rows,
             std::size_t cols) {
    add(name, FileDtype::kI32, {rows, cols}, values);
  }

  void number(const std::string& name, std::int64_t value) {
    add<std::int64_t>(name, FileDtype::kI64, {}, {value});
  }

  void scale(const std::string& name, double value) {
    add<double>(name + ".scale", FileDtype::kF64, {}, {value});
  }

  void mask(const std::string& name, const std::vector<std::uint8_t>& keep, std::size_t heads,
            std::size_t tokens) {
    if (!keep.empty()) tensors_.push_back(keep_mask_tensor(name, keep, heads, tokens));
  }

  [[nodiscard]] const std::vector<TensorData>& tensors() const { return tensors_; }

 private:
  template <typename T>
  void add(const std::string& name, FileDtype dtype, const std::vector<std::size_t>& shape,
           const std::vector<T>& values) {
    tensors_.push_back(make_tensor(name, dtype, shape, values));
  }

  void factors(const std::string& name, const std::vector<hw::Dyadic>& factors,
               const std::vector<std::size_t>& shape) {
    std::vector<std::int32_t> multipliers;
    std::vector<std::int8_t> shifts;
    for (const hw::Dyadic& factor : factors) {
      multipliers.push_back(factor.multiplier);
      shifts.push_back(factor.shift);
    }
    add(name + ".multiplier", FileDtype::kI32, shape, multipliers);
    add(name + ".shift", FileDtype::kI8, shape, shifts);
  }

  std::vector<TensorData> tensors_;
};

/// Reading: every visited constant must be a tensor of that type and shape.
class ConstantReader {
 public:
  explicit ConstantReader(const Safetensors& file) : file_(file) {}

  void linear(const std::string& name, IntegerLinear& layer, std::uint32_t outputs,
              std::uint32_t inputs) {
    layer.inputs = inputs;
    layer.outputs = outputs;
    layer.weight = get<std::int8_t>(name + ".weight", FileDtype::kI8, {outputs, inputs});
    layer.bias = get<std::int32_t>(name + ".bias", FileDtype::kI32, {outputs});
    layer.factor = factors(name, {outputs});
  }

  void norm(const std::string& name, IntegerLayerNorm& norm, std::size_t width) {
    norm.multiplier = get<std::int32_t>(name + ".multiplier", FileDtype::kI32, {width});
    norm.addend = get<std::int32_t>(name + ".bias", FileDtype::kI32, {width});
    // A negative shift becomes a large one, which the check of the values refuses.
    norm.shift =
        static_cast<std::uint32_t>(get<std::int8_t>(name + ".shift", FileDtype::kI8, {}).front());
    scale(name, norm.scale);
  }

  void factor(const std::string& name, hw::Dyadic& factor) { factor = factors(name, {}).front(); }

  void table(const std::string& name, std::vector<std::int32_t>& values, std::size_t rows,
             std::size_t cols) {
    values = get<std::int32_t>(name, FileDtype::kI32, {rows, cols});
  }

  void number(const std::string& name, std::int64_t& value) {
    value = get<std::int64_t>(name, FileDtype::kI64, {}).front();
  }

  void scale(const std::string& name, double& value) {
    value = get<double>(name + ".scale", FileDtype::kF64, {}).front();
  }

  void mask(const std::string& name, std::vector<std::uint8_t>& keep, std::size_t heads,
            std::size_t tokens) {
    if (!file_.has(name)) return;
    used_.insert(name);
    keep = read_keep_mask(file_, name, heads, tokens);
  }

  void check_all_used() const {
    for (const std::string& name : file_.names()) {
      if (used_.count(name) != 0) continue;
      throw hw::InputError(file_.path() + ": tensor '" + hw::printable(name) +
                           "': not part of the model that the metadata describe");
    }
  }

 private:
  template <typename T>
  std::vector<T> get(const std::string& name, FileDtype dtype,
                     const std::vector<std::size_t>& shape) {
    used_.insert(name);
    file_.expect(name, {dtype}, shape);
    return file_.copy<T>(name);
  }

  std::vector<hw::Dyadic> factors(const std::string& name, const std::vector<std::size_t>& shape) {
    const auto multipliers = get<std::int32_t>(name + ".multiplier", FileDtype::kI32, shape);
    const auto shifts = get<std::int8_t>(name + ".shift", FileDtype::kI8, shape);
    std::vector<hw::Dyadic> factors(multipliers.size());
    for (std::size_t i = 0; i < factors.size(); ++i) factors[i] = {multipliers[i], shifts[i]};
    return factors;
  }

  const Safetensors& file_;
  std::set<std::string> used_;
};

}  // namespace systole::model
