#include "testbench/attention/attention_simulation.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "testbench/wave/wave.h"
#include "tlm/system.h"

namespace systole::testbench {
namespace {

CheckResult check_outputs(const AttentionWorkload& workload, tlm_model::System& system) {
  CheckResult check;
  for (std::size_t layer = 0; layer < workload.layers.size(); ++layer) {
    const std::vector<std::uint8_t> expected = masked_reference(workload, layer);
    std::vector<std::uint8_t> found(expected.size());
    system.peek(workload.addresses[layer].out, found.data(), found.size());
    const std::size_t width = workload.shape.heads * workload.shape.value_dim();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (found[i] == expected[i]) continue;
      if (check.mismatches++ == 0) {
        check.first = fmt::format("layer {}, query {}, channel {}: {} instead of {}", layer,
                                  i / width, i % width, static_cast<std::int8_t>(found[i]),
                                  static_cast<std::int8_t>(expected[i]));
      }
    }
    check.bytes += expected.size();
    ++check.operators;
  }
  return check;
}

std::vector<model::TensorData> tensors_of(const AttentionWorkload& workload,
                                          tlm_model::System& system) {
  const AttentionShape& shape = workload.shape;
  const std::size_t stored = shape.latent_heads == 0 ? shape.heads : shape.latent_heads;
  std::vector<model::TensorData> tensors;
  for (std::size_t layer = 0; layer < workload.layers.size(); ++layer) {
    const AttentionWorkload::Addresses& at = workload.addresses[layer];
    const auto add = [&](const char* name, std::uint64_t address, std::size_t rows,
                         std::size_t cols) {
      std::vector<std::int8_t> values(rows * cols);
      system.peek(address, reinterpret_cast<std::uint8_t*>(values.data()), values.size());
      tensors.push_back(model::make_tensor(fmt::format("layers.{}.{}", layer, name),
                                           model::FileDtype::kI8, {rows, cols}, values));
    };
    add("query", at.query, shape.queries, stored * shape.dim);
    add("key", at.key, shape.keys, stored * shape.dim);
    add("value", at.value, shape.keys, shape.heads * shape.value_dim());
    add("output", at.out, shape.queries, shape.heads * shape.value_dim());
  }
  return tensors;
}

}  // namespace

AttentionResult simulate_attention(const AttentionWorkload& workload, const hw::Machine& machine,
                                   bool functional) {
  return simulate_attention(workload, machine, tlm_model::make_models(machine), functional);
}

AttentionResult simulate_attention(const AttentionWorkload& workload, const hw::Machine& machine,
                                   tlm_model::Engines engines, bool functional,
                                   const WaveOptions& wave_options) {
  const hw::MemoryImage image = memory_image(workload);
  tlm_model::System system("system", machine, std::move(engines), workload.program_address, image,
                           workload.program.host_functions, functional);
  AttentionResult result;
  bool begun = false;
  std::unique_ptr<Wave> wave;
  system.host.set_work([&](tlm_model::Host::Job&) { return !std::exchange(begun, true); },
                       [&](const tlm_model::Host::Job& job) {
                         result.cycles = job.cycles;
                         if (wave) wave->end_inference();
                       });
  if (!wave_options.path.empty()) {
    wave = std::make_unique<Wave>(wave_options, workload.program, machine.core.clock_mhz);
  }
  static_cast<MachineRun&>(result) = run_machine(system);
  if (wave) {
    wave->write();
    result.wave_is_cut_short = wave->is_cut_short();
  }
  result.heads = system.core.attention->heads();
  result.work = system.core.attention->work();
  result.traffic = system.core.attention->traffic();
  result.events = system.energy_events();
  if (functional) {
    result.check = check_outputs(workload, system);
    result.tensors = tensors_of(workload, system);
  }
  return result;
}

}  // namespace systole::testbench
