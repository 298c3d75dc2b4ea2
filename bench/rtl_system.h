#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <systemc>
#include <utility>
#include <vector>

#include "hw/description/machine_file.h"
#include "mapper/mapping.h"
#include "model/data/dataset.h"
#include "testbench/common/child_process.h"
#include "testbench/network/networks.h"
#include "testbench/run/rtl_blocks.h"
#include "testbench/run/simulation.h"

/// A whole run with every block as RTL, next to the same run with none.
namespace systole::bench {

inline constexpr const char* kSystemMachine = "transformer";
inline constexpr const char* kSystemModel = "vit65";
inline constexpr std::size_t kSystemImages = 8;

/// What a run leaves; it crosses from one process to another as JSON.
struct SystemRun {
  double wall = 0.0;  ///< seconds of simulation, all images
  std::uint64_t mismatches = 0;
  std::vector<std::uint64_t> cycles;               ///< per image
  std::vector<std::vector<std::uint8_t>> outputs;  ///< per image
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SystemRun, wall, mismatches, cycles, outputs)

class SystemComparison {
 public:
  SystemComparison()
      : model_machine_(hw::find_machine(kSystemMachine)),
        rtl_machine_(model_machine_),
        network_(testbench::load_network(kSystemModel, model_machine_)),
        mapping_(mapper::map_graph(network_.graph, model_machine_)),
        inputs_(testbench::network_inputs(
            network_, model::load_images(testbench::default_data(), {}), kSystemImages)) {
    testbench::swap_for_rtl(rtl_machine_, "all");
  }

  /// Two lines, of which the second has the ratio of the times. The fastest of some runs counts;
  /// they take turns, so that a busy host slows both.
  [[nodiscard]] nlohmann::ordered_json measure() {
    constexpr int kRepeats = 3;
    SystemRun model = run_once(model_machine_);
    SystemRun rtl = run_once(rtl_machine_);
    for (int i = 1; i < kRepeats; ++i) {
      model.wall = std::min(model.wall, run_once(model_machine_).wall);
      rtl.wall = std::min(rtl.wall, run_once(rtl_machine_).wall);
    }
    differing_ = differences(rtl, model);
    return {line("model", model, model), line("rtl", rtl, model)};
  }

  /// Cycles and outputs of every image, and whatever the RTL was compared with operation by
  /// operation.
  [[nodiscard]] bool equal() const { return differing_ == 0; }

 private:
  /// In a separate process, as SystemC elaborates once per process.
  [[nodiscard]] SystemRun run_once(const hw::Machine& machine) const {
    const testbench::Bytes bytes = testbench::run_in_child([&] {
      // Standard output belongs to the figures.
      sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
      testbench::RtlReport report;
      testbench::SimulationResult result = testbench::simulate(
          network_.graph, mapping_, machine, testbench::make_engines(machine, {}, report), inputs_,
          testbench::SimulationOptions{});
      const SystemRun run{result.wall_seconds, testbench::total_mismatches(report),
                          std::move(result.cycles), std::move(result.outputs)};
      return nlohmann::json::to_msgpack(run);
    });
    return nlohmann::json::from_msgpack(bytes).get<SystemRun>();
  }

  [[nodiscard]] static std::uint64_t differences(const SystemRun& rtl, const SystemRun& model) {
    std::uint64_t count = rtl.mismatches;
    for (std::size_t i = 0; i < model.cycles.size(); ++i) {
      count += rtl.cycles.at(i) != model.cycles[i] ? 1 : 0;
      count += rtl.outputs.at(i) != model.outputs[i] ? 1 : 0;
    }
    return count;
  }
  [[nodiscard]] static nlohmann::ordered_json line(const char* blocks, const SystemRun& run,
                                                   const SystemRun& model) {
    std::uint64_t cycles = 0;
    for (const std::uint64_t each : run.cycles) cycles += each;
    return {{"blocks", blocks},
            {"images", run.cycles.size()},
            {"cycles", cycles},
            {"differing", differences(run, model)},
            {"wall_s_per_image", run.wall / static_cast<double>(run.cycles.size())},
            {"ratio", run.wall / model.wall}};
  }

  hw::Machine model_machine_;
  hw::Machine rtl_machine_;
  testbench::Network network_;
  mapper::Mapping mapping_;
  std::vector<std::vector<std::uint8_t>> inputs_;
  std::uint64_t differing_ = 0;
};

}  // namespace systole::bench
