/// What DFX cannot be faster than, what a machine without cost of control makes of it, and what has
/// to be exact of a ring of cores.

#include <fmt/format.h>

#include "reproduce/dfx/dfx.h"

namespace systole::testbench {
namespace {

/// Tokens in the caches of the published times.
constexpr std::uint32_t kCachedTokens = 128;
/// Enough: what is counted of a ring is the same for every layer.
constexpr std::uint32_t kRingLayers = 2;

DfxTask ideal_task(const std::string& name, std::uint32_t input = 4) {
  return {name, input, 2, "dfx-ideal"};
}

}  // namespace

ReproductionSection dfx_roofline_section() {
  const hw::Machine any = ideal_task("345M x1").make_machine();
  const double peak = dfx_paper().figure("hbm.peak").value;
  ReproductionSection section = dfx_paper().section(
      "roofline", {{"bus", bus_gbyte_per_s(any)}, {"port", port_gbyte_per_s(any)}});
  const PublishedTable& table = dfx_paper().table("roofline");
  for (const PublishedTable::Row& row : table.rows) {
    const model::TextShape shape = ideal_task(row.name + " x1").make_shape();
    std::vector<double> ours = {weight_bytes(shape, any) / 1e6, cache_bytes(shape) / 1e3};
    for (const std::uint32_t cores : kDfxCores) {
      const hw::Machine machine = ideal_task(fmt::format("{} x{}", row.name, cores)).make_machine();
      ours.push_back(hbm_milliseconds(shape, machine, kCachedTokens, peak));
      ours.push_back(hbm_milliseconds(shape, machine, kCachedTokens, port_gbyte_per_s(machine)));
    }
    section.add(table.compare_row(row.name, ours));
  }
  return section;
}

ReproductionSection dfx_matrix_section() {
  ReproductionSection section = dfx_paper().section("matrix");
  const PublishedTable& table = dfx_paper().table("matrix");
  for (const PublishedTable::Row& row : table.rows) {
    const DfxTask task = ideal_task(row.name);
    const MatrixCycles cycles = matrix_cycles(task.make_shape(), task.make_machine());
    std::vector<double> ours;
    for (const std::uint64_t count :
         {cycles.projection, cycles.hidden, cycles.layer, cycles.lm_head, cycles.total}) {
      ours.push_back(static_cast<double>(count));
    }
    section.add(table.compare_row(row.name, ours));
  }
  return section;
}

ReproductionSection dfx_ring_section() {
  ReproductionSection section = dfx_paper().section("ring");
  const PublishedTable& table = dfx_paper().table("ring");
  for (const PublishedTable::Row& row : table.rows) {
    const DfxTask task = ideal_task(row.name);
    std::vector<double> ours;
    for (const double hop_us : {0.0, 0.3, 0.5, 1.0, 2.0}) {
      for (const bool both_ways : {false, true}) {
        ours.push_back(
            ring_microseconds(task.make_shape(), task.make_machine(), both_ways, hop_us));
      }
    }
    section.add(table.compare_row(row.name, ours));
  }
  return section;
}

ReproductionSection dfx_sync_section() {
  std::vector<DfxTask> tasks;
  std::vector<double> hops;
  for (const PublishedTable::Row& row : dfx_paper().table("ring").rows) {
    for (const double hop_us : {0.3, 2.0}) {
      tasks.push_back(ideal_task(row.name));
      tasks.back().layers = kRingLayers;
      tasks.back().settings = {"ring.sync=blocking", fmt::format("ring.hop_ns={}", 1e3 * hop_us)};
      hops.push_back(hop_us);
    }
  }
  const std::vector<DfxRun> runs = run_dfx(tasks);
  ReproductionSection section = dfx_paper().section("sync");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const double bound =
        ring_microseconds(tasks[i].make_shape(), tasks[i].make_machine(), true, hops[i]);
    section.rows.push_back(compare(fmt::format("{}: hop {} us", tasks[i].name, hops[i]),
                                   runs[i].layer_sync_microseconds(),
                                   dfx_paper().figure("ring.bound", bound)));
  }
  return section;
}

ReproductionSection dfx_ideal_section() {
  std::vector<DfxTask> tasks = {ideal_task("345M x1", kCachedTokens - 1)};
  for (const char* name :
       {"345M x2", "345M x4", "774M x1", "774M x2", "1.5B x1", "1.5B x2", "1.5B x4"}) {
    tasks.push_back(ideal_task(name));
  }
  const PublishedPaper& paper = dfx_paper();
  ReproductionSection section = paper.section("ideal");
  for (const DfxRun& run : run_dfx(tasks)) {
    const std::uint32_t context = run.task.input + run.task.output - 1;
    const double ours = run.last_pass_milliseconds();
    const double bound =
        bound_milliseconds(run.task.make_shape(), run.task.make_machine(), context);
    const std::string to_its_bound = run.task.name + ": to its bound";
    section.rows.push_back(
        compare(run.task.name + ": a token", ours, paper.figure("ideal.bound", bound)));
    section.rows.push_back(run.task.cores() == 1
                               ? compare(to_its_bound, ours / bound, paper.figure("ideal.ratio"))
                               : measured(to_its_bound, ours / bound, "x"));
    if (context != kCachedTokens) continue;
    section.rows.push_back(
        compare(run.task.name + ": at least", ours, paper.figure("ideal.least")));
    section.rows.push_back(compare(run.task.name + ": at most", ours, paper.figure("ideal.most")));
  }
  return section;
}

ReproductionSection dfx_traffic_section() {
  const PublishedTable& table = dfx_paper().table("traffic");
  std::vector<DfxTask> tasks;
  for (const PublishedTable::Row& row : table.rows) tasks.push_back({row.name, 1, 2});
  tasks.push_back({"1.5B x4", 1, 2, "dfx", {"ring.collective=all-reduce"}});
  for (DfxTask& task : tasks) task.layers = kRingLayers;
  const std::size_t reduce = tasks.size() - 1;
  for (const char* name : {"345M x1", "1.5B x4"}) tasks.push_back({name, 1, 1});
  const std::vector<DfxRun> runs = run_dfx(tasks);
  Metrics metrics = {{"reduce", runs[reduce].layer_link_bytes()}};
  for (std::size_t i = reduce + 1; i < runs.size(); ++i) {
    const DfxTask& task = runs[i].task;
    metrics[task.name] =
        runs[i].number("hbm_read_bytes") / runs[i].number("passes") * task.cores() / 1e6;
    metrics[task.name + ", weights"] = weight_bytes(task.make_shape(), task.make_machine()) / 1e6;
  }
  ReproductionSection whole = dfx_paper().section("traffic", metrics);
  ReproductionSection section{whole.title, whole.notes, {}, {}};
  for (std::size_t i = 0; i < reduce; ++i) {
    section.add(
        table.compare_row(tasks[i].name, {runs[i].layer_syncs(), runs[i].layer_link_bytes()}));
  }
  section.add(whole.rows);
  return section;
}

}  // namespace systole::testbench
