#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hw/number/dtype.h"

namespace systole::model {

/// Element `index` of a packed array of `type` (little endian, no alignment).
[[nodiscard]] inline std::int32_t load_element(const std::uint8_t* bytes, std::size_t index,
                                               hw::DType type) {
  const auto load = [&](auto value) {
    std::memcpy(&value, bytes + index * sizeof value, sizeof value);
    return static_cast<std::int32_t>(value);
  };
  switch (type) {
    case hw::DType::kS8:
      return load(std::int8_t{});
    case hw::DType::kU8:
      return load(std::uint8_t{});
    case hw::DType::kS16:
      return load(std::int16_t{});
    case hw::DType::kU16:
      return load(std::uint16_t{});
    case hw::DType::kS32:
      break;
  }
  return load(std::int32_t{});
}

/// Writes `value` as element `index`; false, and nothing is written, if the type cannot hold it.
[[nodiscard]] inline bool store_element(std::uint8_t* bytes, std::size_t index, hw::DType type,
                                        std::int64_t value) {
  const auto store = [&](auto narrow) {
    narrow = static_cast<decltype(narrow)>(value);
    if (std::int64_t{narrow} != value) return false;
    std::memcpy(bytes + index * sizeof narrow, &narrow, sizeof narrow);
    return true;
  };
  switch (type) {
    case hw::DType::kS8:
      return store(std::int8_t{});
    case hw::DType::kU8:
      return store(std::uint8_t{});
    case hw::DType::kS16:
      return store(std::int16_t{});
    case hw::DType::kU16:
      return store(std::uint16_t{});
    case hw::DType::kS32:
      break;
  }
  return store(std::int32_t{});
}

}  // namespace systole::model
