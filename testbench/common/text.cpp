#include "testbench/common/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <sstream>

namespace systole::testbench {
namespace {

constexpr std::size_t kColumnGap = 2;
/// Columns that a wrapping last column gets before the first one is cut.
constexpr std::size_t kWrapped = 18;

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::size_t longest_word(const std::string& text) {
  std::size_t longest = 0;
  for (const std::string& word : words_of(text)) longest = std::max(longest, word.size());
  return longest;
}

/// The first and last characters of `text` around "..", `width` in all.
std::string shortened(const std::string& text, std::size_t width) {
  if (text.size() <= width) return text;
  const std::size_t tail = (width - 2) * 2 / 3, head = width - 2 - tail;
  return text.substr(0, head) + ".." + text.substr(text.size() - tail);
}

}  // namespace

std::string grouped(std::uint64_t value) {
  std::string digits = std::to_string(value);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string grouped_rounded(double value) {
  return grouped(static_cast<std::uint64_t>(std::llround(value)));
}

std::string counted(std::uint64_t value, std::string_view one, std::string_view many) {
  if (value == 1) return fmt::format("1 {}", one);
  return grouped(value) + " " + (many.empty() ? std::string(one) + "s" : std::string(many));
}

std::string with_prefix(double value, std::string_view unit) {
  constexpr std::array<std::string_view, 10> kPrefixes{"f", "p", "n", "u", "m",
                                                       "",  "k", "M", "G", "T"};
  constexpr int kNone = 5;
  if (value == 0.0 || !std::isfinite(value)) return fmt::format("{:g} {}", value, unit);
  const int thousands = static_cast<int>(std::floor(std::log10(std::fabs(value)) / 3.0));
  const int index = std::clamp(thousands + kNone, 0, static_cast<int>(kPrefixes.size()) - 1);
  const double scaled = value / std::pow(1000.0, index - kNone);
  const double size = std::fabs(scaled);
  return fmt::format("{:.{}f} {}{}", scaled,
                     size < 10.0    ? 2
                     : size < 100.0 ? 1
                                    : 0,
                     kPrefixes[static_cast<std::size_t>(index)], unit);
}

std::string percent(double fraction) { return fmt::format("{:.1f}%", 100.0 * fraction); }

std::string wrapped(const std::vector<std::string>& words, std::size_t indent,
                    std::string_view separator) {
  std::string text;
  std::size_t column = indent;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool last = i + 1 == words.size();
    const std::size_t size = words[i].size() + (last ? 0 : separator.size());
    if (i != 0) {
      const bool fits = column + 1 + size <= kTextWidth;
      text += fits ? " " : "\n" + std::string(indent, ' ');
      column = fits ? column + 1 : indent;
    }
    text += words[i];
    if (!last) text += separator;
    column += size;
  }
  return text;
}

std::string paragraph(const std::string& text) { return wrapped(words_of(text), 0, ""); }

void FactList::add(std::string label, std::string value) {
  facts_.push_back({std::move(label), std::move(value)});
}

std::string FactList::text() const {
  std::size_t width = 0;
  for (const Fact& fact : facts_) width = std::max(width, fact.label.size());
  std::string text;
  for (const Fact& fact : facts_) {
    text += fmt::format("{:<{}}{}\n", fact.label, width + kColumnGap,
                        wrapped(words_of(fact.value), width + kColumnGap, ""));
  }
  return text;
}

Table::Table(std::string_view titles) {
  for (std::size_t begin = 0, end = 0; end != std::string_view::npos; begin = end + 1) {
    end = titles.find('|', begin);
    std::string_view title = titles.substr(begin, end - begin);
    title.remove_prefix(std::min(title.find_first_not_of(' '), title.size()));
    title.remove_suffix(title.size() - (title.find_last_not_of(' ') + 1));
    const bool right = !title.empty() && title.front() == '>';
    columns_.push_back(
        {std::string(title.substr(right ? 1 : 0)), right ? Align::kRight : Align::kLeft});
  }
}

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths(columns_.size());
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    widths[i] = columns_[i].title.size();
    for (const auto& row : rows_) widths[i] = std::max(widths[i], row[i].size());
  }
  const std::size_t gaps = kColumnGap * (columns_.size() - 1);
  std::size_t last = widths.back();
  if (columns_.back().align == Align::kLeft) {
    std::size_t least = kWrapped;
    for (const auto& row : rows_) least = std::max(least, longest_word(row.back()));
    last = std::min(last, least);
  }
  const std::size_t total = std::accumulate(widths.begin(), widths.end() - 1, gaps + last);
  if (total > kTextWidth) {
    constexpr std::size_t kLeast = 12;
    const std::size_t excess = total - kTextWidth;
    widths[0] = std::max(kLeast, widths[0] - std::min(widths[0], excess));
  }
  return widths;
}

std::string Table::text() const {
  const std::vector<std::size_t> width = widths();
  std::string text;
  const auto line = [&](const auto& cell) {
    std::string out;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string content = i == 0 ? shortened(cell(i), width[i]) : cell(i);
      if (columns_[i].align == Align::kRight) {
        out += fmt::format("{:>{}}", content, width[i]);
      } else if (i + 1 == columns_.size()) {
        out += wrapped(words_of(content), out.size(), "");
      } else {
        out += fmt::format("{:<{}}", content, width[i]);
      }
      if (i + 1 < columns_.size()) out += std::string(kColumnGap, ' ');
    }
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + "\n";
  };
  line([&](std::size_t i) { return columns_[i].title; });
  for (const auto& row : rows_) line([&](std::size_t i) { return row[i]; });
  return text;
}

}  // namespace systole::testbench
