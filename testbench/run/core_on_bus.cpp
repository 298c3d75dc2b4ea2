#include "testbench/run/core_on_bus.h"

#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <systemc>
#include <tlm>
#include <utility>

#include "base/error.h"
#include "hw/dma/request_cut.h"
#include "testbench/rtl/core/core_limits.h"
#include "testbench/rtl/engine/own_block.h"
#include "testbench/run/rtl_blocks.h"
#include "testbench/run/run_checks.h"
#include "tlm/axi/axi_bridge.h"
#include "tlm/bus/core_registers.h"
#include "tlm/bus/request_batch.h"
#include "tlm/bus/system_bus.h"
#include "tlm/common/time.h"
#include "tlm/memory/dram.h"

namespace systole::testbench {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CoreCommandTimes, dispatched, started, released, completed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GatesRun, commands, cycles, outputs, wall_seconds, failed,
                                   wave_is_cut_short)

namespace {

/// Where the host is on the bus.
class HostPort : public sc_core::sc_module {
 public:
  explicit HostPort(const sc_core::sc_module_name& name) : sc_module(name) {}
  tlm_utils::simple_initiator_socket<HostPort> socket{"socket"};
};

/// Where the host starts the core.
class StartRegister : public sc_core::sc_module {
 public:
  explicit StartRegister(const sc_core::sc_module_name& name) : sc_module(name) {
    socket.register_b_transport(this, &StartRegister::b_transport);
  }
  tlm_utils::simple_target_socket<StartRegister> socket{"socket"};

 private:
  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& /*delay*/) {
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
  }
};

}  // namespace

struct CoreOnBus::Modules {
  Modules(const hw::Machine& machine, CorePorts& core)
      : clock(machine.bus.clock_mhz),
        register_time(machine.host.mmio_ns, sc_core::SC_NS),
        bus("bus", machine.bus),
        dram("dram", machine, true) {
    bus.connect_target(dram.socket, hw::kDramBase, std::uint64_t{machine.dram.mib} << 20);
    bus.connect_target(start.socket, hw::kRegistersBase, hw::kRegisterBytes);
    bus.connect_initiator(host.socket);
    dram.take_time_alone();
    constexpr std::array<const char*, CorePorts::kPorts> kNames = {"program", "loads", "stores",
                                                                   "operands"};
    for (std::size_t i = 0; i < CorePorts::kPorts; ++i) {
      hw::AxiSubordinate::Params params;
      params.bytes = core.size().lanes;
      // The core's IDs are what bounds its requests.
      params.reads = params.writes = 2 * core.size().outstanding;
      // The core's data follow their address without a gap (hw/dma/write_dma.h).
      params.asks_with_address = i == CorePorts::kStores;
      bridges.push_back(std::make_unique<tlm_model::AxiBridge>(
          kNames.at(i), machine.bus, params, core.port(static_cast<CorePorts::Port>(i))));
      bus.connect_initiator(bridges.back()->socket);
    }
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
  }

  void access(tlm::tlm_command command, std::uint64_t address, std::vector<std::uint8_t>& bytes) {
    tlm::tlm_generic_payload payload;
    describe(payload, command, address, bytes);
    if (host.socket->transport_dbg(payload) == bytes.size()) return;
    throw std::logic_error("an address is not in memory");
  }

  /// As the model's host moves a row: line by line over the bus, and it waits for each answer.
  void write(std::uint64_t address, const std::vector<std::uint8_t>& bytes) {
    hw::kHostLines.for_each(address, bytes.size(), [&](std::uint64_t at, std::uint64_t length) {
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
      std::vector<std::uint8_t> part(begin, begin + static_cast<std::ptrdiff_t>(length));
      sc_core::sc_start(send(tlm::TLM_WRITE_COMMAND, address + at, part, sc_core::SC_ZERO_TIME));
    });
  }

  /// What the model's host does before its first inference: it reads who is there and says where
  /// the program is.
  void meet_core() {
    sc_core::sc_start(access_register(tlm::TLM_READ_COMMAND, tlm_model::CoreRegisters::kId));
    sc_core::sc_start(access_register(tlm::TLM_WRITE_COMMAND, tlm_model::CoreRegisters::kProgram));
  }

  /// What starts the model's core goes over the bus in its first cycle, which is the next one then.
  void start_core() {
    (void)access_register(tlm::TLM_WRITE_COMMAND, tlm_model::CoreRegisters::kControl);
  }

  /// As the model's host accesses a register. Stops just before the cycle in which that is on the
  /// bus; returns when the answer is there.
  sc_core::sc_time access_register(tlm::tlm_command command, std::uint64_t offset) {
    const sc_core::sc_time before = tlm_model::from_ps(1);
    const sc_core::sc_time now = sc_core::sc_time_stamp();
    const sc_core::sc_time edge =
        clock.edge(clock.cycle_from(now + std::max(register_time, before)));
    if (edge > now + before) sc_core::sc_start(edge - now - before);
    constexpr std::size_t kBytes = sizeof(std::uint64_t);
    std::vector<std::uint8_t> bytes(kBytes);
    return send(command, hw::kRegistersBase + offset, bytes, edge - sc_core::sc_time_stamp());
  }

  /// Asks in `delay`; returns when the answer is there.
  sc_core::sc_time send(tlm::tlm_command command, std::uint64_t address,
                        std::vector<std::uint8_t>& bytes, sc_core::sc_time delay) {
    tlm::tlm_generic_payload payload;
    describe(payload, command, address, bytes);
    host.socket->b_transport(payload, delay);
    if (!payload.is_response_ok()) throw std::logic_error("an address is not in memory");
    return delay;
  }

  static void describe(tlm::tlm_generic_payload& payload, tlm::tlm_command command,
                       std::uint64_t address, std::vector<std::uint8_t>& bytes) {
    payload.set_command(command);
    tlm_model::describe_request(payload, address, bytes.data(),
                                static_cast<std::uint32_t>(bytes.size()));
  }

  const tlm_model::Clock clock;
  const sc_core::sc_time register_time;
  bool has_met_core = false;
  tlm_model::SystemBus bus;
  tlm_model::Dram dram;
  HostPort host{"host"};
  StartRegister start{"start"};
  std::vector<std::unique_ptr<tlm_model::AxiBridge>> bridges;
};

CoreOnBus::CoreOnBus(const hw::Machine& machine, CorePorts& core)
    : machine_(machine), core_(core), modules_(std::make_unique<Modules>(machine, core)) {}

CoreOnBus::~CoreOnBus() = default;

void CoreOnBus::write(const hw::MemoryImage& image) {
  for (const hw::MemoryPiece& piece : image) {
    std::vector<std::uint8_t> bytes = piece.bytes;
    modules_->access(tlm::TLM_WRITE_COMMAND, piece.address, bytes);
  }
}

void CoreOnBus::write(const mapper::TensorPlace& place, const std::vector<std::uint8_t>& bytes) {
  if (!std::exchange(modules_->has_met_core, true)) modules_->meet_core();
  for (tlm_model::Host::Buffer& row : host_buffers(place, &bytes)) {
    modules_->write(row.address, row.bytes);
  }
}

std::vector<std::uint8_t> CoreOnBus::read(const mapper::TensorPlace& place) {
  std::vector<tlm_model::Host::Buffer> rows = host_buffers(place, nullptr);
  for (tlm_model::Host::Buffer& row : rows) {
    modules_->access(tlm::TLM_READ_COMMAND, row.address, row.bytes);
  }
  return bytes_of(rows);
}

CoreRun CoreOnBus::run(const hw::Program& program, std::uint64_t address) {
  modules_->start_core();
  core_.start({program, address, machine_.dma.slots, machine_.array.overlap},
              modules_->clock.cycle_from(sc_core::sc_time_stamp()));
  for (const auto& bridge : modules_->bridges) bridge->start();
  sc_core::sc_start();
  return core_.run();
}

void require_gates(const hw::Machine& machine, const hw::Program& program,
                   const RtlOptions& options) {
  const auto own = options.own.find(kCoreInRtl);
  const bool is_own = own != options.own.end();
  const CoreSize size = is_own ? core_size(own->second->sizes) : kTinyCore;
  std::string problem = core_machine_problem(machine, size, is_own ? own->second->folder : "");
  if (problem.empty()) problem = core_program_problem(program, size);
  if (!problem.empty()) throw hw::InputError("--rtl core: " + problem);
}

GatesRun run_gates(const hw::Machine& machine, CorePorts& core, const GatesProgram& program,
                   const std::vector<std::vector<std::uint8_t>>& inputs) {
  CoreOnBus gates(machine, core);
  gates.write(program.image);
  GatesRun result;
  for (const std::vector<std::uint8_t>& input : inputs) {
    gates.write(program.input, input);
    const auto begin = std::chrono::steady_clock::now();
    CoreRun run;
    try {
      run = gates.run(program.program, program.address);
    } catch (const std::invalid_argument& error) {
      throw hw::InputError(std::string("--rtl core: ") + error.what());
    }
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
    result.wall_seconds += wall.count();
    result.cycles += run.done;
    if (result.commands.empty()) result.commands = std::move(run.commands);
    result.outputs.push_back(gates.read(program.output));
  }
  result.failed = core.failed();
  result.wave_is_cut_short = core.wave_is_cut_short();
  return result;
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
  return nlohmann::json::from_msgpack(process_.result()).get<GatesRun>();
}

}  // namespace systole::testbench
