#include "reproduce/gemmini/gemmini.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "reproduce/survey/survey.h"

namespace systole::testbench {
namespace {

const PublishedPaper& gemmini_paper() { return PublishedPaper::load("gemmini"); }

/// A kind of runs whose errors belong together.
struct RunClass {
  const char* name;
  std::function<bool(const RtlRun&)> holds;
};

bool whole_blocks(std::uint32_t side) { return side % 16 == 0; }

bool has_whole_blocks(const RtlRun& run) {
  return whole_blocks(run.shape.m) && whole_blocks(run.shape.n) && whole_blocks(run.shape.k);
}

const std::vector<RunClass>& run_classes() {
  static const std::vector<RunClass> classes = {
      {"all", [](const RtlRun&) { return true; }},
      {"whole blocks", has_whole_blocks},
      {"M no multiple of 16",
       [](const RtlRun& run) {
         return !whole_blocks(run.shape.m) && whole_blocks(run.shape.n) &&
                whole_blocks(run.shape.k);
       }},
      {"N or K no multiple of 16",
       [](const RtlRun& run) { return !whole_blocks(run.shape.n) || !whole_blocks(run.shape.k); }},
      {"M = 1", [](const RtlRun& run) { return run.shape.m == 1; }},
      {"with bias", [](const RtlRun& run) { return run.result.bias; }},
      {"int32 results", [](const RtlRun& run) { return !run.result.requantised; }},
      {"two or more cycles a beat", [](const RtlRun& run) { return run.beat_cycles > 1; }},
  };
  return classes;
}

std::uint64_t millionths(double value) {
  return static_cast<std::uint64_t>(std::llround(1e6 * std::abs(value)));
}

ReproductionSection requests_section(const std::vector<RtlRun>& runs) {
  RtlRun::Counts rtl, ours;
  double others = 0, mismatches = 0;
  for (const RtlRun& run : runs) {
    others += run.rtl.moves_as(run.ours) ? 0 : 1;
    mismatches += static_cast<double>(run.mismatches);
    for (const auto member : {&RtlRun::Counts::reads, &RtlRun::Counts::read_bytes,
                              &RtlRun::Counts::writes, &RtlRun::Counts::written_bytes}) {
      rtl.*member += run.rtl.*member;
      ours.*member += run.ours.*member;
    }
  }
  const auto of = [](std::uint64_t count) { return static_cast<double>(count); };
  return gemmini_paper().section("requests",
                                 {{"others", others},
                                  {"mismatches", mismatches},
                                  {"reads", of(ours.reads)},
                                  {"read bytes", of(ours.read_bytes)},
                                  {"writes", of(ours.writes)},
                                  {"written bytes", of(ours.written_bytes)},
                                  {"rtl reads", of(rtl.reads)},
                                  {"rtl read bytes", of(rtl.read_bytes)},
                                  {"rtl writes", of(rtl.writes)},
                                  {"rtl written bytes", of(rtl.written_bytes)}},
                                 {{"runs", std::to_string(runs.size())}});
}

ReproductionSection cycles_section(const std::vector<RtlRun>& runs) {
  double sum = 0;
  for (const RtlRun& run : runs) sum += std::abs(run.error());
  ReproductionSection section =
      gemmini_paper().section("cycles", {{"mean", 100 * sum / static_cast<double>(runs.size())}});
  section.figures.columns = {"runs", "equal", "mean error, ppm", "worst, ppm"};
  for (const RunClass& kind : run_classes()) {
    std::uint64_t count = 0, equal = 0, rtl = 0, ours = 0;
    double errors = 0, worst = 0;
    for (const RtlRun& run : runs) {
      if (!kind.holds(run)) continue;
      ++count;
      equal += run.ours.cycles == run.rtl.cycles ? 1 : 0;
      rtl += run.rtl.cycles;
      ours += run.ours.cycles;
      errors += std::abs(run.error());
      worst = std::max(worst, std::abs(run.error()));
    }
    if (count == 0) continue;
    section.figures.lines.push_back(
        {kind.name,
         {count, equal, millionths(errors / static_cast<double>(count)), millionths(worst)}});
    section.rows.push_back(compare(fmt::format("{}: cycles of {} runs", kind.name, count),
                                   static_cast<double>(ours),
                                   gemmini_paper().figure("cycles", static_cast<double>(rtl))));
  }
  return section;
}

ReproductionSection worst_section(std::vector<RtlRun> runs) {
  constexpr std::size_t kShown = 10;
  std::stable_sort(runs.begin(), runs.end(), [](const RtlRun& a, const RtlRun& b) {
    return std::abs(a.error()) > std::abs(b.error());
  });
  ReproductionSection section =
      gemmini_paper().section("worst", {{"worst", 100 * std::abs(runs.front().error())}});
  section.figures.columns = {"RTL", "ours", "error, ppm"};
  for (std::size_t i = 0; i < std::min(kShown, runs.size()) && runs[i].error() != 0; ++i) {
    section.figures.lines.push_back(
        {runs[i].name(), {runs[i].rtl.cycles, runs[i].ours.cycles, millionths(runs[i].error())}});
  }
  return section;
}

Plot scatter(const std::vector<RtlRun>& runs) {
  Plot plot;
  plot.file = "gemmini_rtl.png";
  plot.width = 900;
  plot.height = 700;
  std::string data = "$runs << EOD\n";
  for (const RtlRun& run : runs) {
    data += fmt::format("{} {:.6f} {}\n", run.rtl.cycles,
                        static_cast<double>(run.ours.cycles) / static_cast<double>(run.rtl.cycles),
                        has_whole_blocks(run) ? 1 : 0);
  }
  plot.script =
      data +
      "EOD\nset logscale x\nset grid lt 1 lc rgb '#dddddd'\nset border 3\n"
      "set tics nomirror\nset xlabel 'cycles of the RTL'\n"
      "set ylabel 'ours over the RTL'\nset yrange [0.99:1.01]\nset key top right\n"
      "plot $runs using ($3 == 1 ? $1 : 1/0):2 pt 7 ps 0.8 lc rgb '#2166ac' title "
      "'whole blocks', '' using ($3 == 1 ? 1/0 : $1):2 pt 6 ps 0.9 lc rgb '#d6604d' title "
      "'other shapes'\n";
  return plot;
}

}  // namespace

Reproduction reproduce_gemmini(const std::vector<std::string>& points) {
  if (points.empty()) {
    throw hw::InputError(
        "reproduce gemmini: expected --points FILE.csv, runs of Gemmini's RTL (docs/reproduce-"
        "gemmini.md)");
  }
  std::vector<RtlRun> runs;
  for (const std::string& path : points) {
    const std::vector<RtlRun> more = read_rtl_runs(path);
    runs.insert(runs.end(), more.begin(), more.end());
  }
  run_ours(runs);
  Reproduction reproduction = gemmini_paper().reproduction();
  reproduction.add(requests_section(runs));
  reproduction.add(cycles_section(runs));
  reproduction.add(worst_section(runs));
  reproduction.add(measured_products_section(run_measured_products()));
  reproduction.plots.push_back(scatter(runs));
  return reproduction;
}

}  // namespace systole::testbench
