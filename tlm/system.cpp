#include "tlm/system.h"

#include <string>
#include <utility>

namespace systole::tlm_model {

System::System(const sc_core::sc_module_name& name, const hw::Machine& machine, Engines engines,
               const hw::Program& program, std::uint64_t program_address,
               const hw::MemoryImage& image, bool functional)
    : sc_module(name),
      bus("bus", machine.bus),
      dram("dram", machine.dram, functional),
      core("core", machine, std::move(engines), functional),
      host("host", machine.host, hw::kRegistersBase, program_address),
      clock_(machine.core.clock_mhz),
      image_(image),
      functional_(functional) {
  bus.connect_target(dram.socket, hw::kDramBase, dram.capacity());
  bus.connect_target(core.registers, hw::kRegistersBase, Core::kRegisterBytes);
  bus.connect_initiator(host.socket);
  for (DmaPort* port : core.ports()) bus.connect_initiator(port->socket);
  core.interrupt(interrupt_);
  host.interrupt(interrupt_);
  core.load_program(program);
}

// Only now are the sockets bound.
void System::start_of_simulation() {
  if (!functional_) return;
  for (const hw::MemoryPiece& piece : image_) {
    host.debug(tlm::TLM_WRITE_COMMAND, piece.address, const_cast<std::uint8_t*>(piece.bytes.data()),
               piece.bytes.size());
  }
}

void System::peek(std::uint64_t address, std::uint8_t* data, std::size_t bytes) {
  host.debug(tlm::TLM_READ_COMMAND, address, data, bytes);
}

void System::trace(sc_core::sc_trace_file* file) const {
  sc_core::sc_trace(file, interrupt_, std::string(name()) + ".interrupt");
}

std::vector<BlockReport> System::reports() {
  const sc_core::sc_time now = sc_core::sc_time_stamp();
  std::vector<BlockReport> result = core.reports(clock_.cycle_from(now));
  bus.finish(now);
  dram.finish(now);
  BlockReport bus_report{"bus", {}, {}}, dram_report{"dram", {}, {}};
  bus.for_each([&](const hw::Counter& counter) { bus_report.counters.push_back(counter); });
  dram.for_each([&](const hw::Counter& counter) { dram_report.counters.push_back(counter); });
  result.push_back(std::move(bus_report));
  result.push_back(std::move(dram_report));
  return result;
}

}  // namespace systole::tlm_model
