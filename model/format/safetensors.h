#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/mapped_file.h"
#include "base/shared_vector.h"
#include "model/format/safetensors_header.h"
#include "model/format/tensor_view.h"

namespace systole::model {

/// The types that `Safetensors::as_float` and `as_int32` read.
inline const std::vector<FileDtype> kFloatDtypes = {FileDtype::kF32, FileDtype::kF16,
                                                    FileDtype::kBf16, FileDtype::kF64};
inline const std::vector<FileDtype> kIntDtypes = {FileDtype::kI8, FileDtype::kU8, FileDtype::kI16,
                                                  FileDtype::kI32};
/// Those of numbers that name something: tokens, classes.
inline const std::vector<FileDtype> kIndexDtypes = {
    FileDtype::kI64, FileDtype::kI32, FileDtype::kI16, FileDtype::kU16, FileDtype::kU8};

/// The types whose elements are stored as the C++ type `T`. BOOL is read as uint8_t, and uint16_t
/// also reads the codes of F16 and BF16.
template <typename T>
std::vector<FileDtype> dtypes_of() {
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    return {FileDtype::kU8, FileDtype::kBool};
  } else if constexpr (std::is_same_v<T, std::int8_t>) {
    return {FileDtype::kI8};
  } else if constexpr (std::is_same_v<T, std::uint16_t>) {
    return {FileDtype::kU16, FileDtype::kF16, FileDtype::kBf16};
  } else if constexpr (std::is_same_v<T, std::int16_t>) {
    return {FileDtype::kI16};
  } else if constexpr (std::is_same_v<T, std::uint32_t>) {
    return {FileDtype::kU32};
  } else if constexpr (std::is_same_v<T, std::int32_t>) {
    return {FileDtype::kI32};
  } else if constexpr (std::is_same_v<T, std::uint64_t>) {
    return {FileDtype::kU64};
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return {FileDtype::kI64};
  } else if constexpr (std::is_same_v<T, float>) {
    return {FileDtype::kF32};
  } else {
    static_assert(std::is_same_v<T, double>, "not an element type of safetensors");
    return {FileDtype::kF64};
  }
}

/// A safetensors file, mapped into memory and checked as a whole when it is opened. Views stay
/// valid as long as any copy of the object lives. Every error, also that of asking for a tensor
/// that is not there, is an `InputError` that names the file and the tensor.
class Safetensors {
 public:
  static Safetensors open(const std::string& path);
  /// The same of the bytes of such a file; errors name `path`.
  static Safetensors of_bytes(const std::string& path, std::string bytes);

  /// As given to `open`.
  const std::string& path() const { return path_; }
  /// What has been read of it is not likely to be read again soon: it takes no host memory then.
  void let_go() const { file_.let_go(file_.bytes().data(), file_.bytes().size()); }
  /// The free text of the header: key to value; empty if the file has none.
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  /// All tensors' names, sorted by bytes.
  std::vector<std::string> names() const;
  bool has(const std::string& name) const { return header_.tensors.count(name) != 0; }
  const TensorView& tensor(const std::string& name) const;

  /// The tensor, which must have one of `dtypes` and exactly `shape`; the error tells what was
  /// found.
  const TensorView& expect(const std::string& name, const std::vector<FileDtype>& dtypes,
                           const std::vector<std::size_t>& shape) const;

  /// All elements, row-major, of an F16, BF16, F32 or F64 tensor. Exact but for F64, which is
  /// rounded to nearest; a finite F64 that would become infinite is an error.
  std::vector<float> as_float(const std::string& name) const;

  /// All elements, row-major, of an I8, U8, I16 or I32 tensor.
  std::vector<std::int32_t> as_int32(const std::string& name) const;

  /// All elements, row-major, of a tensor of one of kIndexDtypes.
  std::vector<std::int64_t> as_int64(const std::string& name) const;

  /// All elements, row-major, of a tensor whose dtype is that of `T`; see `dtypes_of`.
  template <typename T>
  std::vector<T> copy(const std::string& name) const {
    const TensorView& view = tensor(name);
    check_dtype(view, dtypes_of<T>());
    return elements<T>(view);
  }

  /// The same of a type of one byte, without a copy: the elements are those in the file.
  template <typename T>
  hw::SharedVector<T> share(const std::string& name) const {
    static_assert(sizeof(T) == 1, "a file aligns nothing else");
    const TensorView& view = tensor(name);
    check_dtype(view, dtypes_of<T>());
    return hw::SharedVector<T>::view(file_, reinterpret_cast<const T*>(view.data), view.bytes);
  }

 private:
  Safetensors(std::string path, hw::MappedFile file);

  template <typename T>
  static std::vector<T> elements(const TensorView& view) {
    std::vector<T> values(view.element_count());
    if (!values.empty()) std::memcpy(values.data(), view.data, view.bytes);
    return values;
  }

  [[noreturn]] void fail(std::string_view name, const std::string& what) const;
  void check_dtype(const TensorView& view, const std::vector<FileDtype>& expected) const;

  std::string path_;
  hw::MappedFile file_;
  SafetensorsHeader header_;  // points into file_
};

}  // namespace systole::model
