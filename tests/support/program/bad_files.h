#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace systole {

/// `value` in `bytes` bytes, little endian.
inline std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

/// A safetensors file with this header, whatever it says, and `data` behind it.
inline std::string safetensors_of(const std::string& header, const std::string& data = "") {
  return little_endian(header.size(), 8) + header + data;
}

/// A safetensors file of one u8 tensor of pictures, and labels unless empty.
inline std::string pictures(const std::string& shape, const std::string& pixels,
                            const std::string& labels = "") {
  std::string header = R"({"images":{"dtype":"U8","shape":)" + shape + R"(,"data_offsets":[0,)" +
                       std::to_string(pixels.size()) + "]}";
  if (!labels.empty()) {
    header += R"(,"labels":{"dtype":"U8","shape":[)" + std::to_string(labels.size()) +
              R"(],"data_offsets":[)" + std::to_string(pixels.size()) + "," +
              std::to_string(pixels.size() + labels.size()) + "]}";
  }
  return safetensors_of(header + "}", pixels + labels);
}

/// `bytes` with those from `at` on replaced.
inline std::string patched(std::string bytes, std::size_t at, const std::string& by) {
  return bytes.replace(at, by.size(), by);
}

inline std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

}  // namespace systole
