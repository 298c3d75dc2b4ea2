#include "tlm/system.h"

#include <string>
#include <utility>

namespace systole::tlm_model {

System::System(const sc_core::sc_module_name& name, const hw::Machine& machine, Engines engines,
               std::uint64_t program_address, const hw::MemoryImage& image,
               const std::vector<hw::HostFunction>& functions, bool functional)
    : sc_module(name),
      bus("bus", machine.bus),
      dram("dram", machine, functional),
      l2(machine.l2.kib == 0
             ? nullptr
             : std::make_unique<L2Cache>("l2", machine, dram.capacity(), functional)),
      core("core", machine, std::move(engines), functional),
      host("host", machine, hw::kRegistersBase, program_address, functional),
      clock_(machine.core.clock_mhz),
      image_(image),
      functional_(functional) {
  if (l2) l2->memory.bind(dram.socket);
  bus.connect_target(l2 ? l2->socket : dram.socket, hw::kDramBase, dram.capacity());
  bus.connect_target(core.registers, hw::kRegistersBase, Core::kRegisterBytes);
  bus.connect_initiator(host.socket);
  for (DmaPort* port : core.ports()) bus.connect_initiator(port->socket);
  if (core.loops) bus.connect_initiator(core.loops->socket);
  if (host.compute) bus.connect_initiator(host.compute->lines.socket);
  core.interrupt(interrupt_);
  host.interrupt(interrupt_);
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

void System::trace(sc_core::sc_trace_file* file) const {
  sc_core::sc_trace(file, interrupt_, std::string(name()) + ".interrupt");
}

std::vector<BlockReport> System::reports() {
  const sc_core::sc_time& now = sc_core::sc_time_stamp();
  std::vector<BlockReport> result = core.reports(clock_.cycle_from(now));
  if (host.compute) result.push_back(host.compute->report());
  bus.finish(now);
  dram.finish(now);
  const auto add = [&](const char* block, const auto& module) {
    BlockReport& report = result.emplace_back(BlockReport{block, {}, {}});
    module.for_each([&](const hw::Counter& counter) { report.counters.push_back(counter); });
  };
  add("bus", bus);
  if (l2) {
    l2->finish(now);
    add("l2", *l2);
  }
  add("dram", dram);
  return result;
}

}  // namespace systole::tlm_model
