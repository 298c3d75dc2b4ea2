/// What DFX's time is spent on.

#include <fmt/format.h>

#include "reproduce/dfx/dfx_bounds.h"
#include "reproduce/dfx/dfx_published.h"
#include "reproduce/dfx/dfx_sections.h"

namespace systole::testbench {
namespace {

using hw::dfx::Phase;

/// The middle of [64:64].
constexpr std::uint32_t kContext = 64;

}  // namespace

ReproductionSection dfx_operations_section() {
  ReproductionSection section{"Operations of GPT-2 1.5B", {}, {}};
  const model::TextShape shape = DfxTask{std::string(kDfxFullXl.shape)}.make_shape();
  const LayerOperations counted = layer_operations(shape, kContext);
  const auto row = [&](const char* name, double operations, const char* key) {
    section.rows.push_back(compare(name, 100.0 * operations / counted.all(), dfx_published(key)));
  };
  row("LayerNorm", counted.norm, "operations.norm");
  row("self-attention", counted.attention, "operations.attention");
  row("residual", counted.residual, "operations.residual");
  row("feed-forward", counted.feed_forward, "operations.feed_forward");
  section.notes = {fmt::format("Of its layers, for a token behind {} others.", kContext - 1)};
  return section;
}

ReproductionSection dfx_time_section(const std::vector<DfxRun>& runs) {
  ReproductionSection section{"Time of GPT-2 1.5B on four cores", {}, {}};
  const DfxRun& run = runs.back();
  const auto row = [&](const char* name, Phase phase, const char* key) {
    section.rows.push_back(compare(name, 100.0 * run.share(phase), dfx_published(key)));
  };
  row("LayerNorm", Phase::kLayerNorm, "time.norm");
  row("self-attention", Phase::kAttention, "time.attention");
  row("residual", Phase::kResidual, "time.residual");
  row("feed-forward", Phase::kFeedForward, "time.feed_forward");
  section.rows.push_back(measured("sync", 100.0 * run.share(Phase::kSync), "%"));
  section.rows.push_back(measured("LM head", 100.0 * run.share(Phase::kLmHead), "%"));
  const auto quotient = [&](const DfxRun& of, const char* name) {
    const LayerOperations counted = layer_operations(of.task.make_shape(), of.task.input);
    const double time = of.share(Phase::kLayerNorm) + of.share(Phase::kResidual);
    const double operations = (counted.norm + counted.residual) / counted.all();
    section.rows.push_back(compare(name, time / operations, dfx_published("norm.quotient")));
  };
  quotient(run, "norm and residual, time to operations");
  quotient(runs.front(), "the same, 345M on one core");
  section.notes = {
      "Published is the time on a V100, of the same network, which has no sync. LayerNorm and "
      "residual additions are 0.11 % of the operations there and 22.8 % of the time. On DFX all "
      "cores do them for the whole vector, and each of their instructions waits for the one before "
      "it."};
  return section;
}

ReproductionSection dfx_order_section() {
  ReproductionSection section{"Order of value, key and query, 345M on one core", {}, {}};
  std::vector<DfxTask> tasks;
  for (const char* machine : {"dfx", "dfx-ideal"}) {
    for (const char* order : {"vkq", "qkv"}) {
      for (const char* transpose : {"64", "1"}) {
        DfxTask task{std::string(kDfx345M.shape)};
        task.machine = machine;
        task.settings = {fmt::format("dfx.projections={}", order),
                         fmt::format("vector.transpose_cycles={}", transpose)};
        tasks.push_back(task);
      }
    }
  }
  const std::vector<DfxRun> runs = run_dfx(tasks);
  for (std::size_t i = 0; i < runs.size(); i += 4) {
    const std::string& machine = runs[i].task.machine;
    const double value_first = runs[i].layer_cycles(), query_first = runs[i + 2].layer_cycles();
    section.rows.push_back(
        compare(machine + ": V, K, Q: a layer", value_first,
                {"", query_first, "cycles", {"ours with Q, K, V", Claim::kFollows}, kAtMost}));
    section.rows.push_back(measured(machine + ": V, K, Q: exposed",
                                    value_first - runs[i + 1].layer_cycles(), "cycles"));
    section.rows.push_back(measured(machine + ": Q, K, V: exposed",
                                    query_first - runs[i + 3].layer_cycles(), "cycles"));
  }
  section.notes = {
      "V is transposed on its way to memory, in vector.transpose_cycles for 64 elements of each "
      "head. Exposed: what a layer takes more than with a transposer of one cycle."};
  return section;
}

}  // namespace systole::testbench
