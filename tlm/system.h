#pragma once

#include <cstdint>
#include <memory>
#include <systemc>
#include <vector>

#include "base/accounting.h"
#include "hw/energy.h"
#include "hw/machine/machine.h"
#include "hw/program/program.h"
#include "tlm/bus/system_bus.h"
#include "tlm/core/core.h"
#include "tlm/host/host.h"
#include "tlm/memory/dram.h"
#include "tlm/memory/l2_cache.h"

namespace systole::tlm_model {

/// A machine but for its host: system bus, L2 cache, DRAM, one core.
class Board : public sc_core::sc_module {
 public:
  SystemBus bus;
  Dram dram;
  std::unique_ptr<L2Cache> l2;  ///< nullptr: the machine has none
  Core core;
  sc_core::sc_signal<bool> interrupt{"interrupt"};  ///< of the core, for the host

  /// `functional` off: the same cycles without values.
  Board(const sc_core::sc_module_name& name, const hw::Machine& machine, Engines engines,
        bool functional);

  /// What the core moved from and to memory, commands included, the host's transfers not.
  struct Traffic {
    std::uint64_t read_bytes = 0, written_bytes = 0;
  };
  [[nodiscard]] Traffic core_traffic() const;

  void trace(sc_core::sc_trace_file* file) const override;

 protected:
  /// Binds the host's socket to the bus, and then all ports of the core. To be called once.
  template <typename Socket>
  void connect_host(Socket& socket) {
    bus.connect_initiator(socket);
    for (DmaPort* port : core.ports()) core_ports_.push_back(bus.connect_initiator(port->socket));
    if (core.loops) core_ports_.push_back(bus.connect_initiator(core.loops->socket));
  }

 private:
  std::vector<unsigned> core_ports_;  ///< as initiators of the bus
};

/// A whole machine. Its memory holds `image` when the simulation begins.
class System : public Board {
 public:
  Host host;

  /// `image` and `functions` must outlive the system; a program is in the former at
  /// `program_address`. `functional` off: the same cycles without values; of the image, memory then
  /// holds what the core reads as program.
  System(const sc_core::sc_module_name& name, const hw::Machine& machine, Engines engines,
         std::uint64_t program_address, const hw::MemoryImage& image,
         const std::vector<hw::HostFunction>& functions, bool functional);

  /// What runs next, while nothing runs: the program pieces of `image` take the place of those
  /// before without taking simulated time. `functions` must outlive the run.
  void exchange_program(const hw::MemoryImage& image,
                        const std::vector<hw::HostFunction>& functions);

  /// The host has no more jobs.
  [[nodiscard]] bool done() const noexcept { return host.done(); }

  /// Copies memory without taking simulated time. Throws std::out_of_range beyond the DRAM.
  void peek(std::uint64_t address, std::uint8_t* data, std::size_t bytes);

  /// All blocks, at the end of the simulation. Time counts from each start of the core to its
  /// completion, the cycles that the core counts (Host::Job): not while the host sets up, writes
  /// inputs or reads results. Closes the accounts of bus, L2 cache and DRAM.
  [[nodiscard]] std::vector<hw::BlockReport> reports();
  /// What the simulation so far did, as far as it costs energy.
  [[nodiscard]] hw::EnergyEvents energy_events();
  /// Of it, what the host computed for the core and moved for that.
  [[nodiscard]] hw::EnergyEvents host_events() const;

 private:
  void start_of_simulation() override;
  void poke(const hw::MemoryPiece& piece);
  /// From the present core cycle on, time counts in the accounts of all blocks or it does not.
  void set_counting(bool on);

  const Clock clock_;
  const hw::MemoryImage& image_;
  const bool functional_;
};

}  // namespace systole::tlm_model
