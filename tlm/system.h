#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <systemc>
#include <vector>

#include "base/accounting.h"
#include "hw/energy.h"
#include "hw/machine/machine.h"
#include "hw/program/program.h"
#include "tlm/bus/link.h"
#include "tlm/bus/system_bus.h"
#include "tlm/common/time.h"
#include "tlm/common/value_queue.h"
#include "tlm/core/core.h"
#include "tlm/host/host.h"
#include "tlm/memory/dram.h"
#include "tlm/memory/l2_cache.h"

namespace systole::tlm_model {

/// A core of a board and how it is reached.
struct CorePlace {
  std::string name;
  hw::Machine machine;  ///< its own keys, and those of the board
  Engines engines;
  std::uint64_t registers = hw::kRegistersBase;
  std::uint32_t link_ns = 0;  ///< see Link
};

/// What cores moved from and to memory, commands included, the host's transfers not.
struct CoreTraffic {
  std::uint64_t read_bytes = 0, written_bytes = 0;
};

/// A core on a board.
struct BoardCore {
  std::unique_ptr<Core> core;
  std::unique_ptr<Link> link;                           ///< nullptr: its ports are at the bus
  std::unique_ptr<sc_core::sc_signal<bool>> interrupt;  ///< for its host
  Clock clock;
  std::uint64_t registers;
  std::vector<unsigned> ports;  ///< as initiators of the bus
  std::uint32_t node;           ///< of a mesh
  BusMesh::Endpoint endpoint;   ///< at the node
};

/// A machine but for its hosts: system bus, L2 cache, DRAM, cores.
class Board : public sc_core::sc_module {
  const bool named_, functional_;

 public:
  SystemBus bus;
  Dram dram;
  std::unique_ptr<L2Cache> l2;   ///< nullptr: the machine has none
  std::vector<BoardCore> cores;  ///< at least one
  ValueQueue values;             ///< of cores that can share it

  Core& core;                           ///< the first
  sc_core::sc_signal<bool>& interrupt;  ///< its

  /// One core, "core". `functional` off: the same cycles without values.
  Board(const sc_core::sc_module_name& name, const hw::Machine& machine, Engines engines,
        bool functional);
  /// Bus, L2 cache and DRAM of `machine`, and at least one core. `named`: what belongs to a core
  /// has its name even if it is the only one. Throws hw::InputError if addresses overlap, or nodes
  /// of a mesh.
  Board(const sc_core::sc_module_name& name, const hw::Machine& machine,
        std::vector<CorePlace> places, bool functional, bool named = false);

  /// Threads that simulate and compute, before the simulation begins. One by default: then memory
  /// has at any time what commands have left there, also for who has direct access to it. Cores
  /// that cannot share their values keep it at one.
  void set_threads(unsigned threads) noexcept { threads_ = threads; }
  /// What is stored in main memory, for actions of `values`; null: caches may have other values, or
  /// it is not inside.
  [[nodiscard]] const std::uint8_t* stored(ValueQueue::Span span) const noexcept {
    return all_share_ ? values.at(span) : nullptr;
  }

  using Traffic = CoreTraffic;
  /// Of all cores.
  [[nodiscard]] Traffic core_traffic() const;
  [[nodiscard]] Traffic core_traffic(std::size_t index) const;

  void trace(sc_core::sc_trace_file* file) const override;

 protected:
  /// Binds the only host's socket to the bus, and then all ports of the cores. To be called once.
  template <typename Socket>
  void connect_host(Socket& socket) {
    bus.connect_initiator(socket);
    connect_cores();
  }
  /// Binds all ports of the cores to the bus. To be called once, after the hosts are bound.
  void connect_cores();
  /// Of an initiator of the bus: see hw::EnergyEvents.
  [[nodiscard]] std::uint64_t byte_hops(unsigned initiator) const;
  /// Whether what belongs to a core has its name.
  [[nodiscard]] bool named() const noexcept { return named_; }
  [[nodiscard]] bool functional() const noexcept { return functional_; }
  void start_of_simulation() override;

 private:
  /// Puts memory and cores on the mesh.
  void place_on_mesh(const hw::Machine::Noc& noc, unsigned memory,
                     const std::vector<unsigned>& registers);
  BoardCore& make_cores(std::vector<CorePlace> places, bool functional);

  unsigned threads_ = 1;
  bool all_share_ = false;  ///< the values of all cores are computed by `values`
};

/// A whole machine. Its memory holds the pieces of an image when the simulation begins. Each core
/// has its own host, which may be a thread of one CPU.
class System : public Board {
 public:
  std::vector<std::unique_ptr<Host>> hosts;  ///< by core
  Host& host;                                ///< of the first core

  /// One core. `image` and `functions` must outlive the system; a program is in the former at
  /// `program_address`. `functional` off: the same cycles without values; of the image, memory then
  /// holds what the core reads as program.
  System(const sc_core::sc_module_name& name, const hw::Machine& machine, Engines engines,
         std::uint64_t program_address, const hw::MemoryImage& image,
         const std::vector<hw::HostFunction>& functions, bool functional);

  /// What a core runs.
  struct Software {
    std::uint64_t program_address = 0;
    const std::vector<hw::HostFunction>* functions = nullptr;
  };
  /// Cores at the places, with software in their order. Images and functions must outlive the
  /// system. Throws hw::InputError if addresses overlap.
  System(const sc_core::sc_module_name& name, const hw::Machine& machine,
         std::vector<CorePlace> places, const std::vector<Software>& software,
         std::vector<const hw::MemoryImage*> images, bool functional, bool named = false);

  /// What runs next, while nothing runs: the pieces of `image`, without values its program alone,
  /// take the place of those before without taking simulated time. `functions` must outlive the
  /// run. Each piece is dropped as soon as memory has it.
  void exchange_program(hw::MemoryImage image, const std::vector<hw::HostFunction>& functions);

  /// What DRAM has from `begin` to `end` is not read any more: it costs no host memory.
  void forget(std::uint64_t begin, std::uint64_t end) { dram.forget(begin, end); }

  /// No host has any more jobs.
  [[nodiscard]] virtual bool done() const noexcept;

  /// Copies memory without taking simulated time. Throws std::out_of_range beyond the DRAM.
  void peek(std::uint64_t address, std::uint8_t* data, std::size_t bytes);

  /// All blocks, at the end of the simulation. Time counts from each start of a core to its
  /// completion, the cycles that the core counts (Host::Job): not while the host sets up, writes
  /// inputs or reads results. That of bus, L2 cache and DRAM counts while any core runs. Closes
  /// their accounts. Blocks of a core among several have its name before theirs: "core1.load".
  [[nodiscard]] virtual std::vector<hw::BlockReport> reports();
  /// What the simulation so far did, as far as it costs energy.
  [[nodiscard]] hw::EnergyEvents energy_events();
  /// Of it, what happened in a core: memory beyond its ports, and time, are of no core.
  [[nodiscard]] hw::EnergyEvents core_events(std::size_t index) const;
  /// Of it, what the host computed for the core and moved for that.
  [[nodiscard]] hw::EnergyEvents host_events() const;

 protected:
  /// Something that uses bus and memory runs from `now` on, or runs no more.
  void set_runner_counting(bool on, const sc_core::sc_time& now);

 private:
  void start_of_simulation() override;
  void poke(const hw::MemoryPiece& piece);
  /// `machines` of the places, whose engines go into the board.
  System(const sc_core::sc_module_name& name, const hw::Machine& machine,
         const std::vector<hw::Machine>& machines, std::vector<CorePlace>&& places,
         const std::vector<Software>& software, std::vector<const hw::MemoryImage*> images,
         bool functional, bool named);
  Host& make_hosts(const std::vector<Software>& software, const std::vector<hw::Machine>& machines,
                   bool functional);
  static void add_events(const Core& of, hw::EnergyEvents& events);
  /// From the present cycle of a core on, time counts in the accounts of its blocks or it does not.
  void set_counting(std::size_t index, bool on);
  void set_shared_counting(bool on, const sc_core::sc_time& now);

  std::vector<unsigned> lines_;  ///< of computing hosts, as initiators of the bus
  const std::vector<const hw::MemoryImage*> images_;
  std::size_t running_ = 0;  ///< cores, and others that use what they share
};

}  // namespace systole::tlm_model
