/// What DFX's time is spent on.

#include <fmt/format.h>

#include "reproduce/dfx/dfx.h"

namespace systole::testbench {
namespace {

using hw::dfx::Phase;

/// The middle of [64:64].
constexpr std::uint32_t kHalfOfAText = 64;

/// Share of the time of LayerNorms and residual additions over that of the operations.
double time_to_operations(const DfxRun& run) {
  const LayerOperations counted = layer_operations(run.task.make_shape(), run.task.input);
  const double time = run.share(Phase::kLayerNorm) + run.share(Phase::kResidual);
  return time / ((counted.norm + counted.residual) / counted.all());
}

}  // namespace

ReproductionSection dfx_operations_section() {
  const LayerOperations counted =
      layer_operations(DfxTask{"1.5B, 25 heads x1"}.make_shape(), kHalfOfAText);
  const auto percent = [&](double operations) { return 100.0 * operations / counted.all(); };
  return dfx_paper().section("operations", {{"norm", percent(counted.norm)},
                                            {"attention", percent(counted.attention)},
                                            {"residual", percent(counted.residual)},
                                            {"feed-forward", percent(counted.feed_forward)}});
}

ReproductionSection dfx_time_section(const std::vector<DfxRun>& runs) {
  const DfxRun& run = runs.back();
  const auto percent = [&](Phase phase) { return 100.0 * run.share(phase); };
  return dfx_paper().section("time", {{"norm", percent(Phase::kLayerNorm)},
                                      {"attention", percent(Phase::kAttention)},
                                      {"residual", percent(Phase::kResidual)},
                                      {"feed-forward", percent(Phase::kFeedForward)},
                                      {"sync", percent(Phase::kSync)},
                                      {"LM head", percent(Phase::kLmHead)},
                                      {"quotient", time_to_operations(run)},
                                      {"quotient, 345M", time_to_operations(runs.front())}});
}

ReproductionSection dfx_order_section() {
  std::vector<DfxTask> tasks;
  std::vector<std::string> names;
  for (const char* machine : {"dfx", "dfx-ideal"}) {
    for (const char* order : {"vkq", "qkv"}) {
      names.push_back(fmt::format("{}, {}", machine, order));
      for (const char* transpose : {"64", "1"}) {
        DfxTask task{"345M x1"};
        task.machine = machine;
        task.settings = {fmt::format("dfx.projections={}", order),
                         fmt::format("vector.transpose_cycles={}", transpose)};
        tasks.push_back(task);
      }
    }
  }
  const std::vector<DfxRun> runs = run_dfx(tasks);
  Metrics metrics;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double cycles = runs[2 * i].layer_cycles();
    metrics[names[i]] = cycles;
    metrics[names[i] + " exposed"] = cycles - runs[2 * i + 1].layer_cycles();
  }
  return dfx_paper().section("order", metrics);
}

}  // namespace systole::testbench
