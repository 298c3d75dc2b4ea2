#include "model/format/pnm.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/printable.h"

namespace systole::model {
namespace {

constexpr std::string_view kGrey = "P5";
constexpr std::string_view kColour = "P6";
constexpr std::size_t kMagicBytes = 2;
constexpr unsigned kMaxSide = 65535;
constexpr unsigned kMaxByte = 255;

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Walks over the header from after the magic.
class HeaderScanner {
 public:
  HeaderScanner(std::string_view file, const std::string& file_name)
      : file_(file), file_name_(file_name) {}

  /// The next number, 1..max; at least one blank or comment must precede it.
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

  /// Everything after the one blank that ends the header.
  std::string_view samples() {
    if (position_ == file_.size() || !is_blank(file_[position_])) {
      fail(position_, "expected a blank between the maximum value and the samples");
    }
    return file_.substr(position_ + 1);
  }

  [[noreturn]] void fail(std::size_t position, const std::string& what) const {
    throw hw::InputError(
        fmt::format("{}: picture byte {}: {}", hw::printable(file_name_), position, what));
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
  std::size_t position_ = kMagicBytes;
};

bool is_colour(std::string_view file) { return file.substr(0, kMagicBytes) == kColour; }

/// Plane after plane what a file has pixel after pixel.
std::vector<std::uint8_t> planes(std::string_view samples, std::size_t channels) {
  std::vector<std::uint8_t> result;
  result.reserve(samples.size());
  for (std::size_t channel = 0; channel < channels; ++channel) {
    for (std::size_t i = channel; i < samples.size(); i += channels) {
      result.push_back(static_cast<std::uint8_t>(samples[i]));
    }
  }
  return result;
}

}  // namespace

bool looks_like_pnm(std::string_view file) {
  return file.substr(0, kMagicBytes) == kGrey || is_colour(file);
}

Pnm parse_pnm(std::string_view file, const std::string& file_name) {
  HeaderScanner scanner(file, file_name);
  if (!looks_like_pnm(file)) scanner.fail(0, "expected 'P5' or 'P6', a binary PGM or PPM picture");
  Pnm picture;
  picture.channels = is_colour(file) ? 3 : 1;
  picture.width = scanner.number("width", kMaxSide);
  picture.height = scanner.number("height", kMaxSide);
  picture.max_value = scanner.number("maximum value", kMaxByte);
  const std::string_view samples = scanner.samples();
  const std::size_t first = file.size() - samples.size();
  const std::size_t expected = picture.channels * picture.width * picture.height;
  if (samples.size() != expected) {
    scanner.fail(first, fmt::format("{} bytes of samples, expected {}{} x {} = {}", samples.size(),
                                    picture.channels == 1 ? "" : "3 x ", picture.height,
                                    picture.width, expected));
  }
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const unsigned sample = static_cast<std::uint8_t>(samples[i]);
    if (sample > picture.max_value) {
      scanner.fail(first + i, fmt::format("sample {} is above the maximum value {}", sample,
                                          picture.max_value));
    }
  }
  picture.samples = planes(samples, picture.channels);
  return picture;
}

}  // namespace systole::model
