#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace systole::model {

// What a document may hold. A value takes some 16 bytes here, so that these bound what a hostile
// text costs; a network of 1,000 blocks has a tenth of it.
inline constexpr std::size_t kMaxJsonValues = 1U << 20;
inline constexpr std::size_t kMaxJsonDepth = 8;

/// The document of a JSON text. Stricter than the library: a key that an object has twice, deeper
/// nesting or more values than allowed are errors. Throws InputError that begins with `place`.
[[nodiscard]] nlohmann::json parse_strict_json(std::string_view text, const std::string& place);

}  // namespace systole::model
