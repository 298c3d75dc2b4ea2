#include "model/format/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "model/format/float_formats.h"
#include "model/format/safetensors_entries.h"

namespace systole::model {
namespace {

/// The elements of type `T`, each put through `convert`.
template <typename Result, typename T, typename Convert>
std::vector<Result> converted(const std::vector<T>& values, Convert convert) {
  std::vector<Result> result(values.size());
  std::transform(values.begin(), values.end(), result.begin(), convert);
  return result;
}

template <typename Wide = std::int32_t, typename T>
std::vector<Wide> widened(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

}  // namespace

Safetensors Safetensors::open(const std::string& path) { return {path, hw::MappedFile(path)}; }

Safetensors Safetensors::of_bytes(const std::string& path, std::string bytes) {
  return {path, hw::MappedFile::of_bytes(std::move(bytes))};
}

Safetensors::Safetensors(std::string path, hw::MappedFile file)
    : path_(std::move(path)),
      file_(std::move(file)),
      header_(parse_safetensors(file_.bytes(), path_)) {}

std::vector<std::string> Safetensors::names() const {
  std::vector<std::string> names;
  names.reserve(header_.tensors.size());
  for (const auto& [name, view] : header_.tensors) names.push_back(name);
  return names;
}

const TensorView& Safetensors::tensor(const std::string& name) const {
  const auto found = header_.tensors.find(name);
  if (found == header_.tensors.end()) {
    fail(name, fmt::format("missing; the file has {} other tensors", header_.tensors.size()));
  }
  return found->second;
}

const TensorView& Safetensors::expect(const std::string& name, const std::vector<FileDtype>& dtypes,
                                      const std::vector<std::size_t>& shape) const {
  const TensorView& view = tensor(name);
  check_dtype(view, dtypes);
  if (view.shape != shape) {
    fail(name, fmt::format("shape is {}, expected {}", shape_text(view.shape), shape_text(shape)));
  }
  return view;
}

std::vector<float> Safetensors::as_float(const std::string& name) const {
  const TensorView& view = tensor(name);
  check_dtype(view, kFloatDtypes);
  if (view.dtype == FileDtype::kF32) return elements<float>(view);
  if (view.dtype == FileDtype::kF16) {
    return converted<float>(elements<std::uint16_t>(view), f16_to_float);
  }
  if (view.dtype == FileDtype::kBf16) {
    return converted<float>(elements<std::uint16_t>(view), bf16_to_float);
  }
  return converted<float>(elements<double>(view), [&](double value) {
    const auto rounded = static_cast<float>(value);
    if (std::isinf(rounded) && !std::isinf(value)) {
      fail(name, fmt::format("value {} is beyond the range of a 32-bit float", value));
    }
    return rounded;
  });
}

std::vector<std::int32_t> Safetensors::as_int32(const std::string& name) const {
  const TensorView& view = tensor(name);
  check_dtype(view, kIntDtypes);
  if (view.dtype == FileDtype::kI32) return elements<std::int32_t>(view);
  if (view.dtype == FileDtype::kI16) return widened(elements<std::int16_t>(view));
  if (view.dtype == FileDtype::kI8) return widened(elements<std::int8_t>(view));
  return widened(elements<std::uint8_t>(view));
}

std::vector<std::int64_t> Safetensors::as_int64(const std::string& name) const {
  const TensorView& view = tensor(name);
  check_dtype(view, kIndexDtypes);
  if (view.dtype == FileDtype::kI64) return elements<std::int64_t>(view);
  if (view.dtype == FileDtype::kU16) return widened<std::int64_t>(elements<std::uint16_t>(view));
  return widened<std::int64_t>(as_int32(name));
}

void Safetensors::fail(std::string_view name, const std::string& what) const {
  throw hw::InputError(
      fmt::format("{}: tensor {}: {}", hw::printable(path_), in_quotes(name), what));
}

void Safetensors::check_dtype(const TensorView& view,
                              const std::vector<FileDtype>& expected) const {
  if (std::find(expected.begin(), expected.end(), view.dtype) != expected.end()) return;
  const auto names = converted<std::string_view>(expected, dtype_name);
  fail(view.name,
       fmt::format("dtype is {}, expected {}", dtype_name(view.dtype), fmt::join(names, " or ")));
}

}  // namespace systole::model
