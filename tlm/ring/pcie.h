#pragma once

#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <cstdint>
#include <memory>
#include <systemc>
#include <tlm>

#include "base/accounting.h"
#include "hw/machine/parameters.h"
#include "tlm/common/signals.h"

namespace systole::tlm_model::dfx {

/// When the bytes of a link move: one request after the other.
struct PcieTurns {
  std::uint64_t since_ps = 0;  ///< bytes have followed each other since then,
  double taken_ns = 0.0;       ///< for so long
};

/// The way from a host to what is on the cards' bus.
///
/// | request                | takes                                                    |
/// |------------------------|----------------------------------------------------------|
/// | up to 8 bytes          | `pcie.latency_ns`: they travel with their header          |
/// | more                   | its turn, bytes / `pcie.gbyte_per_s`, `pcie.latency_ns`  |
///
/// Both are added to the time of the target. Requests of one time overlap but for their bytes.
/// Cards of several clusters have a Pcie each; where they are linked to one port of the host, their
/// bytes take the same turns.
class Pcie : public sc_core::sc_module, public Watched {
 public:
  tlm_utils::simple_target_socket<Pcie> host{"host"};
  tlm_utils::simple_initiator_socket<Pcie> card{"card"};

  /// `turns`: shared with others; null: its own.
  Pcie(const sc_core::sc_module_name& name, const hw::dfx::Pcie& params,
       std::shared_ptr<PcieTurns> turns = nullptr);

  void watch(SignalRecorder& recorder) override;

  /// Until `ps`.
  [[nodiscard]] hw::BlockReport report(std::uint64_t ps) const;

 private:
  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  unsigned transport_dbg(tlm::tlm_generic_payload& payload) { return card->transport_dbg(payload); }

  const hw::dfx::Pcie params_;
  hw::BlockAccount account_;
  const std::shared_ptr<PcieTurns> turns_;
  std::uint64_t requests_ = 0, bytes_ = 0;
  std::unique_ptr<AccountSignal> state_;  ///< shown
};

}  // namespace systole::tlm_model::dfx
