#pragma once

#include <cstddef>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/format/tensor_view.h"

namespace systole::model {

/// A tensor to be written; `data` are its little-endian elements, row-major.
struct TensorData {
  std::string name;
  FileDtype dtype = FileDtype::kF32;
  std::vector<std::size_t> shape;
  std::vector<std::byte> data;
};

/// A tensor from values of the width of `dtype`; F16 and BF16 are given as their uint16_t codes.
/// Throws `std::invalid_argument` if the width differs.
template <typename T>
TensorData make_tensor(std::string name, FileDtype dtype, std::vector<std::size_t> shape,
                       const std::vector<T>& values) {
  static_assert(std::is_arithmetic_v<T>);
  if (sizeof(T) != dtype_bytes(dtype)) {
    throw std::invalid_argument("tensor '" + name + "': the values' width is not the dtype's");
  }
  TensorData tensor{std::move(name), dtype, std::move(shape), {}};
  tensor.data.resize(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
  return tensor;
}

/// Writes a safetensors file, whole or not at all (see `hw::AtomicFile`). The bytes depend on the
/// arguments alone, not on the order of `tensors`: names and data are in the order of the names,
/// the header is ASCII without blanks, and padded with blanks to a multiple of 8 bytes.
///
/// Throws `InputError` if the file cannot be written, `std::invalid_argument` if the tensors make
/// no valid file: a name twice, empty, reserved, with control characters or not UTF-8; data that do
/// not fill the shape; more than 8 dimensions.
void write_safetensors(const std::string& path, const std::vector<TensorData>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// The bytes of that file.
[[nodiscard]] std::string safetensors_bytes(const std::vector<TensorData>& tensors,
                                            const std::map<std::string, std::string>& metadata);

}  // namespace systole::model
