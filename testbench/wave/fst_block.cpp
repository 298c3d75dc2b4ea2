#include "testbench/wave/fst_block.h"

#include <gtkwave/lz4.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

namespace systole::testbench {
namespace {

constexpr char kBlockKind = 8, kPackedByLz4 = '4';
constexpr unsigned kByte = 8;
constexpr char kBits = 'b', kDigits = 'd';
constexpr int kFastZlib = 1;
constexpr std::size_t kLongestVarint = 10;
constexpr std::size_t kWorthPacking = 32;  ///< bytes, as GTKWave's writer has it

/// Seven bits a byte, the lowest first; all but the last byte have their highest bit set. Returns
/// the end.
char* write_varint(std::uint64_t value, char* to) {
  for (; value >= 0x80; value >>= 7U) *to++ = static_cast<char>(value | 0x80);
  *to++ = static_cast<char>(value);
  return to;
}
void put_varint(std::uint64_t value, std::string& to) {
  std::array<char, kLongestVarint> text;
  to.append(text.data(), write_varint(value, text.data()));
}

/// The same of a number in two's complement: the second highest bit of the last byte is its sign.
void put_signed_varint(std::int64_t value, std::string& to) {
  for (;;) {
    const auto byte = static_cast<std::uint8_t>(value & 0x7f);
    value >>= 7;
    if ((value == 0 && (byte & 0x40U) == 0) || (value == -1 && (byte & 0x40U) != 0)) {
      to += static_cast<char>(byte);
      return;
    }
    to += static_cast<char>(byte | 0x80U);
  }
}

/// Compressed, or as it is where that is no longer.
std::string packed_by_zlib(const std::string& text) {
  uLongf bytes = compressBound(text.size());
  std::string packed(bytes, '\0');
  const int result = compress2(reinterpret_cast<Bytef*>(packed.data()), &bytes,
                               reinterpret_cast<const Bytef*>(text.data()), text.size(), kFastZlib);
  if (result != Z_OK || bytes >= text.size()) return text;
  packed.resize(bytes);
  return packed;
}

/// Appends its length before it was compressed, or 0 for as it is, and the chain.
void put_chain(const std::string& chain, std::string& to) {
  if (chain.size() > kWorthPacking) {
    const int size = static_cast<int>(chain.size());
    std::string packed(static_cast<std::size_t>(LZ4_compressBound(size)), '\0');
    const int bytes =
        LZ4_compress_default(chain.data(), packed.data(), size, static_cast<int>(packed.size()));
    if (bytes > 0 && static_cast<std::size_t>(bytes) < chain.size()) {
      put_varint(chain.size(), to);
      to.append(packed, 0, static_cast<std::size_t>(bytes));
      return;
    }
  }
  put_varint(0, to);
  to += chain;
}

char letter_of(const RecordedValue& value) {
  return value.kind == RecordedValue::Kind::kNone ? 'z' : 'x';
}

}  // namespace

std::string fst_number(std::uint64_t value) {
  std::string text;
  for (unsigned byte = 8; byte-- > 0;) text += static_cast<char>(value >> (kByte * byte));
  return text;
}

void pack_digits(const char* digits, unsigned width, std::string& to) {
  const std::size_t begin = to.size();
  to += kBits;
  unsigned i = 0;
  for (; i + kByte <= width; i += kByte) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, digits + i, kByte);  // of a little-endian host
    constexpr std::uint64_t kLowest = 0x0101010101010101, kZeros = 0x3030303030303030;
    if ((eight & ~kLowest) != kZeros) break;
    // Digit k is bit 8 k: of the product the highest byte has it as bit 7 - k.
    to += static_cast<char>(((eight & kLowest) * 0x8040201008040201) >> 56U);
  }
  unsigned last = 0, left = 0;
  for (; i < width && (digits[i] & ~1) == '0';
       ++i, ++left) {  // less than eight: else one is neither
    last = last << 1U | static_cast<unsigned>(digits[i] & 1);
  }
  if (i == width) {
    if (left != 0) to += static_cast<char>(last << (kByte - left));
    return;
  }
  to.resize(begin);
  to += kDigits;
  to.append(digits, width);
}

std::size_t packed_bytes(const char* packed, unsigned width) {
  return 1 + (packed[0] == kBits ? (width + kByte - 1) / kByte : width);
}

FstBlock::FstBlock(const std::vector<unsigned>& widths) {
  for (const unsigned width : widths) {
    variables_.push_back(
        {width, first_.size(), {}, 0, {RecordedValue::Kind::kUnknown, 0}, false, {}});
    first_.append(width, 'x');
  }
}

void FstBlock::stamp(std::uint64_t time) {
  if (!begun_) {
    begun_ = true;
    begin_ = time;
    now_ = 0;
  }
  put_varint(time - now_, times_);
  now_ = time;
  ++steps_;
}

std::uint64_t FstBlock::steps_since_last(Variable& variable, std::uint64_t step) {
  const std::uint64_t passed = step - variable.last_step;
  variable.last_step = step;
  return passed;
}

void FstBlock::put(Variable& variable, const char* text, std::size_t bytes) {
  variable.changes.append(text, bytes);
  bytes_ += bytes;
}

void FstBlock::change_at(std::size_t signal, std::uint64_t step, const char* packed) {
  Variable& variable = variables_[signal];
  const std::uint64_t passed = steps_since_last(variable, step);
  const std::size_t bytes = packed_bytes(packed, variable.width);
  variable.is_packed = true;
  variable.packed.assign(packed, bytes);
  const bool is_number = packed[0] == kBits;
  std::array<char, kLongestVarint> head;
  char* end = head.data();
  if (variable.width != 1) {
    end = write_varint(passed << 1U | (is_number ? 0U : 1U), end);
    put(variable, head.data(), static_cast<std::size_t>(end - head.data()));
    return put(variable, packed + 1, bytes - 1);
  }
  // Bit 0: none of 0 and 1; then x is 0 and z is 1 of the next three bits.
  const unsigned one = static_cast<std::uint8_t>(packed[1]) >> 7U;
  end = write_varint(
      is_number ? passed << 2U | one << 1U : passed << 4U | (packed[1] == 'z' ? 3U : 1U), end);
  put(variable, head.data(), static_cast<std::size_t>(end - head.data()));
}

void FstBlock::change(std::size_t signal, const RecordedValue& value) {
  Variable& variable = variables_[signal];
  const std::uint64_t passed = steps_since_last(variable, step());
  variable.is_packed = false;
  variable.value = value;
  const bool is_number = value.kind == RecordedValue::Kind::kNumber;
  std::array<char, kLongestVarint + 64> text;
  char* end = text.data();
  if (variable.width == 1) {
    // Bit 0: none of 0 and 1; then x is 0 and z is 1 of the next three bits.
    const std::uint64_t letter = value.kind == RecordedValue::Kind::kNone ? 3 : 1;
    end = write_varint(is_number ? passed << 2U | (value.bits & 1U) << 1U : passed << 4U | letter,
                       end);
  } else if (is_number) {
    end = write_varint(passed << 1U, end);
    // From the highest bit on, which is the highest of the first byte.
    const unsigned bytes = (variable.width + kByte - 1) / kByte;
    const std::uint64_t bits = value.bits << (64 - variable.width);
    for (unsigned i = 0; i < bytes; ++i) *end++ = static_cast<char>(bits >> (64 - kByte * (i + 1)));
  } else {
    end = write_varint(passed << 1U | 1U, end);
    end = std::fill_n(end, variable.width, letter_of(value));
  }
  put(variable, text.data(), static_cast<std::size_t>(end - text.data()));
}

void FstBlock::put_digits(const Variable& variable, std::string& to) const {
  if (variable.is_packed && variable.packed[0] != kBits) {
    to.replace(variable.digits, variable.width, variable.packed, 1, variable.width);
    return;
  }
  for (unsigned i = 0; variable.is_packed && i < variable.width; ++i) {
    const auto byte = static_cast<std::uint8_t>(variable.packed[1 + i / kByte]);
    to[variable.digits + i] = (byte >> (kByte - 1 - i % kByte) & 1U) != 0 ? '1' : '0';
  }
  if (variable.is_packed) return;
  for (unsigned i = 0; i < variable.width; ++i) {
    to[variable.digits + i] = variable.value.kind != RecordedValue::Kind::kNumber
                                  ? letter_of(variable.value)
                              : (variable.value.bits >> (variable.width - 1 - i) & 1U) != 0 ? '1'
                                                                                            : '0';
  }
}

/// The changes of all signals, and where those of each signal are: distances from the one before,
/// with bit 0 set, or how many signals in turn have none.
std::string FstBlock::chains(std::string& index) const {
  std::string text(1, kPackedByLz4);
  std::uint64_t last = 0, without = 0;
  for (const Variable& variable : variables_) {
    if (variable.changes.empty()) {
      ++without;
      continue;
    }
    if (without != 0) put_varint(without << 1U, index);
    without = 0;
    put_signed_varint(static_cast<std::int64_t>((text.size() - last) << 1U | 1U), index);
    last = text.size();
    put_chain(variable.changes, text);
  }
  if (without != 0) put_varint(without << 1U, index);
  return text;
}

std::string FstBlock::take() {
  if (!begun_) throw std::logic_error("FstBlock: no time");
  std::string index;
  const std::string changes = chains(index);
  const std::string first = packed_by_zlib(first_), times = packed_by_zlib(times_);
  std::string body;
  body += fst_number(begin_);
  body += fst_number(now_);
  body += fst_number(bytes_);
  put_varint(first_.size(), body);
  put_varint(first.size(), body);
  put_varint(variables_.size(), body);
  body += first;
  put_varint(variables_.size(), body);
  body += changes;
  body += index;
  body += fst_number(index.size());
  body += times;
  body += fst_number(times_.size());
  body += fst_number(times.size());
  body += fst_number(steps_);
  std::string block(1, kBlockKind);
  block += fst_number(body.size() + 8);  // with itself
  block += body;

  for (Variable& variable : variables_) {
    if (!variable.changes.empty()) put_digits(variable, first_);
    variable.changes.clear();
    variable.last_step = 0;
  }
  times_.clear();
  steps_ = 0;
  bytes_ = 0;
  const std::uint64_t last = now_;
  begun_ = false;
  stamp(last);
  return block;
}

}  // namespace systole::testbench
