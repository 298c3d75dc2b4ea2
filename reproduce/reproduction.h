#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "reproduce/result_row.h"
#include "testbench/report/plot.h"

namespace systole::testbench {

/// Figures of ours that have nothing to be compared with, but with one another.
struct FigureTable {
  struct Line {
    std::string name;
    std::vector<std::uint64_t> figures;
  };
  std::vector<std::string> columns;  ///< of the figures, with their units
  std::vector<Line> lines;
};

/// The rows that belong to one published result.
struct ReproductionSection {
  std::string title;
  std::vector<std::string> notes;  ///< how ours came about, and in which regime each figure holds
  std::vector<ResultRow> rows;
  FigureTable figures = {};  ///< printed before the rows, if there are any

  void add(const std::vector<ResultRow>& more) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
};

/// What one run of `systole reproduce` found.
struct Reproduction {
  std::string name;
  std::vector<std::pair<std::string, std::string>> inputs;  ///< what was run: label, text
  std::vector<ReproductionSection> sections;
  std::vector<Plot> plots;
  double wall_seconds = 0.0;

  /// Adds a section, and reports it to BatchProgress.
  void add(ReproductionSection section);
  [[nodiscard]] std::size_t count(Verdict verdict) const;
  /// Those of one class.
  [[nodiscard]] std::size_t count(Verdict verdict, Claim claim) const;
};

/// A table per section, at most kTextWidth columns.
[[nodiscard]] std::string reproduction_text(const Reproduction& reproduction);
/// The document of docs/reproduce.md.
[[nodiscard]] nlohmann::ordered_json reproduction_json(const Reproduction& reproduction);

/// Of several: a line for each with its counts by class, and their sums.
[[nodiscard]] std::string summary_text(const std::vector<Reproduction>& reproductions);
/// Of several: the sums, and the documents in "reproductions".
[[nodiscard]] nlohmann::ordered_json summary_json(const std::vector<Reproduction>& reproductions);

}  // namespace systole::testbench
