#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reproduce/reproduction.h"

/// The figures and the prose of a report, as a file in TOML has them: traces/published/NAME.toml.
/// docs/reproduce.md says what such a file holds.
namespace systole::testbench {

/// A matrix of printed numbers.
struct PublishedTable {
  struct Row {
    std::string name;
    std::vector<Published> cells;  ///< by column; without a source: nothing was printed
  };
  std::string place;  ///< how errors begin
  std::vector<std::string> columns;
  std::vector<Row> rows;

  // These throw hw::InputError if the table is not what the program takes it for.
  [[nodiscard]] const Row& row(std::string_view name) const;
  [[nodiscard]] const Published& cell(std::string_view row, std::string_view column) const;
  [[nodiscard]] double value(std::string_view row, std::string_view column) const {
    return cell(row, column).value;
  }
  /// Rows "NAME: COLUMN" of ours, in the order of the columns; `between` the two names.
  [[nodiscard]] std::vector<ResultRow> compare_row(std::string_view name,
                                                   const std::vector<double>& ours,
                                                   std::string_view between = ": ") const;
};

/// What the program found, by the name that the rows of a section give it. NaN: nothing, in this
/// run; a reference then has its figure alone, a row without a figure is left out, and one with a
/// tolerance fails.
using Metrics = std::map<std::string, double>;
/// What fills the `{NAME}` of a section's title, notes and names of rows.
using TextArguments = std::map<std::string, std::string>;

class PublishedPaper {
 public:
  static constexpr std::size_t kMaxFile = 262144;  ///< bytes
  static constexpr const char* kExpected = "figures that others published";

  /// "fusion": published/fusion.toml below the directory of the program's data; read once. Whatever
  /// is wrong with it is an hw::InputError of one line: "file:line:column: key: found X, expected
  /// Y".
  static const PublishedPaper& load(const std::string& name);
  static PublishedPaper parse(std::string_view text, const std::string& source_name);

  /// Throws hw::InputError if there is none, or if it has no value.
  [[nodiscard]] const Published& figure(std::string_view key) const;
  /// One whose value this run computes: a bound.
  [[nodiscard]] Published figure(std::string_view key, double value) const;
  [[nodiscard]] const PublishedTable& table(std::string_view key) const;
  /// What the file calls this report and its inputs, nothing in it yet.
  [[nodiscard]] Reproduction reproduction() const;
  /// A section with title and notes, and the rows that the file lists, ours by metric. Throws
  /// hw::InputError if a metric or an argument is missing, or one has no use.
  [[nodiscard]] ReproductionSection section(std::string_view key, const Metrics& metrics = {},
                                            const TextArguments& text = {}) const;

 private:
  friend class PublishedReader;
  struct Row {
    std::string name;
    std::string metric;  ///< none: the figure is quoted, ours claims nothing
    std::string value;   ///< the metric that is the figure's value; none: it has its own
    Published figure;    ///< without a source: ours has nothing to be compared with
  };
  struct Section {
    std::string title;
    std::vector<std::string> notes;
    std::vector<Row> rows;
  };
  template <typename Entry>
  using ByKey = std::map<std::string, Entry, std::less<>>;
  template <typename Entry>
  [[nodiscard]] const Entry& find(const ByKey<Entry>& entries, const char* kind,
                                  std::string_view key) const;

  std::string source_;
  std::vector<std::pair<std::string, std::string>> inputs_;
  ByKey<Published> figures_;
  ByKey<PublishedTable> tables_;
  ByKey<Section> sections_;
};

}  // namespace systole::testbench
