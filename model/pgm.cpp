#include "model/pgm.h"

#include <fmt/format.h>

#include <algorithm>

#include "hw/error.h"
#include "hw/printable.h"

namespace systole::model {
namespace {

constexpr std::string_view kMagic = "P5";
constexpr unsigned kMaxSide = 65535;
constexpr unsigned kMaxByte = 255;

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Walks over the header from behind the magic.
class HeaderScanner {
 public:
  HeaderScanner(std::string_view file, const std::string& file_name)
      : file_(file), file_name_(file_name) {}

  /// The next number, 1..max; at least one blank or comment must stand before it.
  unsigned number(const char* name, unsigned max) {
    skip_blanks_and_comments(name);
    const std::size_t begin = position_;
    unsigned value = 0;
    for (; position_ < file_.size() && is_digit(file_[position_]); ++position_) {
      value = value * 10 + static_cast<unsigned>(file_[position_] - '0');
      if (value > max) break;  // checked at every digit, so it cannot overflow
    }
    if (position_ == begin) fail(begin, fmt::format("expected a decimal number as {}", name));
    if (value == 0 || value > max) {
      fail(begin, fmt::format("{} is out of range, expected 1..{}", name, max));
    }
    return value;
  }

  /// Everything behind the one blank that ends the header.
  std::string_view samples() {
    if (position_ == file_.size() || !is_blank(file_[position_])) {
      fail(position_, "expected a blank between the maximum value and the samples");
    }
    return file_.substr(position_ + 1);
  }

  [[noreturn]] void fail(std::size_t position, const std::string& what) const {
    throw hw::InputError(
        fmt::format("{}: PGM byte {}: {}", hw::printable(file_name_), position, what));
  }

 private:
  void skip_blanks_and_comments(const char* name) {
    const std::size_t begin = position_;
    while (position_ < file_.size() && (is_blank(file_[position_]) || file_[position_] == '#')) {
      if (file_[position_] == '#') {
        position_ = std::min(file_.find_first_of("\n\r", position_), file_.size());
      } else {
        ++position_;
      }
    }
    if (position_ == begin) fail(begin, fmt::format("expected a blank before the {}", name));
  }

  std::string_view file_;
  const std::string& file_name_;
  std::size_t position_ = kMagic.size();
};

}  // namespace

bool looks_like_pgm(std::string_view file) { return file.substr(0, kMagic.size()) == kMagic; }

Pgm parse_pgm(std::string_view file, const std::string& file_name) {
  HeaderScanner scanner(file, file_name);
  if (!looks_like_pgm(file)) scanner.fail(0, "expected 'P5', a binary PGM picture");
  Pgm picture;
  picture.width = scanner.number("width", kMaxSide);
  picture.height = scanner.number("height", kMaxSide);
  picture.max_value = scanner.number("maximum value", kMaxByte);
  const std::string_view samples = scanner.samples();
  const std::size_t expected = picture.width * picture.height;
  if (samples.size() != expected) {
    scanner.fail(file.size() - samples.size(),
                 fmt::format("{} bytes of samples, expected {} x {} = {}", samples.size(),
                             picture.height, picture.width, expected));
  }
  picture.samples.assign(samples.begin(), samples.end());
  for (std::size_t i = 0; i < picture.samples.size(); ++i) {
    if (picture.samples[i] > picture.max_value) {
      scanner.fail(file.size() - samples.size() + i,
                   fmt::format("sample {} is above the maximum value {}", picture.samples[i],
                               picture.max_value));
    }
  }
  return picture;
}

}  // namespace systole::model
