#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <systemc>
#include <vector>

#include "base/accounting.h"
#include "hw/machine/machine.h"
#include "tlm/bus/crossbar.h"
#include "tlm/bus/memory_window.h"
#include "tlm/ring/compute_core.h"
#include "tlm/ring/pcie.h"
#include "tlm/ring/ring_host.h"
#include "tlm/ring/ring_link.h"

namespace systole::tlm_model::dfx {

/// What a core of the ring is made of.
struct RingPlace {
  std::uint32_t register_elements = 0;
  std::uint64_t program = 0;  ///< address in its DDR from which on its programs are
  HalfEngines engines;
};

/// Cards with a core, an HBM and a DDR each, joined by a ring. Their bus is a crossbar on which any
/// initiator reaches any memory, register or register file: hw/ring/ring_map.h has the addresses. A
/// core's requests meet those of nobody else.
class RingBoard : public sc_core::sc_module {
 public:
  Crossbar bus;

  /// `shared_ddr`: where the DDR of each core begins in a memory on another bus; empty: each card
  /// has its own.
  RingBoard(const sc_core::sc_module_name& name, const hw::Machine& machine,
            std::vector<RingPlace> places, bool functional,
            const std::vector<std::uint64_t>& shared_ddr = {});

  /// Of a core whose DDR is shared: its way to that bus.
  [[nodiscard]] MemoryWindow& ddr_window(std::size_t i) { return *ddr_windows_.at(i); }

  [[nodiscard]] ComputeCore& core(std::size_t i) { return *cores_[i]; }
  [[nodiscard]] std::size_t cores() const { return cores_.size(); }
  [[nodiscard]] sc_core::sc_signal<bool>& interrupt(std::size_t i) { return *interrupts_[i]; }
  /// Both directions of the link to the right of core i; bytes so far.
  [[nodiscard]] std::uint64_t link_bytes(std::size_t i) const;
  /// Of all cores, until now.
  [[nodiscard]] std::vector<hw::BlockReport> reports();

 private:
  void connect_ring(const hw::Machine& machine);
  void connect_core(const hw::Machine& machine, std::uint32_t index,
                    const std::vector<std::uint64_t>& shared_ddr);

  std::vector<std::unique_ptr<ComputeCore>> cores_;
  std::vector<std::unique_ptr<MemoryWindow>> ddr_windows_;
  std::vector<std::unique_ptr<sc_core::sc_signal<bool>>> interrupts_;
  std::vector<std::unique_ptr<RingLink>> to_right_, to_left_;  ///< of core i
};

/// What a host of one ring shares with those of others: `more` work, and the turns of its link.
struct RingCluster {
  RingHost::More more;
  std::shared_ptr<PcieTurns> turns;
};

/// The cards, and a host behind PCIe. As a part of a larger system, `shared_ddr` of its cores; one
/// of several clusters has a `cluster`.
class RingSystem : public RingBoard {
 public:
  Pcie pcie;
  RingHost host;

  RingSystem(const sc_core::sc_module_name& name, const hw::Machine& machine,
             std::vector<RingPlace> places, bool functional, RingHost::Next next,
             const std::vector<std::uint64_t>& shared_ddr = {}, RingCluster cluster = {});

  /// The host knows that the last pass has ended.
  [[nodiscard]] bool done() const { return host.done(); }
  /// Of all cores and of PCIe, until now.
  [[nodiscard]] std::vector<hw::BlockReport> reports();
  /// Why there was no program for a core, or one that it could not run; empty: all could.
  [[nodiscard]] std::string fault();

 private:
  RingSystem(const sc_core::sc_module_name& name, const hw::Machine& machine,
             std::vector<HostedCore> hosted, std::vector<RingPlace>&& places, bool functional,
             RingHost::Next next, const std::vector<std::uint64_t>& shared_ddr,
             RingCluster&& cluster);
};

}  // namespace systole::tlm_model::dfx
