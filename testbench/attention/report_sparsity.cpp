#include "testbench/attention/report_sparsity.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"
#include "hw/attention/timing/attention_cycles.h"
#include "model/mask/global_columns.h"
#include "testbench/common/text.h"

namespace systole::testbench {
namespace {

using nlohmann::ordered_json;

/// Cycles of the same cells without a global column.
std::uint64_t unsplit_cycles(const hw::SparseHead& head, const SparsityMachine& machine) {
  hw::SddmmWork work = hw::sddmm_work(head);
  work.dense_columns = 0;
  for (auto cell = head.dense_keep.begin(); cell != head.dense_keep.end();) {
    const auto end = cell + static_cast<std::ptrdiff_t>(head.queries);
    work.sparse_column_kept.push_back(static_cast<std::uint64_t>(std::count(cell, end, true)));
    cell = end;
  }
  return hw::sddmm_cycles(work, machine.dim, machine.array).total();
}

SparsityFigures figures_of(const hw::SparseHead& head, const SparsityMachine& machine) {
  SparsityFigures figures;
  figures.cells = head.queries * head.keys;
  figures.kept = head.kept();
  figures.global_columns = head.dense_columns.size();
  figures.dense_cells = head.dense_cells();
  figures.dense_kept = head.dense_kept();
  figures.sparser_kept = head.sparse_kept();
  figures.csc_bytes = model::csc_bytes(head);
  figures.sddmm_cycles = hw::sddmm_cycles(head, machine.dim, machine.array).total();
  figures.unsplit_sddmm_cycles = unsplit_cycles(head, machine);
  return figures;
}

/// The figures of every head and their sums.
struct SparsitySums {
  explicit SparsitySums(const SparsityReport& report) : layers(report.shape.layers) {
    for (std::size_t i = 0; i < report.heads.size(); ++i) {
      heads.push_back(figures_of(report.heads[i], report.machine));
      layers[i / report.shape.heads].add(heads.back());
      total.add(heads.back());
    }
  }

  [[nodiscard]] std::size_t largest_csc() const {
    std::size_t largest = 0;
    for (const SparsityFigures& layer : layers) largest = std::max(largest, layer.csc_bytes);
    return largest;
  }

  SparsityFigures total;
  std::vector<SparsityFigures> layers, heads;
};

double sparsity_of(const SparsityFigures& figures) {
  return static_cast<double>(figures.cells - figures.kept) / static_cast<double>(figures.cells);
}

ordered_json json_of(const SparsityFigures& figures) {
  return {{"cells", figures.cells},
          {"kept", figures.kept},
          {"sparsity", sparsity_of(figures)},
          {"global_columns", figures.global_columns},
          {"dense_cells", figures.dense_cells},
          {"dense_kept", figures.dense_kept},
          {"sparser_kept", figures.sparser_kept},
          {"csc_bytes", figures.csc_bytes},
          {"sddmm_cycles", figures.sddmm_cycles},
          {"unsplit_sddmm_cycles", figures.unsplit_sddmm_cycles}};
}

/// What made the mask; nothing to say of one that was read.
std::string rule_text(const SparsityReport& report) {
  const auto [least, most] = std::minmax_element(report.thetas.begin(), report.thetas.end());
  const std::string theta = report.thetas.size() == 1
                                ? fmt::format("{}", *least)
                                : fmt::format("of each head, {} to {},", *least, *most);
  return fmt::format("{} and {}{}", theta, counted(*report.margin, "more entry", "more entries"),
                     report.cls ? ", CLS row and column kept" : "");
}

std::string layers_text(const SparsityReport& report, const SparsitySums& sums) {
  Table table(">layer | >kept | >sparsity | >dense cells | >dense kept | >sparser | >CSC bytes");
  Table globals(">layer | global columns of each head");
  for (std::size_t layer = 0; layer < sums.layers.size(); ++layer) {
    const SparsityFigures& figures = sums.layers[layer];
    table.add({std::to_string(layer), grouped(figures.kept),
               fmt::format("{:.2f}%", 100.0 * sparsity_of(figures)), grouped(figures.dense_cells),
               grouped(figures.dense_kept), grouped(figures.sparser_kept),
               grouped(figures.csc_bytes)});
    std::string counts;
    for (std::size_t head = 0; head < report.shape.heads; ++head) {
      const std::size_t index = layer * report.shape.heads + head;
      counts += fmt::format("{} ", sums.heads[index].global_columns);
    }
    globals.add({std::to_string(layer), counts});
  }
  return table.text() + "\n" + globals.text();
}

}  // namespace

void SparsityFigures::add(const SparsityFigures& other) {
  cells += other.cells;
  kept += other.kept;
  global_columns += other.global_columns;
  dense_cells += other.dense_cells;
  dense_kept += other.dense_kept;
  sparser_kept += other.sparser_kept;
  csc_bytes += other.csc_bytes;
  sddmm_cycles += other.sddmm_cycles;
  unsplit_sddmm_cycles += other.unsplit_sddmm_cycles;
}

std::string sparsity_text(const SparsityReport& report, const std::string& mask) {
  const SparsitySums sums(report);
  const SparsityFigures& total = sums.total;
  FactList facts;
  facts.add("input", hw::printable(report.file));
  facts.add("shape", report.shape.text() + " (layers x heads x queries x keys)");
  if (!report.thetas.empty()) facts.add("theta", rule_text(report));
  facts.add("sparsity", fmt::format("{:.4f}%, {} of {} kept", 100.0 * sparsity_of(total),
                                    grouped(total.kept), counted(total.cells, "cell")));
  facts.add("global columns",
            fmt::format("{}, {}", grouped(total.global_columns),
                        report.threshold
                            ? "those with more than " + counted(*report.threshold, "kept cell")
                            : "chosen per head for the least SDDMM cycles"));
  facts.add("denser block", fmt::format("{}, {} of them kept", counted(total.dense_cells, "cell"),
                                        grouped(total.dense_kept)));
  facts.add("sparser part", fmt::format("{}, {} B as CSC, at most {} B in a layer",
                                        counted(total.sparser_kept, "cell"),
                                        grouped(total.csc_bytes), grouped(sums.largest_csc())));
  facts.add("SDDMM",
            fmt::format("{}, {} without global columns", counted(total.sddmm_cycles, "cycle"),
                        grouped(total.unsplit_sddmm_cycles)));
  facts.add("counted for",
            fmt::format("{}: {} of {}, {}, no memory stalls", hw::printable(report.machine.name),
                        counted(report.machine.array.lines, "line"),
                        counted(report.machine.array.macs_per_line, "MAC"),
                        counted(report.machine.dim, "feature")));
  if (!mask.empty()) facts.add("written", hw::printable(mask));
  return facts.text() + "\n" + layers_text(report, sums);
}

ordered_json sparsity_json(const SparsityReport& report) {
  const SparsitySums sums(report);
  const model::AttentionShape& shape = report.shape;
  ordered_json document{{"file", report.file},
                        {"layers", shape.layers},
                        {"heads", shape.heads},
                        {"queries", shape.queries},
                        {"keys", shape.keys},
                        {"theta", nullptr},
                        {"margin", nullptr},
                        {"cls", report.cls},
                        {"threshold", nullptr},
                        {"machine", report.machine.name},
                        {"lines", report.machine.array.lines},
                        {"macs_per_line", report.machine.array.macs_per_line},
                        {"dim", report.machine.dim}};
  if (report.thetas.size() == 1) document["theta"] = report.thetas.front();
  if (report.thetas.size() > 1) document["thetas"] = report.thetas;
  if (report.margin) document["margin"] = *report.margin;
  if (report.threshold) document["threshold"] = *report.threshold;
  document.update(json_of(sums.total));
  document["csc_bytes_largest_layer"] = sums.largest_csc();
  document["per_layer"] = ordered_json::array();
  for (std::size_t layer = 0; layer < shape.layers; ++layer) {
    ordered_json entry = json_of(sums.layers[layer]);
    entry["per_head"] = ordered_json::array();
    for (std::size_t i = layer * shape.heads; i < (layer + 1) * shape.heads; ++i) {
      ordered_json head = json_of(sums.heads[i]);
      head["global_keys"] = report.heads[i].dense_columns;
      entry["per_head"].push_back(std::move(head));
    }
    document["per_layer"].push_back(std::move(entry));
  }
  return document;
}

}  // namespace systole::testbench
