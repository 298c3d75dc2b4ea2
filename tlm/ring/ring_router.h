#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <systemc>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/ring/engines.h"
#include "hw/ring/pass.h"
#include "tlm/common/time.h"
#include "tlm/ring/ring_link.h"

namespace systole::tlm_model::dfx {

/// A core's router: sends the core's part of a vector both ways around, passes on what others sent,
/// and puts together what arrives, by core, whatever comes first.
class RingRouter : public sc_core::sc_module, public PacketSink {
 public:
  sc_core::sc_port<PacketSink, 1, sc_core::SC_ZERO_OR_MORE_BOUND> left{"left"}, right{"right"};

  /// Part of a vector that has arrived.
  struct Arrival {
    std::uint32_t first, elements;
    std::uint64_t cycle;
    std::vector<hw::Half> values;
  };

  /// `engine`: what becomes of the values of packets in flight; not of sums.
  RingRouter(const sc_core::sc_module_name& name, const hw::Machine& machine, std::uint32_t core,
             std::unique_ptr<hw::RouterEngine> engine);

  /// The core's part of exchange `sequence` (all of it, if sums are exchanged) leaves now. `values`
  /// is empty in a run without values.
  void send(const hw::dfx::Exchange& exchange, std::uint32_t sequence,
            std::vector<hw::Half> values);

  /// Waits until all parts of the exchange have arrived, and takes them.
  [[nodiscard]] std::vector<Arrival> receive(const hw::dfx::Exchange& exchange,
                                             std::uint32_t sequence);

  /// From a link.
  void put(const Packet& packet) override;

 private:
  struct State {
    bool sent = false;
    std::vector<hw::Half> own;      ///< sums
    std::vector<Packet> too_early;  ///< sums that came before the core's own
    std::vector<Arrival> arrivals;
  };

  void forward(Packet packet);
  void add_own(State& state, Packet packet);
  void deliver(State& state, const Packet& packet);
  /// After `cycles` of the core.
  void later(std::uint64_t cycles, const Packet& packet);
  void on_timer();
  [[nodiscard]] std::uint32_t directions() const;
  [[nodiscard]] std::size_t expected(const hw::dfx::Exchange& exchange) const;

  const hw::Machine machine_;
  const std::uint32_t core_;
  const Clock clock_;
  const std::unique_ptr<hw::RouterEngine> engine_;
  std::map<std::uint32_t, State> exchanges_;
  std::multimap<std::uint64_t, Packet> leaving_;  ///< by time, ps: inside the router
  sc_core::sc_event timer_, changed_;
};

}  // namespace systole::tlm_model::dfx
