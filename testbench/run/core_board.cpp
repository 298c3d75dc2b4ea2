#include "testbench/run/core_board.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "hw/host/core_registers.h"
#include "hw/program/program.h"

namespace systole::testbench {
namespace {

hw::AxiRequester::Params register_port() {
  hw::AxiRequester::Params params;
  params.bytes = CorePorts::kRegisterBytes;
  return params;
}

}  // namespace

CoreBoard::CoreBoard(const hw::Machine& machine, CorePorts& core)
    : bus("bus", machine.bus),
      dram("dram", machine, true),
      interrupt("interrupt"),
      clock_(machine.bus.clock_mhz),
      registers_("registers", machine.bus, register_port(), core.registers()) {
  bus.connect_target(dram.socket, hw::kDramBase, std::uint64_t{machine.dram.mib} << 20);
  bus.connect_target(registers_.socket, hw::kRegistersBase, hw::CoreRegisterMap::kRegisterBytes);
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
    bridges_.push_back(std::make_unique<tlm_model::AxiBridge>(
        kNames.at(i), machine.bus, params, core.port(static_cast<CorePorts::Port>(i))));
  }
  core.reset({[this] {
                for (const auto& bridge : bridges_) bridge->start();
                return clock_.cycle_from(sc_core::sc_time_stamp()) + 1;
              },
              [this](bool level) { interrupt.write(level); }, [] { sc_core::sc_stop(); }});
}

}  // namespace systole::testbench
