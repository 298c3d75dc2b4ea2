#pragma once

#include <cstddef>
#include <cstdint>

#include "hw/number/integer.h"

namespace systole::hw {

/// Element types that memories hold. The values are part of the program file: append only.
enum class DType : std::uint8_t { kS8 = 0, kU8 = 1, kS16 = 2, kS32 = 3, kU16 = 4 };

inline constexpr std::uint8_t kDTypes = 5;

[[nodiscard]] constexpr std::size_t bytes_of(DType type) noexcept {
  switch (type) {
    case DType::kS8:
    case DType::kU8:
      return 1;
    case DType::kS16:
    case DType::kU16:
      return 2;
    case DType::kS32:
      return 4;
  }
  return 0;
}

[[nodiscard]] constexpr const char* name_of(DType type) noexcept {
  switch (type) {
    case DType::kS8:
      return "s8";
    case DType::kU8:
      return "u8";
    case DType::kS16:
      return "s16";
    case DType::kS32:
      return "s32";
    case DType::kU16:
      return "u16";
  }
  return "?";
}

/// The codes of the type.
[[nodiscard]] constexpr IntRange range_of(DType type) noexcept {
  const auto bits = static_cast<unsigned>(8 * bytes_of(type));
  const bool is_unsigned = type == DType::kU8 || type == DType::kU16;
  return is_unsigned ? unsigned_range(bits) : full_range(bits);
}

}  // namespace systole::hw
