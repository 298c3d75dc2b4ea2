#pragma once

#include <cstdint>

#include "base/round.h"
#include "hw/machine/machine.h"

/// Codes that protect the words of a memory on chip (keys scratchpad.protection and
/// accumulator.protection).
///
/// | code   | scratchpad       | accumulator    | corrects | detects      | a read takes |
/// |--------|------------------|----------------|----------|--------------|--------------|
/// | parity | 1 bit per byte   | 1 bit per sum  | -        | odd flips    | as before    |
/// | secded | 8 bits per 8 bytes | 7 bits per sum | 1 flip | 2 flips      | 1 cycle more |
///
/// Parity is checked beside the data, which go on. SECDED is Hsiao's code (IBM J. Res. Dev. 14
/// (1970)): (72, 64) and (39, 32). Its correction is a pipeline stage behind the read, which delays
/// every read by a cycle and costs no throughput. A write of a part of a word reads the rest of it
/// first.
namespace systole::hw {

struct WordCode {
  Protection protection = Protection::kNone;
  std::uint32_t bytes = 1;       ///< of a word
  std::uint32_t check_bits = 0;  ///< stored with it

  /// Stored bits over those of the data.
  [[nodiscard]] double growth() const { return 1 + check_bits / (8.0 * bytes); }
  /// Cycles that a read takes longer.
  [[nodiscard]] std::uint64_t read_delay() const {
    return protection == Protection::kSecded ? 1 : 0;
  }
};

[[nodiscard]] inline WordCode scratchpad_code(const Machine& machine) {
  switch (machine.scratchpad.protection) {
    case Protection::kParity:
      return {Protection::kParity, 1, 1};
    case Protection::kSecded:
      return {Protection::kSecded, 8, 8};
    case Protection::kNone:
      break;
  }
  return {};
}

[[nodiscard]] inline WordCode accumulator_code(const Machine& machine) {
  switch (machine.accumulator.protection) {
    case Protection::kParity:
      return {Protection::kParity, 4, 1};
    case Protection::kSecded:
      return {Protection::kSecded, 4, 7};
    case Protection::kNone:
      break;
  }
  return {};
}

/// Reads of a port, `port_bytes` each, before bytes [begin, end) are written: of the code words
/// that they cover in part, at their begin and at their end.
[[nodiscard]] inline std::uint64_t reads_before_write(const WordCode& code, std::uint64_t begin,
                                                      std::uint64_t end, std::uint64_t port_bytes) {
  if (code.bytes == 1) return 0;  // saves two divisions
  const bool first = begin % code.bytes != 0;
  const bool last = end % code.bytes != 0;
  if (first && last) return begin / port_bytes == (end - 1) / port_bytes ? 1 : 2;
  return first || last ? 1 : 0;
}
/// Accesses of such a port for bytes [begin, end) that are written: a word each, and those reads.
[[nodiscard]] inline std::uint64_t accesses_to_write(const WordCode& code, std::uint64_t begin,
                                                     std::uint64_t end, std::uint64_t port_bytes) {
  return ceil_div(end - begin, port_bytes) + reads_before_write(code, begin, end, port_bytes);
}

}  // namespace systole::hw
