#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace systole::model {

/// Element types of tensors in safetensors files that Systole reads and writes; all little-endian.
enum class FileDtype {
  kBool,
  kU8,
  kI8,
  kU16,
  kI16,
  kF16,
  kBf16,
  kU32,
  kI32,
  kF32,
  kU64,
  kI64,
  kF64
};

/// The name in a safetensors header, such as "BF16".
std::string_view dtype_name(FileDtype dtype);

/// Bytes per element; kBool takes one.
std::size_t dtype_bytes(FileDtype dtype);

/// The type of that name; nothing if Systole does not read it.
std::optional<FileDtype> dtype_from_name(std::string_view name);

/// "[2, 3]"; "[]" for a scalar.
std::string shape_text(const std::vector<std::size_t>& shape);

/// The number of bytes of a tensor; nothing if that does not fit std::size_t. A scalar has one
/// element, a tensor with a dimension of 0 none.
std::optional<std::size_t> tensor_bytes(FileDtype dtype, const std::vector<std::size_t>& shape);

/// One tensor inside a file's memory, row-major. `data` has no alignment: copy, do not cast.
struct TensorView {
  std::string name;
  FileDtype dtype = FileDtype::kF32;
  std::vector<std::size_t> shape;
  const std::byte* data = nullptr;
  std::size_t bytes = 0;

  std::size_t element_count() const { return bytes / dtype_bytes(dtype); }
};

}  // namespace systole::model
