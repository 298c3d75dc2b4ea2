#include "model/format/npy_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>

#include "base/error.h"
#include "base/printable.h"

namespace systole::model {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr std::size_t kVersionBytes = 2;
constexpr std::size_t kNpyAlignment = 64;
/// NumPy's own limit.
constexpr std::size_t kMaxNpyDimensions = 32;
/// Longest word that an error repeats.
constexpr std::size_t kQuoted = 40;

struct NamedDtype {
  std::string_view name;
  FileDtype dtype;
};
/// One byte has no order: NumPy writes '|', and '<' says the same.
constexpr std::array<NamedDtype, 9> kNpyDtypes{{{"|b1", FileDtype::kBool},
                                                {"|u1", FileDtype::kU8},
                                                {"|i1", FileDtype::kI8},
                                                {"<f2", FileDtype::kF16},
                                                {"<f4", FileDtype::kF32},
                                                {"<f8", FileDtype::kF64},
                                                {"<b1", FileDtype::kBool},
                                                {"<u1", FileDtype::kU8},
                                                {"<i1", FileDtype::kI8}}};

/// Reads the header's dictionary, a Python literal: {'descr': '<f4', 'fortran_order': False,
/// 'shape': (2, 3), }. Keys come in any order.
class DictionaryParser {
 public:
  DictionaryParser(std::string_view file, std::size_t begin, std::size_t end,
                   const std::string& file_name)
      : text_(file.substr(0, end)), at_(begin), file_name_(file_name) {}

  NpyHeader parse() {
    NpyHeader header;
    expect('{', "to begin the header");
    while (!accept('}')) {
      entry(header);
      if (accept('}')) break;
      expect(',', "or '}' after an entry");
    }
    skip_blanks();
    if (at_ != text_.size()) fail(at_, "expected only blanks after the header's '}'");
    require(has_dtype_, "descr");
    require(has_order_, "fortran_order");
    require(has_shape_, "shape");
    header.data_begin = text_.size();
    return header;
  }

  [[noreturn]] void fail(std::size_t at, const std::string& what) const {
    throw hw::InputError(
        fmt::format("{}: NumPy header, byte {}: {}", hw::printable(file_name_), at, what));
  }

 private:
  void entry(NpyHeader& header) {
    skip_blanks();
    const std::size_t begin = at_;
    const std::string_view key = quoted("a key in quotes");
    expect(':', "after a key");
    if (key == "descr") {
      once(has_dtype_, begin, key);
      header.dtype = dtype();
    } else if (key == "fortran_order") {
      once(has_order_, begin, key);
      order();
    } else if (key == "shape") {
      once(has_shape_, begin, key);
      header.shape = shape();
    } else {
      fail(begin, fmt::format("key '{}', expected descr, fortran_order and shape",
                              hw::printable(key, kQuoted)));
    }
  }

  FileDtype dtype() {
    skip_blanks();
    const std::size_t begin = at_;
    if (at_ < text_.size() && text_[at_] == '[') {
      fail(begin, "elements have fields, expected an array of plain numbers");
    }
    const std::string_view name = quoted("an element type in quotes");
    const auto* const found =
        std::find_if(kNpyDtypes.begin(), kNpyDtypes.end(),
                     [&](const NamedDtype& known) { return known.name == name; });
    if (found != kNpyDtypes.end()) return found->dtype;
    if (!name.empty() && name.front() == '>') {
      fail(begin, fmt::format("element type '{}' is big-endian, expected little-endian",
                              hw::printable(name, kQuoted)));
    }
    fail(begin, fmt::format("element type '{}', expected bool (|b1), |u1, |i1, <f2, <f4 or <f8",
                            hw::printable(name, kQuoted)));
  }

  void order() {
    skip_blanks();
    const std::size_t begin = at_;
    if (accept_word("False")) return;
    if (accept_word("True")) {
      fail(begin, "fortran_order is True, expected False (numpy.ascontiguousarray makes it so)");
    }
    fail(begin, "expected True or False as fortran_order");
  }

  /// "()", "(3,)", "(2, 3)".
  std::vector<std::size_t> shape() {
    std::vector<std::size_t> shape;
    expect('(', "to begin the shape");
    while (!accept(')')) {
      if (shape.size() == kMaxNpyDimensions) {
        fail(at_, fmt::format("expected at most {} dimensions", kMaxNpyDimensions));
      }
      shape.push_back(number());
      if (accept(',')) continue;
      // Without a comma (3) would be a number, not a shape.
      if (shape.size() == 1) fail(at_, "expected ',' after the only dimension");
      expect(')', "or ',' after a dimension");
      break;
    }
    return shape;
  }

  std::size_t number() {
    skip_blanks();
    const std::size_t begin = at_;
    std::size_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      const auto digit = static_cast<std::size_t>(text_[at_] - '0');
      if (value > (std::numeric_limits<std::size_t>::max() - digit) / 10) {
        fail(begin, "dimension is out of range");
      }
      value = value * 10 + digit;
    }
    if (at_ == begin) fail(begin, "expected a decimal number as dimension");
    return value;
  }

  std::string_view quoted(const char* what) {
    skip_blanks();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail(at_, fmt::format("expected {}", what));
    const std::size_t begin = at_ + 1, end = text_.find(quote, begin);
    if (end == std::string_view::npos) fail(at_, fmt::format("expected {}, found no end", what));
    at_ = end + 1;
    return text_.substr(begin, end - begin);
  }

  void skip_blanks() { at_ = std::min(text_.find_first_not_of(" \t\n\r", at_), text_.size()); }

  bool accept(char c) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c, const char* why) {
    if (!accept(c)) fail(at_, fmt::format("expected '{}' {}", c, why));
  }

  bool accept_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  void once(bool& seen, std::size_t at, std::string_view key) const {
    if (seen) fail(at, fmt::format("key '{}' comes twice", key));
    seen = true;
  }

  void require(bool seen, const char* key) const {
    if (!seen) fail(at_, fmt::format("key '{}' is missing", key));
  }

  std::string_view text_;
  std::size_t at_;
  const std::string& file_name_;
  bool has_dtype_ = false, has_order_ = false, has_shape_ = false;
};

std::size_t little_endian(std::string_view bytes) {
  std::size_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = (value << 8U) | static_cast<std::uint8_t>(bytes[i]);
  }
  return value;
}

}  // namespace

NpyHeader parse_npy_header(std::string_view file, const std::string& file_name) {
  const auto fail = [&](const std::string& what) {
    throw hw::InputError(hw::printable(file_name) + ": " + what);
  };
  if (file.substr(0, kNpyMagic.size()) != kNpyMagic) fail("is no NumPy file, expected one (.npy)");
  const std::string_view version = file.substr(kNpyMagic.size(), kVersionBytes);
  if (version.size() != kVersionBytes || version[0] < 1 || version[0] > 3 || version[1] != 0) {
    fail("NumPy format is unknown, expected version 1.0, 2.0 or 3.0");
  }
  const std::size_t length_bytes = version[0] == 1 ? 2 : 4;
  const std::size_t begin = kNpyMagic.size() + kVersionBytes + length_bytes;
  if (file.size() < begin) fail("NumPy header ends before its length, expected more bytes");
  const std::size_t length = little_endian(file.substr(begin - length_bytes, length_bytes));
  if (length > file.size() - begin) {
    fail(fmt::format("NumPy header of {} bytes, the file has only {} more", length,
                     file.size() - begin));
  }
  NpyHeader header = DictionaryParser(file, begin, begin + length, file_name).parse();
  const std::optional<std::size_t> expected = tensor_bytes(header.dtype, header.shape);
  const std::size_t found = file.size() - header.data_begin;
  if (!expected) fail("NumPy shape " + shape_text(header.shape) + " is out of range");
  if (*expected != found) {
    fail(fmt::format("{} bytes of elements, expected {} for {} of {}", found, *expected,
                     shape_text(header.shape), dtype_name(header.dtype)));
  }
  return header;
}

std::string npy_header_text(FileDtype dtype, const std::vector<std::size_t>& shape) {
  if (shape.size() > kMaxNpyDimensions) throw std::invalid_argument("npy: too many dimensions");
  const auto* const found =
      std::find_if(kNpyDtypes.begin(), kNpyDtypes.end(),
                   [&](const NamedDtype& known) { return known.dtype == dtype; });
  if (found == kNpyDtypes.end()) throw std::invalid_argument("npy: no such element type");
  std::string dimensions;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    dimensions += fmt::format(i + 1 == shape.size() && i != 0 ? "{}" : "{}, ", shape[i]);
  }
  if (shape.size() == 1) dimensions.pop_back();
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                 found->name, dimensions);
  constexpr std::size_t kLengthBytes = 2;
  const std::size_t before = kNpyMagic.size() + kVersionBytes + kLengthBytes;
  const std::size_t used = before + text.size() + 1;
  text += std::string((kNpyAlignment - used % kNpyAlignment) % kNpyAlignment, ' ') + "\n";
  std::string header(kNpyMagic);
  header += '\x01';
  header += '\0';
  header += static_cast<char>(text.size() & 0xFFU);
  header += static_cast<char>(text.size() >> 8U);
  return header + text;
}

}  // namespace systole::model
