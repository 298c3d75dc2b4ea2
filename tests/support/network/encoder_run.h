#pragma once

#include <cstdint>
#include <cstring>
#include <systemc>
#include <utility>
#include <vector>

#include "base/error.h"
#include "hw/machine/machine.h"
#include "mapper/mapping.h"
#include "model/graph/reference.h"
#include "model/seeded/shapes.h"
#include "support/random/random_machine.h"
#include "support/tlm/fresh_kernel.h"
#include "testbench/network/tensors.h"
#include "testbench/run/simulation.h"
#include "tlm/core/core.h"
#include "tlm/dma/request_dma.h"
#include "tlm/system.h"

namespace systole::test {

/// A graph with inputs, to be run on many machines.
struct Workload {
  model::Graph graph;
  std::vector<std::vector<std::uint8_t>> inputs;  ///< bytes of the input tensor

  /// simulate() with a fresh kernel, so a test may do it again and again.
  [[nodiscard]] testbench::SimulationResult simulate(
      const mapper::Mapping& mapping, const hw::Machine& machine, tlm_model::Engines engines,
      const testbench::SimulationOptions& options = {}) const {
    fresh_kernel();
    return testbench::simulate(graph, mapping, machine, std::move(engines), inputs, options);
  }
  [[nodiscard]] testbench::SimulationResult simulate(
      const mapper::Mapping& mapping, const hw::Machine& machine,
      const testbench::SimulationOptions& options = {}) const {
    return simulate(mapping, machine, tlm_model::make_models(machine), options);
  }

  /// Core cycles of one inference without values.
  [[nodiscard]] std::uint64_t cycles(const mapper::Mapping& mapping,
                                     const hw::Machine& machine) const {
    fresh_kernel();
    tlm_model::System system("system", machine, tlm_model::make_models(machine),
                             mapping.program_address, mapping.image, mapping.program.host_functions,
                             false);
    std::uint64_t cycles = 0;
    bool begun = false;
    system.host.set_work([&](tlm_model::Host::Job&) { return !std::exchange(begun, true); },
                         [&](const tlm_model::Host::Job& job) { cycles = job.cycles; });
    sc_core::sc_start();
    return cycles;
  }
};

/// The output tensor for every input, by the reference.
inline std::vector<std::vector<std::uint8_t>> expected_outputs(const Workload& workload) {
  model::Reference reference(workload.graph);
  const model::Tensor& in = workload.graph.tensors[testbench::input_tensor(workload.graph)];
  std::vector<std::vector<std::uint8_t>> outputs;
  for (const auto& input : workload.inputs) {
    reference.set_input(in.name, testbench::widen(input, in.type));
    reference.run();
    outputs.push_back(reference.bytes(testbench::output_tensor(workload.graph)));
  }
  return outputs;
}

/// An encoder with seeded weights and `inferences` seeded inputs.
[[nodiscard]] inline Workload encoder_workload(const model::EncoderShape& shape,
                                               std::uint32_t length, std::size_t inferences) {
  Workload workload{model::make_seeded_encoder("encoder", shape, length, 1), {}};
  const model::Tensor& tensor = workload.graph.tensors[testbench::input_tensor(workload.graph)];
  const std::size_t element = hw::bytes_of(tensor.type);
  for (std::size_t i = 0; i < inferences; ++i) {
    const std::vector<std::int32_t> values = model::seeded_embedding(shape, length, i, {});
    std::vector<std::uint8_t> bytes(tensor.bytes());
    for (std::size_t j = 0; j < values.size(); ++j) {
      std::memcpy(&bytes[j * element], &values[j], element);
    }
    workload.inputs.push_back(std::move(bytes));
  }
  return workload;
}

/// A random machine that is large enough for the graph, and the program for it.
inline std::pair<hw::Machine, mapper::Mapping> random_fit(Random& random,
                                                          const model::Graph& graph) {
  for (;;) {
    const hw::Machine machine = random_machine(random);
    try {
      return {machine, mapper::map_graph(graph, machine)};
    } catch (const hw::InputError&) {
      continue;  // too small
    }
  }
}

}  // namespace systole::test
