#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "mapper/mapping.h"
#include "model/data/dataset.h"
#include "support/report_values.h"
#include "support/tlm/fresh_kernel.h"
#include "testbench/network/networks.h"
#include "testbench/run/simulation.h"
#include "tlm/core/core.h"

namespace systole::test {

/// A vision model on a machine, the smallest unless another one is given, with the first few
/// pictures.
struct VitRun {
  explicit VitRun(const std::string& machine_name, std::size_t images = 1,
                  const std::string& model = "vit17")
      : machine(hw::find_machine(machine_name)),
        network(testbench::load_network(model, machine)),
        mapping(mapper::map_graph(network.graph, machine)),
        inputs(testbench::network_inputs(network, model::load_images(testbench::default_data(), {}),
                                         images)) {}

  /// Simulates with a fresh kernel, so a test may do it again.
  testbench::SimulationResult simulate(const testbench::SimulationOptions& options = {}) const {
    fresh_kernel();
    return testbench::simulate(network.graph, mapping, machine, tlm_model::make_models(machine),
                               inputs, options);
  }

  /// A counter of a finished run.
  static std::uint64_t counter(const testbench::SimulationResult& result, const std::string& block,
                               const std::string& name) {
    for (const hw::BlockReport& report : result.blocks) {
      if (report.name == block) return values_of(report).at(name);
    }
    throw std::out_of_range(block + "." + name);
  }

  hw::Machine machine;
  testbench::Network network;
  mapper::Mapping mapping;
  std::vector<std::vector<std::uint8_t>> inputs;
};

}  // namespace systole::test
