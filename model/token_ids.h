#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace systole::model {

/// Texts of the same length as numbers of a vocabulary.
struct TokenIds {
  std::size_t count = 0, length = 0;
  std::vector<std::int32_t> ids;  ///< [count, length]

  [[nodiscard]] std::vector<std::int32_t> text(std::size_t index) const {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(index * length);
    return {begin, begin + static_cast<std::ptrdiff_t>(length)};
  }
};

/// The tensor "input_ids" [count, length] of a safetensors file, of type I64, I32, I16, U16 or U8.
/// Throws InputError if it is missing, has another shape or type or nothing in it, for an id
/// outside 0 .. vocabulary - 1, and for texts longer than `positions`.
[[nodiscard]] TokenIds load_token_ids(const std::string& path, std::uint32_t vocabulary,
                                      std::uint32_t positions);

}  // namespace systole::model
