#include "testbench/attention/report_attention.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <vector>

#include "testbench/common/text.h"
#include "testbench/report/measurement.h"

namespace systole::testbench {
namespace {

using nlohmann::ordered_json;
using HeadCycles = tlm_model::AttentionUnit::HeadCycles;

struct HeadWork {
  std::uint64_t cells = 0, kept = 0, global_columns = 0, computed = 0;

  void add(const hw::SparseHead& head) {
    cells += head.queries * head.keys;
    kept += head.kept();
    global_columns += head.dense_columns.size();
    computed += head.dense_cells() + head.sparse_kept();
  }
};

struct AttentionTotals {
  HeadCycles sums;
  HeadWork work;
  std::vector<HeadCycles> layers;
  std::vector<HeadWork> layer_work;

  explicit AttentionTotals(const AttentionReport& report)
      : layers(report.workload->layers.size()), layer_work(layers.size()) {
    for (const HeadCycles& head : report.result.heads) {
      sums.add(head);
      layers[head.op].add(head);
    }
    sums.link = 0;
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      sums.link += layers[layer].link;
      for (const hw::SparseHead& head : report.workload->layers[layer]) {
        work.add(head);
        layer_work[layer].add(head);
      }
    }
  }
};

/// Part of the MACs that worked on cells which the mask keeps.
double utilisation(const AttentionReport& report, std::uint64_t kept, std::uint64_t cycles) {
  const hw::Machine::Attention& attention = report.machine.attention;
  const AttentionShape& shape = report.workload->shape;
  const double macs =
      static_cast<double>(kept) * static_cast<double>(shape.dim + shape.value_dim());
  const double offered = static_cast<double>(cycles) * attention.lines * attention.macs_per_line;
  return offered == 0.0 ? 0.0 : macs / offered;
}

ordered_json json_of(const HeadCycles& sums, const HeadWork& work) {
  return {{"cycles", sums.total()},
          {"sddmm_cycles", sums.sddmm},
          {"softmax_cycles", sums.softmax},
          {"spmm_cycles", sums.spmm},
          {"decode_cycles", sums.decoding},
          {"link_cycles", sums.link},
          {"stalled",
           {{"memory", sums.memory},
            {"bank_conflict", sums.conflict},
            {"softmax", sums.codes},
            {"output", sums.output},
            {"decode", sums.decode}}},
          {"cells", work.cells},
          {"kept", work.kept},
          {"computed", work.computed},
          {"global_columns", work.global_columns}};
}

/// Every line is busy, held up, or without work while an engine is active.
ordered_json lines_json(const AttentionReport& report, const HeadCycles& sums) {
  const std::uint64_t lines = report.machine.attention.lines;
  const std::uint64_t total = lines * sums.total();
  const std::uint64_t waiting = lines * sums.waiting();
  return {{"busy", sums.lines_busy},
          {"stalled",
           {{"memory", lines * sums.memory},
            {"bank_conflict", sums.lines_conflict},
            {"softmax", lines * sums.codes},
            {"output", lines * sums.output},
            {"decode", lines * sums.decode}}},
          {"idle", total - sums.lines_busy - sums.lines_conflict - waiting},
          {"total", total}};
}

std::string layer_table(const AttentionTotals& totals, bool decoded) {
  std::vector<Table::Column> columns;
  for (const char* name :
       {"layer", "kept", "computed", "global", "SDDMM", "softmax", "SpMM", "cycles", "stalled"}) {
    columns.push_back({name, Table::Align::kRight});
  }
  if (decoded) columns.push_back({"decode", Table::Align::kRight});
  Table table(columns);
  for (std::size_t layer = 0; layer < totals.layers.size(); ++layer) {
    const HeadCycles& sums = totals.layers[layer];
    const HeadWork& work = totals.layer_work[layer];
    std::vector<std::string> row{std::to_string(layer),
                                 grouped(work.kept),
                                 grouped(work.computed),
                                 grouped(work.global_columns),
                                 grouped(sums.sddmm),
                                 grouped(sums.softmax),
                                 grouped(sums.spmm),
                                 grouped(sums.total()),
                                 grouped(sums.waiting() + sums.conflict)};
    if (decoded) row.push_back(grouped(sums.decoding));
    table.add(row);
  }
  return table.text();
}

std::string line_text(const ordered_json& lines) {
  const auto share = [&](const ordered_json& value) {
    const auto total = lines["total"].get<double>();
    return percent(total == 0.0 ? 0.0 : value.get<double>() / total);
  };
  std::string text = share(lines["busy"]) + " busy, " + share(lines["idle"]) + " without work";
  for (const auto& [cause, cycles] : lines["stalled"].items()) {
    if (cycles != 0) text += ", " + share(cycles) + " " + cause;
  }
  return text;
}

/// Whether the link pays.
std::string link_text(const AttentionReport& report) {
  const AttentionShape& shape = report.workload->shape;
  const AttentionReport::Plain& plain = *report.without_auto_encoder;
  const auto cycles = static_cast<double>(report.result.cycles);
  const auto before = static_cast<double>(plain.cycles);
  return fmt::format(
      "{} -> {} heads: {} cycles, without it {}: it {} {}; {} bytes of Q, K, V instead of {}",
      shape.heads, shape.latent_heads, grouped(report.result.cycles), grouped(plain.cycles),
      cycles > before ? "loses" : "gains", percent(std::abs(cycles - before) / before),
      grouped(report.result.traffic.qkv()), grouped(plain.qkv_bytes));
}

}  // namespace

std::string attention_text(const AttentionReport& report) {
  const AttentionTotals totals(report);
  const AttentionShape& shape = report.workload->shape;
  const hw::Machine::Attention& attention = report.machine.attention;
  const AttentionResult& result = report.result;
  FactList facts;
  facts.add(
      "machine",
      fmt::format("{} ({} x {}, {} MHz)", report.machine.name, counted(attention.lines, "line"),
                  counted(attention.macs_per_line, "MAC"), report.machine.core.clock_mhz));
  facts.add("mask",
            report.mask + ": " +
                attention_shape_text({totals.layers.size(), shape.heads, shape.queries, shape.keys},
                                     shape.dim, shape.value_dim()));
  facts.add("sparsity", fmt::format("{} of {} kept ({} pruned)", grouped(totals.work.kept),
                                    counted(totals.work.cells, "cell"),
                                    percent(1.0 - static_cast<double>(totals.work.kept) /
                                                      static_cast<double>(totals.work.cells))));
  facts.add("global",
            fmt::format("{}, {}; {} computed", counted(totals.work.global_columns, "column"),
                        report.reordering, counted(totals.work.computed, "cell")));
  if (report.functional) {
    facts.add("check", result.check.mismatches == 0
                           ? fmt::format("{} equal to the dense masked product",
                                         counted(result.check.bytes, "byte"))
                           : fmt::format("{} of {} different; {}", grouped(result.check.mismatches),
                                         counted(result.check.bytes, "byte"), result.check.first));
  }
  facts.add(
      "cycles",
      fmt::format(
          "{} from start to interrupt ({}); engines {}: SDDMM {}, SpMM {}", grouped(result.cycles),
          with_prefix(static_cast<double>(result.cycles) / (report.machine.core.clock_mhz * 1e6),
                      "s"),
          grouped(totals.sums.total()), grouped(totals.sums.sddmm), grouped(totals.sums.spmm)));
  facts.add("lines", line_text(lines_json(report, totals.sums)));
  facts.add("utilisation", percent(utilisation(report, totals.work.kept, totals.sums.total())) +
                               " of the MACs on kept cells");
  facts.add("traffic",
            fmt::format("Q {}, K {}, V {}, mask {} read; {} written",
                        grouped(report.result.traffic.query), grouped(report.result.traffic.key),
                        grouped(report.result.traffic.value),
                        counted(report.result.traffic.index, "byte"),
                        grouped(report.result.traffic.written)));
  if (report.without_auto_encoder) facts.add("auto-encoder", link_text(report));
  facts.add("forwarding",
            counted(report.result.work.forwarded, "row") + " of Q taken from the denser engine");
  facts.add("energy", with_prefix(hw::energy_of(result.events, report.machine).total(), "J"));
  facts.add("simulation", with_prefix(result.wall_seconds, "s"));
  std::string text = facts.text() + "\n" + layer_table(totals, shape.latent_heads != 0) + "\n" +
                     block_table(result.blocks);
  if (!report.rtl.empty()) text += "\n" + rtl_table(report.rtl);
  return text;
}

ordered_json attention_json(const AttentionReport& report) {
  const AttentionTotals totals(report);
  const AttentionShape& shape = report.workload->shape;
  ordered_json document = {{"machine", report.machine.name},
                           {"mask", report.mask},
                           {"reordering", report.reordering},
                           {"layer_count", totals.layers.size()},
                           {"head_count", shape.heads},
                           {"queries", shape.queries},
                           {"keys", shape.keys},
                           {"dim", shape.dim},
                           {"v_dim", shape.value_dim()},
                           {"latent_heads", shape.latent_heads}};
  document.update(json_of(totals.sums, totals.work));
  document["cycles"] = report.result.cycles;
  document["engine_cycles"] = totals.sums.total();
  document["utilisation"] = utilisation(report, totals.work.kept, totals.sums.total());
  document["query_bytes"] = report.result.traffic.query;
  document["key_bytes"] = report.result.traffic.key;
  document["value_bytes"] = report.result.traffic.value;
  document["qkv_bytes"] = report.result.traffic.qkv();
  document["index_bytes"] = report.result.traffic.index;
  document["dram_read_bytes"] = report.result.traffic.qkv() + report.result.traffic.index;
  document["dram_written_bytes"] = report.result.traffic.written;
  if (report.without_auto_encoder) {
    document["without_auto_encoder_cycles"] = report.without_auto_encoder->cycles;
  }
  document["forwarded_rows"] = report.result.work.forwarded;
  document["lines"] = lines_json(report, totals.sums);
  document["energy_joules"] = hw::energy_of(report.result.events, report.machine).total();
  document["wall_seconds"] = report.result.wall_seconds;
  if (report.functional) {
    document["checked_bytes"] = report.result.check.bytes;
    document["mismatched_bytes"] = report.result.check.mismatches;
  }
  document["rtl"] = to_json(report.rtl);
  ordered_json layers = ordered_json::array();
  for (std::size_t layer = 0; layer < totals.layers.size(); ++layer) {
    layers.push_back(json_of(totals.layers[layer], totals.layer_work[layer]));
    layers.back()["heads"] = ordered_json::array();
  }
  for (const HeadCycles& head : report.result.heads) {
    HeadCycles sums;
    sums.add(head);
    HeadWork work;
    work.add(report.workload->layers[head.op][head.head]);
    layers[head.op]["heads"].push_back(json_of(sums, work));
  }
  document["layers"] = std::move(layers);
  return document;
}

std::string attention_shape_text(const model::AttentionShape& shape, std::size_t dim,
                                 std::size_t value_dim) {
  return fmt::format("{}, {}, {}, {}, {}{}", counted(shape.layers, "layer"),
                     counted(shape.heads, "head"), counted(shape.queries, "query", "queries"),
                     counted(shape.keys, "key"), counted(dim, "feature"),
                     value_dim == dim ? "" : fmt::format(" ({} of V)", value_dim));
}

}  // namespace systole::testbench
