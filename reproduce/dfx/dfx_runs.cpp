#include "reproduce/dfx/dfx_runs.h"

#include <fmt/format.h>

#include <deque>
#include <numeric>

#include "hw/description/machine_file.h"
#include "model/float/gpt.h"
#include "testbench/common/side_by_side.h"
#include "testbench/generation/generation.h"

namespace systole::testbench {
namespace {

using hw::dfx::Phase;

constexpr double kPsPerMillisecond = 1e9;
/// Exchanges of a layer come first among a pass's; the one that follows them finds the token.
constexpr std::uint32_t kLayerExchanges = 4;

nlohmann::ordered_json figures_of(const DfxTask& task) {
  const hw::Machine machine = task.make_machine();
  GenerationTask generation;
  generation.shape = task.make_shape();
  generation.prompt.assign(task.input, 0);
  generation.tokens = task.output;
  std::uint64_t syncs = 0, sync_cycles = 0, final_syncs = 0;
  generation.observer = [&](const tlm_model::dfx::InstructionTrace& trace) {
    if (trace.core != 0 || trace.instruction->op != hw::dfx::Opcode::kSync) return;
    if (trace.instruction->exchange >= kLayerExchanges) {
      ++final_syncs;
      return;
    }
    ++syncs;
    sync_cycles += trace.times.end - trace.times.begin;
  };
  const Generation result = generate(machine, generation);
  const auto ms = [](std::uint64_t ps) { return static_cast<double>(ps) / kPsPerMillisecond; };
  // A register of each core goes to all others.
  const double final_bytes = static_cast<double>(final_syncs) * (machine.dfx.cores - 1) *
                             machine.matrix.depth * sizeof(hw::Half);
  const double link_bytes =
      result.link_bytes.empty()
          ? 0.0
          : std::accumulate(result.link_bytes.begin(), result.link_bytes.end(), 0.0) /
                    static_cast<double>(result.link_bytes.size()) -
                final_bytes;
  return {{"passes", result.passes},
          {"total_ms", ms(result.total_ps)},
          {"first_ms", ms(result.first_token_ps)},
          {"pass_ms", ms(result.total_ps - result.host_ps) / static_cast<double>(result.passes)},
          {"last_ms", ms(result.last_pass_ps)},
          {"phases", result.phases},
          {"syncs", syncs},
          {"sync_us", static_cast<double>(sync_cycles) / machine.core.clock_mhz},
          {"link_bytes", link_bytes},
          {"hbm_read_bytes", result.hbm_read_bytes}};
}

}  // namespace

hw::Machine DfxTask::make_machine() const {
  hw::Machine result = hw::find_machine(machine);
  hw::set_key(result, fmt::format("dfx.cores={}", cores));
  for (const std::string& setting : settings) hw::set_key(result, setting);
  return result;
}

model::TextShape DfxTask::make_shape() const {
  model::TextShape result = model::gpt_shape(shape);
  if (layers != 0) result.encoder.layers = layers;
  return result;
}

double DfxRun::share(Phase phase) const {
  double all = 0;
  for (const auto& cycles : figures.at("phases")) all += cycles.get<double>();
  return cycles(phase) / all;
}

double DfxRun::layer_cycles() const {
  double layers = 0;
  for (const Phase phase : {Phase::kLayerNorm, Phase::kAttention, Phase::kFeedForward,
                            Phase::kResidual, Phase::kSync}) {
    layers += cycles(phase);
  }
  return layers / number("passes") / task.make_shape().encoder.layers;
}

double DfxRun::layer_syncs() const {
  return number("syncs") / number("passes") / task.make_shape().encoder.layers;
}

double DfxRun::layer_sync_microseconds() const {
  return number("sync_us") / number("passes") / task.make_shape().encoder.layers;
}

double DfxRun::layer_link_bytes() const {
  return number("link_bytes") / number("passes") / task.make_shape().encoder.layers;
}

std::vector<DfxRun> run_dfx(const std::vector<DfxTask>& tasks) {
  ExperimentBatch batch;
  std::deque<DfxRun> runs;
  for (const DfxTask& task : tasks) {
    runs.push_back({task, {}});
    batch.add(runs.back().figures, [task] { return figures_of(task); });
  }
  batch.run();
  return {runs.begin(), runs.end()};
}

}  // namespace systole::testbench
