#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <variant>

#include "analysis/bound/lower_bound.h"
#include "base/error.h"
#include "bench/cpu_time.h"
#include "bench/double_buffers.h"
#include "bench/mapping_grid.h"
#include "mapper/mapping.h"
#include "mapper/program_file.h"
#include "mapper/replay/replay.h"
#include "testbench/network/run_subject.h"
#include "testbench/network/tensors.h"
#include "testbench/report/measurement.h"
#include "testbench/run/rtl_blocks.h"
#include "testbench/run/simulation.h"

namespace systole::bench {

/// A program replayed as a whole.
struct Replayed {
  std::uint64_t cycles;
  double seconds;
};
inline Replayed replay(const model::Graph& graph, const mapper::Mapping& mapping,
                       const hw::Machine& machine, mapper::Replay::Service service) {
  const double before = cpu_seconds();
  mapper::Replay replay(machine, service);
  replay.place_program(mapping.program_address);
  const mapper::TensorPlace input =
      mapper::place_of(graph, mapping, testbench::input_tensor(graph));
  replay.write_input({input.address, input.pitch, input.row_bytes(), 0, input.rows});
  replay.run(mapping.program, 0, mapping.program.commands.size());
  return {replay.finish() - replay.begin(), cpu_seconds() - before};
}

/// One simulation without values, in this process. {"unfit": why} for a machine that cannot run it.
inline nlohmann::ordered_json run_mapping(const Network& network, hw::Machine machine,
                                          std::uint32_t layers) {
  testbench::RunRequest request;
  request.model = network.model;
  request.limit = network.past == 0 ? 1 : 0;  // of a decoder the length says it
  request.functional = false;
  if (network.model != "vit65" && layers != 0) request.size.layers = layers;
  if (network.length != 0) request.size.length = network.length;
  request.size.decode = network.past != 0;
  if (network.past != 0) request.size.past = network.past;
  try {
    const testbench::RunSubject subject(request, machine);
    const double before = cpu_seconds();
    static_cast<void>(mapper::map_graph(subject.graph(), machine));
    const double mapping_seconds = cpu_seconds() - before;
    // Of a decoder this is the step's program, which is placed as those of other steps are.
    const mapper::Mapping& mapping = subject.mapping();
    testbench::SimulationOptions simulation;
    simulation.functional = false;
    simulation.next_step = subject.next_step();
    testbench::RtlReport rtl;
    const double simulated_from = cpu_seconds();
    const testbench::Measurement measurement =
        testbench::measure(machine, network.label, subject.macs(), simulation,
                           testbench::simulate(subject.graph(), subject.mapping(), machine,
                                               testbench::make_engines(machine, {}, rtl),
                                               subject.inputs(), simulation));
    const double simulation_seconds = cpu_seconds() - simulated_from;
    const Replayed chunks =
        replay(subject.graph(), mapping, machine, mapper::Replay::Service::kChunks);
    const Replayed requests =
        replay(subject.graph(), mapping, machine, mapper::Replay::Service::kRequests);
    double expected = 0, expected_bytes = 0;
    for (const mapper::Tiling& tiling : mapping.tilings) {
      expected += static_cast<double>(tiling.cycles);
      expected_bytes += static_cast<double>(tiling.load_bytes);
    }
    std::uint64_t loaded = 0;
    for (const hw::Command& command : mapping.program.commands) {
      if (const auto* const load = std::get_if<hw::cmd::Load>(&command.work)) {
        const hw::ReadRows read = hw::read_rows(*load);
        loaded += read.rows * read.bytes;
      }
    }
    return {{"cycles", measurement.mean_cycles()},
            {"bound", measurement.bound()},
            {"bound_by", analysis::lower_bound(subject.graph(), machine).bound_by()},
            {"expected_cycles", expected},
            {"expected_loads", expected_bytes},
            {"loads", loaded},
            {"mapping_seconds", mapping_seconds},
            {"simulation_seconds", simulation_seconds},
            {"by_chunk", chunks.cycles},
            {"by_chunk_seconds", chunks.seconds},
            {"by_request", requests.cycles},
            {"by_request_seconds", requests.seconds},
            {"double_buffers", holds_double_buffers(subject.graph(), machine)}};
  } catch (const hw::InputError& error) {
    return {{"unfit", error.what()}};
  }
}

}  // namespace systole::bench
