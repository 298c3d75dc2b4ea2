#include "testbench/generation/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <systemc>
#include <utility>

#include "base/error.h"
#include "model/float/float_gpt.h"
#include "testbench/generation/ring_run.h"
#include "testbench/run/rtl_blocks.h"
#include "tlm/ring/ring_system.h"

namespace systole::testbench {
namespace {

using tlm_model::dfx::RingHost;
using tlm_model::dfx::RingSystem;

Generation run(const hw::Machine& machine, const GenerationTask& task, const RtlWaves& rtl_waves) {
  RingRun ring(machine, task);
  RtlReport rtl;
  RingSystem system("system", machine,
                    ring.places([&](std::uint32_t core) { return rtl_waves.options(core); }, rtl),
                    task.gpt != nullptr, [&](RingHost& host) { return ring.next(host); });
  ring.attach(system);
  std::unique_ptr<Wave> wave;
  if (!task.wave.path.empty()) {
    std::vector<WaveCore> cores;
    for (std::size_t i = 0; i < system.cores(); ++i) cores.push_back({system.core(i).basename()});
    wave = std::make_unique<Wave>(task.wave, std::move(cores), machine.core.clock_mhz);
    ring.set_wave(wave.get());
  }
  const MachineRun machine_run = run_machine(system);
  if (const std::string fault = system.fault(); !fault.empty()) throw hw::InputError(fault);
  Generation result = ring.result();
  static_cast<MachineRun&>(result) = machine_run;
  if (wave) {
    wave->write();
    result.wave_is_cut_short = wave->is_cut_short();
  }
  result.rtl = rtl;
  result.total_ps = sc_core::sc_time_stamp().value();
  return result;
}

}  // namespace

Generation generate(const hw::Machine& machine, const GenerationTask& task) {
  RtlWaves rtl_waves(task.wave.path, machine);
  Generation result = run(machine, task, rtl_waves);
  rtl_waves.write();
  return result;
}

bool Evaluation::holds() const {
  return comparison.same_top() >= kSameTop && comparison.max_error() <= kMaxError &&
         comparison.mean_error() <= kMeanError &&
         std::fabs(comparison.bits() - comparison.reference_bits()) <= kBits;
}

Evaluation evaluate(const hw::Machine& machine, const model::Gpt& gpt,
                    const std::vector<std::int32_t>& text, std::size_t tokens,
                    const std::function<void(std::size_t passes)>& progress) {
  // The token after the last one is what its logits are measured by.
  if (tokens == 0 || tokens >= text.size()) {
    throw hw::InputError(fmt::format("--evaluate: found {}, expected 1 to {}, the text's tokens",
                                     tokens, text.size() - 1));
  }
  Evaluation evaluation;
  GenerationTask task;
  task.shape = gpt.shape;
  task.gpt = &gpt;
  task.progress = progress;
  for (std::size_t first = 0; first < tokens; first += gpt.shape.positions) {
    const std::size_t end = std::min<std::size_t>(first + gpt.shape.positions, tokens);
    task.texts.emplace_back(text.begin() + static_cast<std::ptrdiff_t>(first),
                            text.begin() + static_cast<std::ptrdiff_t>(end));
  }
  model::FloatGpt reference(gpt);
  std::size_t place = 0;
  task.on_logits = [&](std::uint32_t position, const std::vector<hw::Half>& logits) {
    if (position == 0) reference.restart();
    const std::vector<float> expected = reference.append({text[place]});
    evaluation.comparison.add(logits, expected.data(), static_cast<std::size_t>(text[++place]));
  };
  evaluation.generation = generate(machine, task);
  return evaluation;
}

}  // namespace systole::testbench
