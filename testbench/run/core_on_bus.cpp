#include "testbench/run/core_on_bus.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <exception>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <systemc>
#include <tlm>
#include <utility>

#include "base/error.h"
#include "testbench/rtl/core/core_limits.h"
#include "testbench/rtl/engine/own_block.h"
#include "testbench/run/core_board.h"
#include "testbench/run/rtl_blocks.h"
#include "testbench/run/run_checks.h"
#include "tlm/host/host.h"

namespace systole::testbench {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CoreCommandTimes, dispatched, started, begun, released,
                                   completed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CommandDifference, command, moment, found, expected)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GatesRun, commands, cycles, outputs, counted, wall_seconds,
                                   began, differs, difference, failed, wave_is_cut_short)

struct CoreOnBus::Modules {
  Modules(const hw::Machine& machine, CorePorts& core, const GatesProgram& program)
      : board(machine, core), host("host", machine, hw::kRegistersBase, program.address, true) {
    board.connect_host(host.socket);
    if (host.compute) board.bus.connect_initiator(host.compute->lines.socket);
    host.interrupt(board.interrupt);
    host.set_functions(program.program.host_functions);
  }

  CoreBoard board;
  tlm_model::Host host;
};

CoreOnBus::CoreOnBus(const hw::Machine& machine, CorePorts& core, const GatesProgram& program)
    : machine_(machine),
      core_(core),
      program_(program),
      modules_(std::make_unique<Modules>(machine, core, program)) {}

CoreOnBus::~CoreOnBus() = default;

void CoreOnBus::take_first(const CoreRun& run, GatesRun& result) const {
  result.commands = run.commands;
  result.began = run.began;
  result.differs = core_.difference().has_value();
  if (result.differs) result.difference = *core_.difference();
}

GatesRun CoreOnBus::run(const std::vector<std::vector<std::uint8_t>>& inputs) {
  GatesRun result;
  tlm_model::Host& host = modules_->host;
  std::exception_ptr failure;
  const auto prepare = [&](tlm_model::Host::Job& job) {
    const std::size_t next = result.outputs.size();
    if (failure || next == inputs.size()) return false;
    if (next == 0) {
      for (const hw::MemoryPiece& piece : program_.image) {
        std::vector<std::uint8_t> bytes = piece.bytes;
        host.debug(tlm::TLM_WRITE_COMMAND, piece.address, bytes.data(), bytes.size());
      }
    }
    core_.expect({program_.program, program_.address, machine_.dma.slots, machine_.array.overlap},
                 next == 0 ? program_.expected : nullptr);
    job.inputs = host_buffers(program_.input, &inputs[next]);
    job.outputs = host_buffers(program_.output, nullptr);
    return true;
  };
  const auto deliver = [&](const tlm_model::Host::Job& job) {
    try {
      const CoreRun& run = core_.run();
      result.cycles += run.done;
      if (result.commands.empty()) take_first(run, result);
    } catch (...) {
      failure = std::current_exception();
    }
    result.counted.push_back(job.cycles);
    result.outputs.push_back(bytes_of(job.outputs));
  };
  host.set_work(prepare, deliver);
  const auto begin = std::chrono::steady_clock::now();
  sc_core::sc_start();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  if (failure) std::rethrow_exception(failure);
  if (!host.done()) {
    take_first(core_.run(), result);
    if (result.differs) return result;
    throw std::logic_error("the core in RTL has finished, and its host waits");
  }
  result.wall_seconds = wall.count();
  result.failed = core_.failed();
  result.wave_is_cut_short = core_.wave_is_cut_short();
  return result;
}

void require_gates(const hw::Machine& machine, const hw::Program& program,
                   const RtlOptions& options) {
  const auto own = options.own.find(kCoreInRtl);
  const bool is_own = own != options.own.end();
  const CoreSize size = is_own ? core_size(own->second->sizes) : kTinyCore;
  std::string problem = core_machine_problem(machine, size, is_own ? own->second->folder : "");
  if (problem.empty()) problem = core_program_problem(program, size, machine.postop);
  if (!problem.empty()) throw hw::InputError("--rtl core: " + problem);
}

GatesRun run_gates(const hw::Machine& machine, CorePorts& core, const GatesProgram& program,
                   const std::vector<std::vector<std::uint8_t>>& inputs) {
  CoreOnBus gates(machine, core, program);
  try {
    return gates.run(inputs);
  } catch (const std::invalid_argument& error) {
    throw hw::InputError(std::string("--rtl core: ") + error.what());
  }
}

GatesBeside::GatesBeside(const hw::Machine& machine, const GatesProgram& program,
                         const std::vector<std::vector<std::uint8_t>>& inputs,
                         const RtlOptions& options)
    : process_([&machine, &program, &inputs, &options] {
        // Standard output belongs to the report.
        sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
        const std::unique_ptr<CorePorts> core = make_core_ports(options);
        return nlohmann::json::to_msgpack(run_gates(machine, *core, program, inputs));
      }) {}

GatesRun GatesBeside::result() {
  const Bytes bytes = process_.result([this] {
    if (line_.due()) line_.draw(fmt::format("{} s in gates", line_.seconds()));
  });
  return nlohmann::json::from_msgpack(bytes).get<GatesRun>();
}

}  // namespace systole::testbench
