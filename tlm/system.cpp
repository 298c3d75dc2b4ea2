#include "tlm/system.h"

#include <malloc.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "hw/noc/mesh_nodes.h"

// Of mimalloc, where a program is linked with it; else the allocator is glibc's own.
extern "C" void mi_collect(bool force) noexcept __attribute__((weak));

namespace systole::tlm_model {

namespace {

/// After so many bytes of an image that goes piece by piece, what its pieces and their mapper have
/// left is given back: main memory does not come from the allocator, which would keep that.
constexpr std::size_t kGiveBackBytes = std::size_t{16} << 20U;

/// Gives memory that was freed, and that the allocator keeps for what comes next, to the system.
void give_back_free_memory() noexcept {
  if (mi_collect != nullptr) {
    mi_collect(true);
  } else {
    (void)::malloc_trim(0);
  }
}

std::vector<CorePlace> only_core(const hw::Machine& machine, Engines engines) {
  std::vector<CorePlace> places;
  places.push_back({"core", machine, std::move(engines)});
  return places;
}

std::vector<hw::Machine> machines_of(const std::vector<CorePlace>& places) {
  std::vector<hw::Machine> machines;
  for (const CorePlace& place : places) machines.push_back(place.machine);
  return machines;
}

}  // namespace

Board::Board(const sc_core::sc_module_name& name, const hw::Machine& machine, Engines engines,
             bool functional)
    : Board(name, machine, only_core(machine, std::move(engines)), functional) {}

Board::Board(const sc_core::sc_module_name& name, const hw::Machine& machine,
             std::vector<CorePlace> places, bool functional, bool named)
    : sc_module(name),
      named_(named || places.size() > 1),
      functional_(functional),
      bus("bus", machine.bus, make_mesh(machine)),
      dram("dram", machine, functional),
      l2(machine.l2.kib == 0
             ? nullptr
             : std::make_unique<L2Cache>("l2", machine, dram.capacity(), functional)),
      values(&dram.stored(0), dram.capacity()),
      core(*make_cores(std::move(places), functional).core),
      interrupt(*cores.front().interrupt) {
  if (l2) l2->memory.bind(dram.socket);
  const unsigned memory =
      bus.connect_target(l2 ? l2->socket : dram.socket, hw::kDramBase, dram.capacity());
  std::vector<unsigned> registers;
  for (BoardCore& each : cores) {
    registers.push_back(
        bus.connect_target(each.core->registers, each.registers, Core::kRegisterBytes));
    each.core->interrupt(*each.interrupt);
  }
  if (bus.mesh() != nullptr) place_on_mesh(machine.noc, memory, registers);
}

void Board::place_on_mesh(const hw::Machine::Noc& noc, unsigned memory,
                          const std::vector<unsigned>& registers) {
  std::vector<std::uint32_t> nodes;
  for (const BoardCore& each : cores) nodes.push_back(each.node);
  if (const std::string problem = hw::node_problem(noc, nodes); !problem.empty()) {
    throw hw::InputError("noc: " + problem);
  }
  bus.mesh()->place_memory(memory);
  for (std::size_t i = 0; i < cores.size(); ++i) {
    cores[i].endpoint = bus.mesh()->add_core(cores[i].node, cores[i].core->basename());
    bus.mesh()->place(registers[i], cores[i].endpoint);
  }
}

BoardCore& Board::make_cores(std::vector<CorePlace> places, bool functional) {
  for (CorePlace& place : places) {
    BoardCore made{nullptr,
                   nullptr,
                   nullptr,
                   Clock(place.machine.core.clock_mhz),
                   place.registers,
                   {},
                   place.machine.noc.node,
                   BusMesh::kHosts};
    made.core = std::make_unique<Core>(place.name.c_str(), place.machine, std::move(place.engines),
                                       functional);
    const std::string prefix = named_ ? place.name + "_" : "";
    if (place.link_ns != 0) {
      made.link = std::make_unique<Link>((prefix + "link").c_str(), place.link_ns);
    }
    made.interrupt = std::make_unique<sc_core::sc_signal<bool>>((prefix + "interrupt").c_str());
    cores.push_back(std::move(made));
  }
  return cores.front();
}

void Board::connect_cores() {
  for (BoardCore& each : cores) {
    const auto connect = [&](auto& socket) {
      if (each.link) {
        socket.bind(each.link->ports);
        each.ports.push_back(bus.connect_initiator(each.link->bus));
        bus.name_initiator(each.ports.back(), socket.name());
      } else {
        each.ports.push_back(bus.connect_initiator(socket));
      }
      bus.place_initiator(each.ports.back(), each.endpoint);
    };
    for (DmaPort* port : each.core->ports()) connect(port->socket);
    if (each.core->loops) connect(each.core->loops->socket);
  }
}

std::uint64_t Board::byte_hops(unsigned initiator) const {
  return bus.core().initiators().at(initiator).byte_hops;
}

Board::Traffic Board::core_traffic(std::size_t index) const {
  Traffic traffic;
  for (const unsigned port : cores.at(index).ports) {
    const BusCore::Initiator& initiator = bus.core().initiators().at(port);
    traffic.read_bytes += initiator.read_bytes;
    traffic.written_bytes += initiator.written_bytes;
  }
  return traffic;
}

Board::Traffic Board::core_traffic() const {
  Traffic sum;
  for (std::size_t i = 0; i < cores.size(); ++i) {
    const Traffic traffic = core_traffic(i);
    sum.read_bytes += traffic.read_bytes;
    sum.written_bytes += traffic.written_bytes;
  }
  return sum;
}

void Board::trace(sc_core::sc_trace_file* file) const {
  for (const BoardCore& each : cores) {
    sc_core::sc_trace(file, *each.interrupt, each.interrupt->name());
  }
}

System::System(const sc_core::sc_module_name& name, const hw::Machine& machine, Engines engines,
               std::uint64_t program_address, const hw::MemoryImage& image,
               const std::vector<hw::HostFunction>& functions, bool functional)
    : System(name, machine, only_core(machine, std::move(engines)), {{program_address, &functions}},
             {&image}, functional) {}

System::System(const sc_core::sc_module_name& name, const hw::Machine& machine,
               std::vector<CorePlace> places, const std::vector<Software>& software,
               std::vector<const hw::MemoryImage*> images, bool functional, bool named)
    : System(name, machine, machines_of(places), std::move(places), software, std::move(images),
             functional, named) {}

System::System(const sc_core::sc_module_name& name, const hw::Machine& machine,
               const std::vector<hw::Machine>& machines, std::vector<CorePlace>&& places,
               const std::vector<Software>& software, std::vector<const hw::MemoryImage*> images,
               bool functional, bool named)
    : Board(name, machine, std::move(places), functional, named),
      host(make_hosts(software, machines, functional)),
      images_(std::move(images)) {
  for (const auto& each : hosts) bus.connect_initiator(each->socket);
  connect_cores();
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    Host& each = *hosts[i];
    if (each.compute) lines_.push_back(bus.connect_initiator(each.compute->lines.socket));
    each.interrupt(*cores[i].interrupt);
    each.set_functions(*software[i].functions);
    each.set_on_done([this] {
      if (!done()) return;
      values.await();
      sc_core::sc_stop();
    });
    cores[i].core->set_on_run([this, i](bool running) { set_counting(i, running); });
    set_counting(i, false);
  }
  set_shared_counting(false, sc_core::sc_time_stamp());
}

Host& System::make_hosts(const std::vector<Software>& software,
                         const std::vector<hw::Machine>& machines, bool functional) {
  for (std::size_t i = 0; i < cores.size(); ++i) {
    const std::string host_name =
        named() ? std::string(cores[i].core->basename()) + "_host" : "host";
    hosts.push_back(std::make_unique<Host>(host_name.c_str(), machines[i], cores[i].registers,
                                           software.at(i).program_address, functional));
  }
  return *hosts.front();
}

bool System::done() const noexcept {
  return std::all_of(hosts.begin(), hosts.end(), [](const auto& each) { return each->done(); });
}

void System::set_counting(std::size_t index, bool on) {
  const BoardCore& each = cores[index];
  const std::uint64_t cycle = each.clock.cycle_from(sc_core::sc_time_stamp());
  const sc_core::sc_time now = each.clock.edge(cycle);
  each.core->set_counting(on, cycle);
  if (hosts[index]->compute) hosts[index]->compute->set_counting(on, now);
  set_runner_counting(on, now);
}

void System::set_runner_counting(bool on, const sc_core::sc_time& now) {
  if (on && running_++ == 0) set_shared_counting(true, now);
  if (!on && running_ != 0 && --running_ == 0) set_shared_counting(false, now);
}

void System::set_shared_counting(bool on, const sc_core::sc_time& now) {
  bus.set_counting(on, now);
  if (l2) l2->set_counting(on, now);
  dram.set_counting(on, now);
}

void Board::start_of_simulation() {
  static_assert(hw::kDramBase == 0, "commands have offsets in main memory");
  if (!functional_) return;
  all_share_ = std::all_of(cores.begin(), cores.end(),
                           [](const auto& each) { return each.core->can_share_values(); });
  if (!all_share_) return;
  for (BoardCore& each : cores) each.core->share_values(values);
  values.set_threads(threads_);
  dram.share_values(values);
  if (!l2) return;
  l2->leave_values(0);
  l2->take_time_alone();
}

// Only now are the sockets bound.
void System::start_of_simulation() {
  Board::start_of_simulation();
  for (const hw::MemoryImage* image : images_) {
    for (const hw::MemoryPiece& piece : *image) poke(piece);
  }
}

void System::poke(const hw::MemoryPiece& piece) {
  if (!functional() && !piece.is_program) return;
  const std::shared_ptr<const std::uint8_t> bytes = piece.bytes.hold();
  host.debug(tlm::TLM_WRITE_COMMAND, piece.address, const_cast<std::uint8_t*>(bytes.get()),
             piece.bytes.size());
}

void System::exchange_program(hw::MemoryImage image,
                              const std::vector<hw::HostFunction>& functions) {
  host.set_functions(functions);
  // The program first: unlike tiles of weights it is there, and the allocator keeps for a while
  // what has just gone.
  std::stable_partition(image.begin(), image.end(),
                        [](const hw::MemoryPiece& piece) { return piece.is_program; });
  std::size_t taken = 0;
  for (hw::MemoryPiece& piece : image) {
    poke(piece);
    taken += piece.bytes.size();
    piece.bytes = {};
    if (taken < kGiveBackBytes) continue;
    give_back_free_memory();
    taken = 0;
  }
}

void System::peek(std::uint64_t address, std::uint8_t* data, std::size_t bytes) {
  host.debug(tlm::TLM_READ_COMMAND, address, data, bytes);
}

std::vector<hw::BlockReport> System::reports() {
  const sc_core::sc_time& now = sc_core::sc_time_stamp();
  std::vector<hw::BlockReport> result;
  for (std::size_t i = 0; i < cores.size(); ++i) {
    const std::size_t first = result.size();
    for (hw::BlockReport& report : cores[i].core->reports(cores[i].clock.cycle_from(now))) {
      result.push_back(std::move(report));
    }
    if (hosts[i]->compute) result.push_back(hosts[i]->compute->report());
    if (!named()) continue;
    for (std::size_t at = first; at < result.size(); ++at) {
      result[at].name = std::string(cores[i].core->basename()) + "." + result[at].name;
    }
  }
  bus.finish(now);
  result.push_back(bus.report());
  if (bus.mesh() != nullptr) result.push_back(bus.mesh()->mesh().report("noc"));
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
  for (const auto& each : hosts) {
    if (!each->compute) continue;
    // A cycle of work on the network; the rest of the host's time is not the accelerator's.
    const HostCompute::Work& work = each->compute->work();
    events.host_cycles += work.conversion;
    for (const std::uint64_t cycles : work.operation) events.host_cycles += cycles;
    events.bus_bytes += each->compute->lines.stats().bytes;
  }
  for (const unsigned id : lines_) events.noc_byte_hops += byte_hops(id);
  events.dram_bytes = events.bus_bytes;
  return events;
}

void System::add_events(const Core& of, hw::EnergyEvents& events) {
  events.macs += of.array.macs() + of.store.encoder_macs();
  events.int4_macs += of.array.int4_macs();
  events.int4_int4_macs += of.array.int4_int4_macs();
  events.postop_elements += of.store.operations() + of.load.operations();
  events.scratchpad_bytes += of.memory.scratchpad.bytes_moved();
  events.accumulator_bytes += of.memory.accumulator.bytes_moved();
  if (of.attention) {
    events.add(of.attention->work().events());
  }
  if (of.loops) {
    const LoopUnit::Work& work = of.loops->work();
    events.macs += work.macs;
    events.postop_elements += work.elements;
    events.scratchpad_bytes += of.loops->scratchpad_bytes();
    events.accumulator_bytes += of.loops->accumulator_bytes();
    events.bus_bytes += work.bus_bytes;
  }
}

hw::EnergyEvents System::core_events(std::size_t index) const {
  hw::EnergyEvents events;
  Core& of = *cores.at(index).core;
  add_events(of, events);
  for (const DmaPort* port : of.ports()) events.bus_bytes += port->stats().bytes;
  for (const unsigned id : cores[index].ports) events.noc_byte_hops += byte_hops(id);
  return events;
}

hw::EnergyEvents System::energy_events() {
  hw::EnergyEvents events;
  for (std::size_t i = 0; i < cores.size(); ++i) events.add(core_events(i));
  events.dram_bytes = events.bus_bytes;
  events.add(host_events());
  if (l2) {
    events.l2_bytes = l2->cache().bank_bytes();
    events.dram_bytes = l2->cache().memory_bytes();
  }
  events.seconds = sc_core::sc_time_stamp().to_seconds();
  return events;
}

}  // namespace systole::tlm_model
