#pragma once

#include <tlm_utils/peq_with_cb_and_phase.h>
#include <tlm_utils/peq_with_get.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <systemc>
#include <tlm>

namespace systole::tlm_model {

/// The non-blocking face of a target: the four phases of the base protocol around a function that
/// serves one request.
///
/// A request is accepted (END_REQ) as it arrives, unless `capacity` requests are in flight; then
/// when the next one leaves. It is served in the instant of its acceptance, so requests take effect
/// in that order, and answered (BEGIN_RESP) when it is finished and the previous response has
/// ended. A violation of the base protocol by the initiator is reported as an error.
class AtServer : public sc_core::sc_module {
 public:
  /// Serves a request, sets its status, returns how long it takes from now.
  using Serve = std::function<sc_core::sc_time(tlm::tlm_generic_payload&)>;
  /// nb_transport_bw of the initiator.
  using Backward = std::function<tlm::tlm_sync_enum(tlm::tlm_generic_payload&, tlm::tlm_phase&,
                                                    sc_core::sc_time&)>;

  AtServer(const sc_core::sc_module_name& name, std::size_t capacity, Serve serve,
           Backward backward);

  /// The owner's nb_transport_fw.
  tlm::tlm_sync_enum transport(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                               sc_core::sc_time& delay);

 private:
  void on_phase(tlm::tlm_generic_payload& payload, const tlm::tlm_phase& phase);
  void begin_request(tlm::tlm_generic_payload& payload);
  void end_response(tlm::tlm_generic_payload& payload);
  void accept(tlm::tlm_generic_payload& payload);
  void on_finished();
  void respond();

  const std::size_t capacity_;
  const Serve serve_;
  const Backward backward_;
  std::size_t in_flight_ = 0;
  tlm::tlm_generic_payload* refused_ = nullptr;     ///< begun, not accepted yet
  tlm::tlm_generic_payload* responding_ = nullptr;  ///< response begun, not ended yet
  std::deque<tlm::tlm_generic_payload*> responses_;
  tlm_utils::peq_with_cb_and_phase<AtServer> phases_;
  tlm_utils::peq_with_get<tlm::tlm_generic_payload> finished_{"finished"};
};

}  // namespace systole::tlm_model
