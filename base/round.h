#pragma once

#include <cstdint>

namespace systole {

[[nodiscard]] constexpr std::uint64_t ceil_div(std::uint64_t value, std::uint64_t by) noexcept {
  return (value + by - 1) / by;
}
/// The next multiple of `to`.
[[nodiscard]] constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t to) noexcept {
  return ceil_div(value, to) * to;
}

/// Multiples of `size` of which [address, address + bytes) has a byte: words of a memory, beats of
/// a bus. 0 of no bytes.
[[nodiscard]] constexpr std::uint64_t blocks_touched(std::uint64_t address, std::uint64_t bytes,
                                                     std::uint64_t size) noexcept {
  return bytes == 0 ? 0 : ceil_div(address % size + bytes, size);
}

/// Equal blocks of an address range, such as the words of a memory or its banks. Of a power of two
/// bytes, as nearly all are, it takes no division.
class BlockSize {
 public:
  explicit constexpr BlockSize(std::uint64_t bytes) noexcept
      : bytes_(bytes),
        shift_(bytes != 0 && (bytes & (bytes - 1)) == 0 ? __builtin_ctzll(bytes) : 0) {}

  [[nodiscard]] constexpr std::uint64_t bytes() const noexcept { return bytes_; }
  /// The block that an address is in.
  [[nodiscard]] constexpr std::uint64_t index(std::uint64_t address) const noexcept {
    return shift_ != 0 ? address >> shift_ : address / bytes_;
  }
  /// The same as blocks_touched().
  [[nodiscard]] constexpr std::uint64_t touched(std::uint64_t address,
                                                std::uint64_t bytes) const noexcept {
    return bytes == 0 ? 0 : index(address + bytes - 1) - index(address) + 1;
  }

 private:
  std::uint64_t bytes_;
  int shift_;  ///< 0: no power of two, or 1
};

/// For sizes and addresses that a command holds in 32 bits, which check_program() checks.
[[nodiscard]] constexpr std::uint32_t narrow(std::uint64_t value) noexcept {
  return static_cast<std::uint32_t>(value);
}

}  // namespace systole
