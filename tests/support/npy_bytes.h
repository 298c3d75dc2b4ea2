#pragma once

#include <cstring>
#include <string>
#include <vector>

namespace systole {

/// A .npy file of format 1.0 with this header, whatever it says, and `data` after it.
inline std::string npy_of(const std::string& header, const std::string& data = "") {
  std::string bytes("\x93NUMPY\x01\0", 8);
  bytes += static_cast<char>(header.size() & 0xFFU);
  bytes += static_cast<char>(header.size() >> 8U);
  return bytes + header + data;
}

/// The header that NumPy writes, without its padding.
inline std::string npy_header(const std::string& type, const std::string& shape) {
  return "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
}

/// A file of bool, '\0' and '\1' in `cells`; `shape` as "(1, 1, 2, 2)".
inline std::string npy_mask(const std::string& shape, const std::string& cells) {
  return npy_of(npy_header("|b1", shape), cells);
}

/// A file of 32-bit floats.
inline std::string npy_floats(const std::string& shape, const std::vector<float>& values) {
  std::string data(values.size() * sizeof(float), '\0');
  if (!data.empty()) std::memcpy(data.data(), values.data(), data.size());
  return npy_of(npy_header("<f4", shape), data);
}

}  // namespace systole
