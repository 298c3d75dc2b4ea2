#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "model/format/tensor_view.h"

namespace systole::model {

/// What precedes the elements in a .npy file.
struct NpyHeader {
  FileDtype dtype = FileDtype::kBool;
  std::vector<std::size_t> shape;
  std::size_t data_begin = 0;  ///< offset of the first element in the file
};

/// Reads the header of a .npy file and checks it against the file's length. `file_name` is used in
/// errors only. Throws InputError for everything that `Npy` does not read.
NpyHeader parse_npy_header(std::string_view file, const std::string& file_name);

/// The header of format 1.0, padded so that the elements begin at a multiple of 64 bytes. Throws
/// std::invalid_argument for a type that has no .npy name here, and for more dimensions than NumPy
/// has.
std::string npy_header_text(FileDtype dtype, const std::vector<std::size_t>& shape);

}  // namespace systole::model
