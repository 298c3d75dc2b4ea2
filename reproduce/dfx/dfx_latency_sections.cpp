/// How long DFX takes for GPT-2 345M, as measured by others, and for other sizes.

#include <fmt/format.h>

#include "reproduce/dfx/dfx.h"

namespace systole::testbench {
namespace {

/// Up to a tile of keys and values the context makes no difference: a pass is what it is at first.
constexpr std::uint32_t kFewTokens = 4;
/// Prompt and text of the comparison with a GPU.
constexpr std::uint32_t kGpuTokens = 32;

/// What DFX's paper gives for GPT-2 1.5B on a V100: linear in both, ms.
double gpu_milliseconds(std::uint32_t input, std::uint32_t output) {
  return dfx_paper().figure("gpu.output").value * output +
         dfx_paper().figure("gpu.input").value * input;
}

/// Of all products of a token, or of those of `layer_cycles` and one LM head.
double milliseconds_of(std::uint64_t cycles, const hw::Machine& machine) {
  return static_cast<double>(cycles) / (1e3 * machine.core.clock_mhz);
}

}  // namespace

ReproductionSection dfx_cores_section(const std::vector<DfxRun>& by_cores) {
  Metrics metrics;
  for (const DfxRun& run : by_cores) {
    metrics[fmt::format("pass.{}", run.task.cores())] = run.pass_milliseconds();
    metrics[fmt::format("speed.{}", run.task.cores())] = run.tokens_per_second();
  }
  metrics["1 to 2"] = metrics["pass.1"] / metrics["pass.2"];
  metrics["2 to 4"] = metrics["pass.2"] / metrics["pass.4"];
  metrics["1 to 4"] = metrics["pass.1"] / metrics["pass.4"];
  return dfx_paper().section("cores", metrics);
}

ReproductionSection dfx_lengths_section(const DfxRun& at_64) {
  std::vector<DfxRun> runs = run_dfx({{"345M x1", 32, 32}, {"345M x1", 128, 128}});
  runs.push_back(at_64);
  Metrics metrics = {
      {"token", (at_64.milliseconds() - at_64.first_token_milliseconds()) / at_64.task.output}};
  for (const DfxRun& run : runs) {
    metrics[fmt::format("all.{}", run.task.input)] = run.milliseconds();
    metrics[fmt::format("first.{}", run.task.input)] = run.first_token_milliseconds();
  }
  return dfx_paper().section("lengths", metrics);
}

ReproductionSection dfx_efficiency_section(const DfxRun& one_core) {
  const hw::Machine machine = one_core.task.make_machine();
  const model::TextShape shape = one_core.task.make_shape();
  const double ms = one_core.pass_milliseconds();
  // A weight of two bytes is a multiply and an add.
  const double gflops = weight_bytes(shape, machine) / (ms * 1e6);
  const double products = milliseconds_of(matrix_cycles(shape, machine).total, machine);
  return dfx_paper().section("efficiency",
                             {{"hbm", 100.0 * gflops / dfx_paper().figure("hbm.peak").value},
                              {"matrix", 100.0 * products / ms},
                              {"gflops", gflops}});
}

ReproductionSection dfx_prompt_section() {
  constexpr std::uint32_t kPrompt = 128;
  std::vector<DfxTask> tasks;
  std::vector<std::string> names;
  for (const char* machine : {"dfx", "dfx-ideal"}) {
    for (const char* prefill : {"serial", "batched"}) {
      tasks.push_back({"345M x1", kPrompt, 1, machine, {fmt::format("dfx.prefill={}", prefill)}});
      names.push_back(fmt::format("{}, {}", machine, prefill));
    }
  }
  const std::vector<DfxRun> runs = run_dfx(tasks);
  const hw::Machine machine = tasks[0].make_machine();
  const model::TextShape shape = tasks[0].make_shape();
  const MatrixCycles cycles = matrix_cycles(shape, machine);
  Metrics metrics = {
      {"products",
       milliseconds_of(kPrompt * shape.encoder.layers * cycles.layer + cycles.lm_head, machine)}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    metrics[names[i]] = runs[i].first_token_milliseconds();
  }
  return dfx_paper().section("prompt", metrics);
}

ReproductionSection dfx_sizes_section() {
  std::vector<DfxTask> tasks;
  for (const char* name :
       {"774M x1", "774M x2", "1.5B x1", "1.5B x2", "1.5B x4", "1.5B, 25 heads x4"}) {
    tasks.push_back({name, kFewTokens, kFewTokens});
  }
  const double gpu = gpu_milliseconds(kGpuTokens, kGpuTokens);
  Metrics metrics = {{"gpu", gpu},
                     {"gpu.32.1", gpu_milliseconds(32, 1)},
                     {"gpu.128.1", gpu_milliseconds(128, 1)},
                     {"gpu.32.4", gpu_milliseconds(32, 4)}};
  for (const DfxRun& run : run_dfx(tasks)) {
    const std::string& name = run.task.name;
    metrics[name] = run.pass_milliseconds();
    if (run.task.size() != "1.5B") continue;
    metrics[name + ", text"] = 2 * kGpuTokens * run.pass_milliseconds();
    metrics[name + ", faster"] = gpu / metrics[name + ", text"];
  }
  return dfx_paper().section("sizes", metrics, {{"few", std::to_string(kFewTokens)}});
}

}  // namespace systole::testbench
