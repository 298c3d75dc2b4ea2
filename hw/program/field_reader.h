#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "base/error.h"

namespace systole::hw {

/// Reads the fields of a record from front to back, little endian. Throws InputError without a
/// place.
class FieldReader {
 public:
  FieldReader(const std::uint8_t* bytes, std::size_t size) : at_(bytes), left_(size) {}

  [[nodiscard]] const std::uint8_t* take(std::size_t count) {
    if (count > left_) {
      throw InputError(std::to_string(count) + " bytes expected, " + std::to_string(left_) +
                       " left");
    }
    const std::uint8_t* const taken = at_;
    at_ += count;
    left_ -= count;
    return taken;
  }

  template <typename T>
  [[nodiscard]] T get() {
    std::uint64_t value = 0;
    const std::uint8_t* const raw = take(sizeof(T));
    for (std::size_t i = 0; i < sizeof(T); ++i) value |= std::uint64_t{raw[i]} << (8 * i);
    return static_cast<T>(value);
  }

  /// A number below `limit`; `what` names it in the message.
  template <typename T>
  [[nodiscard]] T get_below(std::uint64_t limit, const char* what) {
    const auto value = static_cast<std::uint64_t>(get<std::make_unsigned_t<T>>());
    if (value >= limit) {
      throw InputError(std::string(what) + " " + std::to_string(value) + ", expected less than " +
                       std::to_string(limit));
    }
    return static_cast<T>(value);
  }

  /// The rest of a record is zero.
  void finish() {
    for (; left_ != 0; --left_, ++at_) {
      if (*at_ != 0) throw InputError("bytes after the last field are not zero");
    }
  }

 private:
  const std::uint8_t* at_;
  std::size_t left_;
};

}  // namespace systole::hw
