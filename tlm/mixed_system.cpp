#include "tlm/mixed_system.h"

#include <algorithm>
#include <string>
#include <utility>

#include "hw/ring/ring_map.h"

namespace systole::tlm_model {

MixedSystem::MixedSystem(const sc_core::sc_module_name& name, const hw::Machine& machine,
                         std::vector<CorePlace> places, const std::vector<Software>& software,
                         std::vector<const hw::MemoryImage*> images, bool functional, RingSite site)
    : System(name, machine, std::move(places), software, std::move(images), functional, true),
      ring(
          site.name.c_str(), site.machine, std::move(site.places), functional,
          [this, of = std::move(site.next)](dfx::RingHost& host) { return next(of, host); },
          site.ddr) {
  if (l2) l2->leave_values(*std::min_element(site.ddr.begin(), site.ddr.end()));
  for (std::size_t i = 0; i < ring.cores(); ++i) {
    dfx::RingPort& port = ring.core(i).ddr_port;
    ddr_initiators_.push_back(bus.connect_initiator(ring.ddr_window(i).memory));
    bus.name_initiator(ddr_initiators_.back(), port.name());
  }
  bus.connect_target(ring.bus.initiators, site.window, hw::dfx::window_bytes(site.machine));
}

std::vector<const hw::dfx::Pass*> MixedSystem::next(const dfx::RingHost::Next& of,
                                                    dfx::RingHost& host) {
  std::vector<const hw::dfx::Pass*> passes = of(host);
  const bool runs = !passes.empty();
  if (runs != std::exchange(ring_runs_, runs)) {
    set_runner_counting(runs, sc_core::sc_time_stamp());
  }
  return passes;
}

bool MixedSystem::done() const noexcept { return System::done() && ring.done(); }

std::vector<hw::BlockReport> MixedSystem::reports() {
  std::vector<hw::BlockReport> all;
  for (hw::BlockReport& report : ring.reports()) {
    report.name = std::string(ring.basename()) + "." + report.name;
    all.push_back(std::move(report));
  }
  std::vector<hw::BlockReport> others = System::reports();
  all.insert(all.begin(), others.begin(), others.end());
  return all;
}

}  // namespace systole::tlm_model
