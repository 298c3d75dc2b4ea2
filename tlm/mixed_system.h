#pragma once

#include <cstdint>
#include <string>
#include <systemc>
#include <vector>

#include "tlm/ring/ring_system.h"
#include "tlm/system.h"

namespace systole::tlm_model {

/// A ring of FP16 cores in a system of tile cores, and what its host does.
struct RingSite {
  std::string name;
  hw::Machine machine;                 ///< its own keys; dram.mib: of the DDR of each of its cores
  std::uint64_t window = 0;            ///< of its addresses on the system bus
  std::vector<std::uint64_t> ddr;      ///< by core: where its DDR is in the system's memory
  std::vector<dfx::RingPlace> places;  ///< by core
  dfx::RingHost::Next next;
};

/// Tile cores, and a ring whose cores have parts of the system's memory as their DDR: they reach it
/// over the system bus, at simulated time. Their HBM, the links between them and their PCIe are
/// theirs alone. Whoever is on the system bus reaches all of them in a window of it.
class MixedSystem : public System {
 public:
  dfx::RingSystem ring;

  /// The first arguments as of System. Throws hw::InputError if addresses overlap.
  MixedSystem(const sc_core::sc_module_name& name, const hw::Machine& machine,
              std::vector<CorePlace> places, const std::vector<Software>& software,
              std::vector<const hw::MemoryImage*> images, bool functional, RingSite site);

  [[nodiscard]] bool done() const noexcept override;
  /// With the blocks of the ring, whose names begin with its name.
  [[nodiscard]] std::vector<hw::BlockReport> reports() override;

  /// What the bus counted of the DDR ports of the ring's cores.
  [[nodiscard]] const std::vector<unsigned>& ddr_initiators() const noexcept {
    return ddr_initiators_;
  }

 private:
  /// The next passes; time of what is shared counts until there are none.
  std::vector<const hw::dfx::Pass*> next(const dfx::RingHost::Next& of, dfx::RingHost& host);

  bool ring_runs_ = false;
  std::vector<unsigned> ddr_initiators_;
};

}  // namespace systole::tlm_model
