#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "mapper/program_file.h"
#include "mapper/replay/replay.h"
#include "testbench/report/report_gates.h"
#include "testbench/run/simulation.h"
#include "tests/rtl/core/core_case.h"

namespace systole::testbench {

/// A program of `cases` in the memory that they have, all data of which are its input.
inline mapper::LoadableProgram loadable(RandomCore& cases, hw::Program program,
                                        const hw::Machine& machine) {
  mapper::LoadableProgram loaded;
  loaded.network = "random";
  loaded.program = std::move(program);
  loaded.machine = machine;
  loaded.address = cases.put(loaded.program);
  loaded.image = {{0, cases.state().memory}};
  loaded.input = {"data", hw::DType::kU8, 0, 256, RandomCore::kData / 256, 256};
  loaded.output = loaded.input;
  return loaded;
}

/// In the mapper's replay by request every command completes as in a run of the model, and the
/// program ends as there.
inline void expect_replay(const mapper::LoadableProgram& loaded, const SimulationResult& model) {
  // Operators of one command: the replay keeps when they end.
  hw::Program program = loaded.program;
  for (std::uint32_t i = 0; i < program.commands.size(); ++i) program.commands[i].op = i;
  mapper::Replay replay(loaded.machine, mapper::Replay::Service::kRequests);
  replay.place_program(loaded.address);
  const mapper::TensorPlace& input = loaded.input;
  replay.write_input({input.address, input.pitch, input.row_bytes(), 0, input.rows});
  replay.run(program, 0, program.commands.size());
  EXPECT_EQ(replay.finish() - replay.begin(), model.cycles.front());
  const std::vector<CoreCommandTimes> times = command_times(model);
  for (std::size_t i = 0; i < times.size(); ++i) {
    EXPECT_EQ(replay.operator_ends()[i] - replay.begin(), times[i].completed) << "command " << i;
  }
}

}  // namespace systole::testbench
