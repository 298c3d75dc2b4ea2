#include "model/format/tensor_view.h"

#include <array>

namespace systole::model {
namespace {

struct DtypeInfo {
  FileDtype dtype;
  std::string_view name;
  std::size_t bytes;
};

/// In the order of the enumeration, so that a type is its own index.
constexpr std::array<DtypeInfo, 13> kDtypes = {{{FileDtype::kBool, "BOOL", 1},
                                                {FileDtype::kU8, "U8", 1},
                                                {FileDtype::kI8, "I8", 1},
                                                {FileDtype::kU16, "U16", 2},
                                                {FileDtype::kI16, "I16", 2},
                                                {FileDtype::kF16, "F16", 2},
                                                {FileDtype::kBf16, "BF16", 2},
                                                {FileDtype::kU32, "U32", 4},
                                                {FileDtype::kI32, "I32", 4},
                                                {FileDtype::kF32, "F32", 4},
                                                {FileDtype::kU64, "U64", 8},
                                                {FileDtype::kI64, "I64", 8},
                                                {FileDtype::kF64, "F64", 8}}};

constexpr bool dtypes_are_in_order() {
  for (std::size_t i = 0; i < kDtypes.size(); ++i) {
    if (static_cast<std::size_t>(kDtypes[i].dtype) != i) return false;
  }
  return true;
}
static_assert(dtypes_are_in_order());

const DtypeInfo& info(FileDtype dtype) { return kDtypes.at(static_cast<std::size_t>(dtype)); }

}  // namespace

std::string_view dtype_name(FileDtype dtype) { return info(dtype).name; }

std::size_t dtype_bytes(FileDtype dtype) { return info(dtype).bytes; }

std::optional<FileDtype> dtype_from_name(std::string_view name) {
  for (const DtypeInfo& candidate : kDtypes) {
    if (candidate.name == name) return candidate.dtype;
  }
  return std::nullopt;
}

std::string shape_text(const std::vector<std::size_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

std::optional<std::size_t> tensor_bytes(FileDtype dtype, const std::vector<std::size_t>& shape) {
  std::size_t bytes = dtype_bytes(dtype);
  for (const std::size_t extent : shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  }
  return bytes;
}

}  // namespace systole::model
