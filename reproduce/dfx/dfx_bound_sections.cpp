/// What DFX cannot be faster than, and what a machine without cost of control makes of it.

#include <fmt/format.h>

#include "reproduce/dfx/dfx_bounds.h"
#include "reproduce/dfx/dfx_published.h"
#include "reproduce/dfx/dfx_sections.h"

namespace systole::testbench {
namespace {

DfxTask task_of(const DfxSize& size, std::uint32_t cores, std::uint32_t input = 4,
                std::uint32_t output = 2) {
  return {std::string(size.shape), cores, input, output, "dfx-ideal"};
}

/// Of the roofline, whose figures leave out that the output vocabulary fills whole tiles.
constexpr double kThousandth = 1e-3;

std::string name_of(const DfxSize& size, std::uint32_t cores) {
  return fmt::format("{} x{}", size.name, cores);
}

}  // namespace

ReproductionSection dfx_roofline_section() {
  ReproductionSection section{"Bytes of a token, and their time", {}, {}};
  const hw::Machine any = task_of(kDfx345M, 1).make_machine();
  const double peak = dfx_published("hbm.peak").value;
  section.rows = {
      compare("HBM of the machine", bus_gbyte_per_s(any), dfx_published("hbm.peak")),
      compare("its way into the core", port_gbyte_per_s(any), dfx_published("hbm.kernel"))};
  for (const DfxRoofline& row : dfx_rooflines()) {
    const model::TextShape shape = task_of(row.size, 1).make_shape();
    const auto name = [&](const std::string& what) {
      return fmt::format("{}: {}", row.size.name, what);
    };
    section.rows.push_back(compare(name("weights"), weight_bytes(shape, any) / 1e6,
                                   dfx_rounded(row.megabytes, 1, "MB", kThousandth)));
    section.rows.push_back(compare(name("keys and values"), cache_bytes(shape) / 1e3,
                                   dfx_rounded(row.cache_kilobytes, 1, "kB", kThousandth)));
    for (std::size_t i = 0; i < kDfxRooflineCores.size(); ++i) {
      const hw::Machine machine = task_of(row.size, kDfxRooflineCores[i]).make_machine();
      const auto ms = [&](double gbyte_per_s) {
        return hbm_milliseconds(shape, machine, kDfxRooflineContext, gbyte_per_s);
      };
      const std::string cores = fmt::format("x{}, ", kDfxRooflineCores[i]);
      section.rows.push_back(compare(name(cores + "460 GB/s"), ms(peak),
                                     dfx_rounded(row.at_peak[i], 3, "ms", kThousandth)));
      section.rows.push_back(compare(name(cores + "409.6 GB/s"), ms(port_gbyte_per_s(machine)),
                                     dfx_rounded(row.at_kernel[i], 3, "ms", kThousandth)));
    }
  }
  section.notes = {
      "Of the layers and the output vocabulary, in FP16 as they stand in the cores' memories; "
      "times "
      "with the keys and values of 128 tokens, shared evenly. A core takes 2048 bytes a cycle of "
      "200 MHz, which is less than its HBM has."};
  return section;
}

ReproductionSection dfx_matrix_section() {
  ReproductionSection section{"Products of a token on 64 x 16 multipliers", {}, {}};
  for (const DfxMatrixBound& row : dfx_matrix_bounds()) {
    const DfxTask task = task_of(row.size, row.cores);
    const MatrixCycles cycles = matrix_cycles(task.make_shape(), task.make_machine());
    const auto add = [&](const char* what, std::uint64_t ours, std::uint32_t expected) {
      Published equal = dfx_rounded(expected, 0, "cycles");
      equal.tolerance = kExactly;
      equal.decimals.reset();
      section.rows.push_back(compare(fmt::format("{}: {}", name_of(row.size, row.cores), what),
                                     static_cast<double>(ours), equal));
    };
    add("V, K, Q each", cycles.projection, row.projection);
    add("first of FFN", cycles.hidden, row.hidden);
    add("a layer", cycles.layer, row.layer);
    add("LM head", cycles.lm_head, row.lm_head);
    add("a token", cycles.total, row.total);
  }
  section.notes = {"Tiles of the weights as they stand in memory, of the core that has most."};
  return section;
}

ReproductionSection dfx_ring_section() {
  ReproductionSection section{"Exchanges of a layer: bounds", {}, {}};
  const hw::Machine machine = task_of(kDfx345M, 1).make_machine();
  for (const DfxRingBound& row : dfx_ring_bounds()) {
    const model::TextShape shape = task_of(row.size, row.cores).make_shape();
    const auto add = [&](const std::string& what, bool both, double hop, double expected,
                         int decimals) {
      section.rows.push_back(compare(fmt::format("{}: {}", name_of(row.size, row.cores), what),
                                     ring_microseconds(shape, machine, row.cores, both, hop),
                                     dfx_rounded(expected, decimals, "us")));
    };
    add("bits one way", false, 0.0, row.one_way, 2);
    add("bits both ways", true, 0.0, row.both_ways, 2);
    for (std::size_t i = 0; i < kDfxHops.size(); ++i) {
      const double hop = kDfxHops[i];
      add(fmt::format("hop {} us, one way", hop), false, hop, row.hops[i].one_way, 1);
      add(fmt::format("hop {} us, both", hop), true, hop, row.hops[i].both_ways, 1);
    }
  }
  section.notes = {"Four exchanges of 7 widths in all, at 100 Gb/s in 64b/66b."};
  return section;
}

ReproductionSection dfx_sync_section() {
  ReproductionSection section{"Exchanges of a layer: simulated", {}, {}};
  std::vector<DfxTask> tasks;
  std::vector<std::string> names;
  std::vector<double> bounds;
  for (const DfxRingBound& row : dfx_ring_bounds()) {
    for (const double hop : {0.3, 2.0}) {
      DfxTask task = task_of(row.size, row.cores);
      task.layers = 2;
      task.settings = {"ring.sync=blocking", fmt::format("ring.hop_ns={}", 1e3 * hop)};
      bounds.push_back(
          ring_microseconds(task.make_shape(), task.make_machine(), row.cores, true, hop));
      names.push_back(fmt::format("{}: hop {} us", name_of(row.size, row.cores), hop));
      tasks.push_back(std::move(task));
    }
  }
  const std::vector<DfxRun> runs = run_dfx(tasks);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    section.rows.push_back(
        compare(names[i], runs[i].layer_sync_microseconds(),
                {"", bounds[i], "us", {"bound, both ways around", Claim::kFollows}, kAtLeast}));
  }
  section.notes = {
      "From a core's part being there to all parts being there, cores that wait for each "
      "exchange, two layers, no cost of control. A part is not split: of two cores all goes one "
      "way. Routers take their cycles at every hop."};
  return section;
}

ReproductionSection dfx_ideal_section() {
  ReproductionSection section{"Without cost of control, beside the bounds", {}, {}};
  const std::vector<DfxTask> tasks = {
      task_of(kDfx345M, 1, kDfxRooflineContext - 1),
      task_of(kDfx345M, 2),
      task_of(kDfx345M, 4),
      task_of(kDfx774M, 1),
      task_of(kDfx774M, 2),
      task_of(kDfx1500M, 1),
      task_of(kDfx1500M, 2),
      task_of(kDfx1500M, 4),
  };
  for (const DfxRun& run : run_dfx(tasks)) {
    const hw::Machine machine = run.task.make_machine();
    const std::uint32_t context = run.task.input + run.task.output - 1;
    const double ours = run.last_pass_milliseconds();
    const double bound = bound_milliseconds(run.task.make_shape(), machine, context);
    const std::string name = [&] {
      for (const DfxSize& size : {kDfx345M, kDfx774M}) {
        if (run.task.shape == size.shape) return name_of(size, run.task.cores);
      }
      return name_of(kDfx1500M, run.task.cores);
    }();
    section.rows.push_back(
        compare(name + ": a token", ours,
                {"", bound, "ms", {"bounds above", Claim::kFollows}, kAtLeast, 3}));
    if (run.task.cores == 1) {
      section.rows.push_back(
          compare(name + ": to its bound", ours / bound, dfx_published("ideal.ratio")));
    } else {
      section.rows.push_back(measured(name + ": to its bound", ours / bound, "x"));
    }
    if (context == kDfxRooflineContext) {
      section.rows.push_back(compare(name + ": at least", ours, dfx_published("ideal.least")));
      section.rows.push_back(compare(name + ": at most", ours, dfx_published("ideal.most")));
    }
  }
  section.notes = {
      "Machine dfx-ideal. The bound is the larger of the weights' and the products' time, with the "
      "keys and values of the token's context: 128 for 345M on one core, else 5. Several cores "
      "are farther from it: LayerNorm, residual additions and softmax do not shrink with their "
      "number, or less, and exchanges come in; none of that is in a bound."};
  return section;
}

}  // namespace systole::testbench
