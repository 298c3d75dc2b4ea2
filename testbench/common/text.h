#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Plain text for terminals. Nothing here is wider than kTextWidth columns unless a single word is.
namespace systole::testbench {

inline constexpr std::size_t kTextWidth = 80;

/// "1,234,567".
[[nodiscard]] std::string grouped(std::uint64_t value);
/// The same of the nearest whole number; `value` is at least 0.
[[nodiscard]] std::string grouped_rounded(double value);

/// "1 entry", "1,234 entries": a grouped number and its noun, whose plural is `many`, or `one` and
/// an s if that is empty.
[[nodiscard]] std::string counted(std::uint64_t value, std::string_view one,
                                  std::string_view many = "");

/// Three significant digits or more and a prefix from f to T: "12.3 uJ", "0 s".
[[nodiscard]] std::string with_prefix(double value, std::string_view unit);

/// "12.3%" of a fraction.
[[nodiscard]] std::string percent(double fraction);

/// `words` separated by `separator` and a blank, in as many lines as needed; all but the first
/// begin with `indent` blanks. The first has `indent` columns less as well. No newline at the end.
[[nodiscard]] std::string wrapped(const std::vector<std::string>& words, std::size_t indent,
                                  std::string_view separator);

/// The words of `text` in lines of at most kTextWidth. No newline at the end.
[[nodiscard]] std::string paragraph(const std::string& text);

/// Lines of `label  value`, with the values in one column; long values continue below themselves.
class FactList {
 public:
  void add(std::string label, std::string value);
  [[nodiscard]] std::string text() const;

 private:
  struct Fact {
    std::string label, value;
  };
  std::vector<Fact> facts_;
};

/// Columns as wide as their longest cell, two blanks apart; numbers to the right.
class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// Titles between `|`; one that begins with `>` is of a column aligned to the right.
  explicit Table(std::string_view titles);

  /// `cells.size()` must be the number of columns.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// The last column, if it is left aligned, wraps at kTextWidth. If the others leave less than
  /// half of the line to it, the first column's cells are cut in the middle.
  [[nodiscard]] std::string text() const;

 private:
  [[nodiscard]] std::vector<std::size_t> widths() const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace systole::testbench
