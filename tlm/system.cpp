#include "tlm/system.h"

#include <string>
#include <utility>

namespace systole::tlm_model {

Board::Board(const sc_core::sc_module_name& name, const hw::Machine& machine, Engines engines,
             bool functional)
    : sc_module(name),
      bus("bus", machine.bus),
      dram("dram", machine, functional),
      l2(machine.l2.kib == 0
             ? nullptr
             : std::make_unique<L2Cache>("l2", machine, dram.capacity(), functional)),
      core("core", machine, std::move(engines), functional) {
  if (l2) l2->memory.bind(dram.socket);
  bus.connect_target(l2 ? l2->socket : dram.socket, hw::kDramBase, dram.capacity());
  bus.connect_target(core.registers, hw::kRegistersBase, Core::kRegisterBytes);
  core.interrupt(interrupt);
}

Board::Traffic Board::core_traffic() const {
  Traffic traffic;
  for (const unsigned port : core_ports_) {
    const BusCore::Initiator& initiator = bus.core().initiators().at(port);
    traffic.read_bytes += initiator.read_bytes;
    traffic.written_bytes += initiator.written_bytes;
  }
  return traffic;
}

void Board::trace(sc_core::sc_trace_file* file) const {
  sc_core::sc_trace(file, interrupt, std::string(name()) + ".interrupt");
}

System::System(const sc_core::sc_module_name& name, const hw::Machine& machine, Engines engines,
               std::uint64_t program_address, const hw::MemoryImage& image,
               const std::vector<hw::HostFunction>& functions, bool functional)
    : Board(name, machine, std::move(engines), functional),
      host("host", machine, hw::kRegistersBase, program_address, functional),
      clock_(machine.core.clock_mhz),
      image_(image),
      functional_(functional) {
  connect_host(host.socket);
  if (host.compute) bus.connect_initiator(host.compute->lines.socket);
  host.interrupt(interrupt);
  host.set_functions(functions);
  core.set_on_run([this](bool running) { set_counting(running); });
  set_counting(false);
}

void System::set_counting(bool on) {
  const std::uint64_t cycle = clock_.cycle_from(sc_core::sc_time_stamp());
  const sc_core::sc_time now = clock_.edge(cycle);
  core.set_counting(on, cycle);
  if (host.compute) host.compute->set_counting(on, now);
  bus.set_counting(on, now);
  if (l2) l2->set_counting(on, now);
  dram.set_counting(on, now);
}

// Only now are the sockets bound.
void System::start_of_simulation() {
  for (const hw::MemoryPiece& piece : image_) {
    if (functional_ || piece.is_program) poke(piece);
  }
}

void System::poke(const hw::MemoryPiece& piece) {
  host.debug(tlm::TLM_WRITE_COMMAND, piece.address, const_cast<std::uint8_t*>(piece.bytes.data()),
             piece.bytes.size());
}

void System::exchange_program(const hw::MemoryImage& image,
                              const std::vector<hw::HostFunction>& functions) {
  host.set_functions(functions);
  for (const hw::MemoryPiece& piece : image) {
    if (piece.is_program) poke(piece);
  }
}

void System::peek(std::uint64_t address, std::uint8_t* data, std::size_t bytes) {
  host.debug(tlm::TLM_READ_COMMAND, address, data, bytes);
}

std::vector<hw::BlockReport> System::reports() {
  const sc_core::sc_time& now = sc_core::sc_time_stamp();
  std::vector<hw::BlockReport> result = core.reports(clock_.cycle_from(now));
  if (host.compute) result.push_back(host.compute->report());
  bus.finish(now);
  result.push_back(bus.report());
  if (l2) {
    l2->finish(now);
    result.push_back(l2->report());
  }
  dram.finish(now);
  result.push_back(dram.report());
  return result;
}

hw::EnergyEvents System::host_events() const {
  hw::EnergyEvents events;
  if (!host.compute) return events;
  // A cycle of work on the network; the rest of the host's time is not the accelerator's.
  const HostCompute::Work& work = host.compute->work();
  events.host_cycles = work.conversion;
  for (const std::uint64_t cycles : work.operation) events.host_cycles += cycles;
  events.bus_bytes = events.dram_bytes = host.compute->lines.stats().bytes;
  return events;
}

hw::EnergyEvents System::energy_events() {
  hw::EnergyEvents events;
  events.macs = core.array.macs() + core.store.encoder_macs();
  events.postop_elements = core.store.operations() + core.load.stage_operations();
  events.scratchpad_bytes = core.memory.scratchpad.bytes_moved();
  events.accumulator_bytes = core.memory.accumulator.bytes_moved();
  if (core.attention) {
    events.add(core.attention->work().events());
  }
  std::uint64_t moved = 0;
  if (core.loops) {
    const LoopUnit::Work& work = core.loops->work();
    events.macs += work.macs;
    events.postop_elements += work.elements;
    events.scratchpad_bytes += core.loops->scratchpad_bytes();
    events.accumulator_bytes += core.loops->accumulator_bytes();
    moved += work.bus_bytes;
  }
  for (const DmaPort* port : core.ports()) moved += port->stats().bytes;
  events.bus_bytes = events.dram_bytes = moved;
  events.add(host_events());
  if (l2) {
    events.l2_bytes = l2->cache().bank_bytes();
    events.dram_bytes = l2->cache().memory_bytes();
  }
  events.seconds = sc_core::sc_time_stamp().to_seconds();
  return events;
}

}  // namespace systole::tlm_model
