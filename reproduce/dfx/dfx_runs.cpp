/// What `systole reproduce dfx` simulates.

#include <fmt/format.h>

#include <charconv>
#include <deque>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/printable.h"
#include "hw/description/machine_file.h"
#include "model/float/gpt.h"
#include "reproduce/dfx/dfx.h"
#include "testbench/common/side_by_side.h"
#include "testbench/generation/generation.h"

namespace systole::testbench {
namespace {

using hw::dfx::Phase;

constexpr double kPsPerMillisecond = 1e9;
/// Exchanges of a layer come first among a pass's; the one that follows them finds the token.
constexpr std::uint32_t kLayerExchanges = 4;

/// Core, unit, phase, and the cycles in which the instruction had its unit.
nlohmann::ordered_json slice_of(const tlm_model::dfx::InstructionTrace& trace) {
  const hw::dfx::Instruction& instruction = *trace.instruction;
  return {trace.core, static_cast<std::uint32_t>(hw::dfx::unit_of(instruction.op)),
          static_cast<std::uint32_t>(instruction.phase), trace.times.begin, trace.times.released};
}

nlohmann::ordered_json figures_of(const DfxTask& task) {
  const hw::Machine machine = task.make_machine();
  GenerationTask generation;
  generation.shape = task.make_shape();
  generation.prompt.assign(task.input, 0);
  generation.tokens = task.output;
  generation.batch = task.batch;
  generation.requests = task.requests;
  // Without values any token will do.
  if (task.draws) generation.sample = [](const std::vector<hw::Half>&) { return 0U; };
  std::uint64_t syncs = 0, sync_cycles = 0, final_syncs = 0;
  nlohmann::ordered_json timeline = nlohmann::ordered_json::array();
  std::uint32_t position = 0;
  if (task.timeline) {
    generation.on_pass = [&](std::uint32_t first, const std::vector<hw::dfx::Pass>& /*passes*/) {
      position = first;
    };
  }
  generation.observer = [&](const tlm_model::dfx::InstructionTrace& trace) {
    if (task.timeline && position == task.input) timeline.push_back(slice_of(trace));
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
          {"first_request_ms", ms(result.requests.front().end_ps)},
          {"first_ms", ms(result.first_token_ps)},
          {"pass_ms", ms(result.total_ps - result.host_ps) / static_cast<double>(result.passes)},
          {"last_ms", ms(result.last_pass_ps)},
          {"phases", result.phases},
          {"syncs", syncs},
          {"sync_us", static_cast<double>(sync_cycles) / machine.core.clock_mhz},
          {"link_bytes", link_bytes},
          {"hbm_read_bytes", result.hbm_read_bytes},
          {"timeline", timeline}};
}

/// Sizes of GPT-2 as tables name them, by the shapes of model::gpt_shape().
const std::map<std::string, const char*, std::less<>> kSizes = {
    {"124M", "gpt2"},
    {"345M", "gpt2-medium"},
    {"774M", "gpt2-large"},
    {"1.5B", "gpt2-xl-dfx"},  // 24 heads of 64
    {"1.5B, 25 heads", "gpt2-xl"},
};

[[noreturn]] void refuse(const DfxTask& task) {
  throw hw::InputError(
      fmt::format("published/dfx.toml: found '{}', expected a size and cores: 345M x4",
                  hw::printable(task.name)));
}

}  // namespace

std::uint32_t DfxTask::cores() const {
  const std::size_t times = name.rfind(" x");
  if (times == std::string::npos) refuse(*this);
  std::uint32_t count = 0;
  const char* const end = name.data() + name.size();
  const auto [last, error] = std::from_chars(name.data() + times + 2, end, count);
  if (error != std::errc() || last != end) refuse(*this);
  return count;
}

hw::Machine DfxTask::make_machine() const {
  hw::Machine result = hw::find_machine(machine);
  hw::set_key(result, fmt::format("dfx.cores={}", cores()));
  for (const std::string& setting : settings) hw::set_key(result, setting);
  return result;
}

model::TextShape DfxTask::make_shape() const {
  const auto found = kSizes.find(size());
  if (found == kSizes.end()) refuse(*this);
  model::TextShape result = model::gpt_shape(found->second);
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
