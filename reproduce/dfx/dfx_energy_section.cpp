/// What a token costs on DFX's boards, and what the events of a pass explain of it.

#include <fmt/format.h>

#include "reproduce/dfx/dfx.h"

namespace systole::testbench {
namespace {

/// Up to a tile of keys and values the context makes no difference.
constexpr std::uint32_t kEnergyTokens = 4;
constexpr std::uint32_t kGpuText = 32;
/// A half precision product and sum at 45 nm, survey Fig. 15.
constexpr double kHalfMacPj = 1.1 + 0.4;
constexpr double kMillijoule = 1e-9;  ///< in picojoules

}  // namespace

ReproductionSection dfx_energy_section() {
  const auto figure = [](const char* key) { return dfx_paper().figure(key).value; };
  std::vector<DfxTask> tasks;
  for (const char* name : {"345M x1", "345M x2", "345M x4", "1.5B x4"}) {
    tasks.push_back({name, kEnergyTokens, kEnergyTokens});
  }
  const std::vector<DfxRun> runs = run_dfx(tasks);
  Metrics metrics;
  for (const DfxRun& run : runs) {
    const hw::Machine machine = run.task.make_machine();
    // Watts times milliseconds.
    metrics[run.task.name] = machine.dfx.board_watts * machine.dfx.cores * run.pass_milliseconds();
  }
  const DfxRun& alone = runs.front();
  const double read = alone.number("hbm_read_bytes") / alone.number("passes");
  // A weight of two bytes is a multiply-accumulate.
  const double macs = weight_bytes(alone.task.make_shape(), alone.task.make_machine()) / 2;
  metrics["hbm"] = read * alone.task.make_machine().energy.dram_byte_pj * kMillijoule;
  metrics["products"] = macs * kHalfMacPj * kMillijoule;
  metrics["explained"] = 100 * (metrics["hbm"] + metrics["products"]) / metrics["345M x1"];
  // [32:32]: as many passes as tokens of both.
  const double gpu_ms = figure("gpu.output") * kGpuText + figure("gpu.input") * kGpuText;
  const DfxRun& large = runs.back();
  const double cores = large.task.cores();
  const double gpu = figure("gpu.watts") * cores * gpu_ms;
  metrics["gpu"] = gpu / kGpuText;
  metrics["against gpu"] = gpu / (2 * kGpuText * metrics["1.5B x4"]);
  metrics["ratio"] =
      figure("gpu.throughput") * figure("gpu.watts") / large.task.make_machine().dfx.board_watts;
  // What DFX's calculation would be: times faster, over what a board costs of a GPU.
  const double price = figure("price.gpu") / figure("price.board");
  metrics["cost by prices"] = figure("speed-up") * price;
  metrics["cost of ours"] = gpu_ms / (2 * kGpuText * large.pass_milliseconds()) * price;
  metrics["price by throughput"] = figure("cost") / figure("gpu.throughput");
  metrics["price by latency"] = figure("cost") / figure("speed-up");
  return dfx_paper().section("energy", metrics, {{"few", std::to_string(kEnergyTokens)}});
}

}  // namespace systole::testbench
