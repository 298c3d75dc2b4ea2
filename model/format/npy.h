#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "model/format/npy_header.h"
#include "model/format/tensor_view.h"

namespace systole::model {

/// An array in a NumPy file (.npy, formats 1.0 to 3.0), mapped into memory and checked as a whole
/// when it is opened: row-major, little-endian, of bool, u8, i8 or a float of 16, 32 or 64 bits,
/// and exactly as long as its shape says. Every error is an `InputError` that names the file and
/// the place.
class Npy {
 public:
  static Npy open(const std::string& path);

  /// As given to `open`.
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] FileDtype dtype() const { return header_.dtype; }
  [[nodiscard]] const std::vector<std::size_t>& shape() const { return header_.shape; }
  [[nodiscard]] std::size_t element_count() const;

  /// The elements `begin` to `begin + count` of the array in row-major order, exact. Throws
  /// std::out_of_range unless all of them exist.
  [[nodiscard]] std::vector<double> numbers(std::size_t begin, std::size_t count) const;

  /// All elements of an array of bool, 0 or 1 each. Throws InputError for another type and for a
  /// byte that is neither.
  [[nodiscard]] std::vector<std::uint8_t> flags() const;

 private:
  Npy(std::string path, hw::MappedFile file);

  std::string path_;
  hw::MappedFile file_;
  NpyHeader header_;
};

/// Writes an array of bool (any value but 0 is true) as a .npy file of format 1.0; see
/// `hw::AtomicFile`. Throws std::invalid_argument unless `values` fills `shape`.
void write_npy(const std::string& path, const std::vector<std::size_t>& shape,
               const std::vector<std::uint8_t>& values);

/// The same for 32-bit floats.
void write_npy(const std::string& path, const std::vector<std::size_t>& shape,
               const std::vector<float>& values);

}  // namespace systole::model
