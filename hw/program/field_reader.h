#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace systole::hw {

/// Reads one part of the file from front to back and knows where it is.
class FieldReader {
 public:
  FieldReader(std::string_view bytes, std::size_t first, std::string place)
      : bytes_(bytes), first_(first), place_(std::move(place)) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(place_ + ", byte " + std::to_string(first_ + at_) + ": " + what);
  }

  [[nodiscard]] std::size_t left() const { return bytes_.size() - at_; }

  std::string_view take(std::size_t count) {
    if (count > left()) {
      fail(std::to_string(count) + " bytes expected, " + std::to_string(left()) + " left");
    }
    const std::string_view result = bytes_.substr(at_, count);
    at_ += count;
    return result;
  }

  template <typename T>
  T get() {
    std::uint64_t value = 0;
    const std::string_view raw = take(sizeof(T));
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value |= std::uint64_t{static_cast<unsigned char>(raw[i])} << (8 * i);
    }
    return static_cast<T>(value);
  }

  float get_float() {
    const auto bits = get<std::uint32_t>();
    float value = 0.0F;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) fail("number before is not finite");
    return value;
  }

  /// A number below `limit`, of which `what` is the kind.
  template <typename T>
  T get_below(std::uint64_t limit, const char* what) {
    const auto value = std::uint64_t{get<T>()};
    if (value >= limit) {
      at_ -= sizeof(T);
      fail(std::string(what) + " " + std::to_string(value) + ", expected less than " +
           std::to_string(limit));
    }
    return static_cast<T>(value);
  }

  std::string get_text() { return std::string(take(get<std::uint32_t>())); }

  void finish() const {
    if (left() != 0) fail(std::to_string(left()) + " bytes too many");
  }

 private:
  std::string_view bytes_;
  std::size_t first_;  ///< offset of the part in the file
  std::size_t at_ = 0;
  std::string place_;
};

}  // namespace systole::hw
