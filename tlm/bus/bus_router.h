#pragma once

#include <tlm_utils/peq_with_cb_and_phase.h>
#include <tlm_utils/peq_with_get.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <systemc>
#include <tlm>
#include <unordered_map>
#include <vector>

#include "tlm/bus/address_map.h"
#include "tlm/bus/bus_core.h"

namespace systole::tlm_model {

/// The non-blocking transport of the system bus: the four phases of the base protocol on both
/// sides, arbitration, and queues. The channels are those of BusCore, shared with b_transport.
///
///     BEGIN_REQ from the initiator: waits for the arbiter
///       grant   -> END_REQ to the initiator when the last beat of the request is on its channel
///       arrival -> BEGIN_REQ to the target, after the END_REQ of the previous one to that target
///     BEGIN_RESP from the target: data wait for their channel
///       taken   -> END_RESP to the target when the last beat is on its channel
///       arrival -> BEGIN_RESP to the initiator, after the END_RESP of the previous one
///     END_RESP from the initiator: over
///
/// One request per bus cycle is granted. The arbiter passes over requests to a target that has not
/// accepted request_latency + 2 earlier ones, as many as the pipeline to it holds; if only such
/// requests wait, the request channel is stalled by target_backpressure. Responses wait in the bus.
/// A violation of the base protocol is reported as an error.
class BusRouter : public sc_core::sc_module {
 public:
  /// nb_transport_fw of target n, nb_transport_bw of initiator n.
  using Transport = std::function<tlm::tlm_sync_enum(std::size_t, tlm::tlm_generic_payload&,
                                                     tlm::tlm_phase&, sc_core::sc_time&)>;

  BusRouter(const sc_core::sc_module_name& name, BusCore& core, const AddressMap& map,
            Transport forward, Transport backward);

  /// How many initiators and targets there are; before the simulation starts.
  void resize(std::size_t initiators, std::size_t targets);

  tlm::tlm_sync_enum from_initiator(std::size_t id, tlm::tlm_generic_payload& payload,
                                    tlm::tlm_phase& phase, sc_core::sc_time& delay);
  tlm::tlm_sync_enum from_target(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                 sc_core::sc_time& delay);

 private:
  /// What happens next to a request by the mere passing of time.
  enum class Step { kAccept, kForward, kTake, kRespond };
  struct Request {
    tlm::tlm_generic_payload* payload;
    std::size_t initiator;
    const AddressMap::Range* range;  ///< null: no target
    std::uint64_t address;           ///< as the initiator gave it
    std::uint64_t arrival;           ///< bus cycle
    std::uint64_t arrives;           ///< bus cycle at the other side, while it moves
    Step step;
    bool ended_by_target;  ///< TLM_COMPLETED: the target expects no END_RESP
  };
  struct Target {
    std::size_t unaccepted = 0;  ///< granted, not accepted yet
    Request* sending = nullptr;  ///< BEGIN_REQ sent, not accepted yet
    std::deque<Request*> queue;
  };
  struct Initiator {
    bool requesting = false;        ///< BEGIN_REQ came, END_REQ not sent yet
    Request* waiting = nullptr;     ///< for the arbiter
    Request* responding = nullptr;  ///< BEGIN_RESP sent, not ended yet
    std::deque<Request*> responses;
  };

  Request& find(tlm::tlm_generic_payload& payload);
  void on_phase(tlm::tlm_generic_payload& payload, const tlm::tlm_phase& phase);
  void on_step();
  void schedule(Request& request, Step step, std::uint64_t cycle);

  void begin_request(Request& request);
  void wake_arbiter();
  void arbitrate();
  [[nodiscard]] bool blocked(const Request& request) const;
  [[nodiscard]] Request* pick();
  void grant(Request& request, std::uint64_t cycle);
  void accept(Request& request);
  void send(std::size_t target);
  void end_request(Request& request);
  void begin_response(Request& request);
  void take(Request& request);
  void respond(std::size_t initiator);
  void end_response(Request& request);

  BusCore& core_;
  const AddressMap& map_;
  const Transport forward_;
  const Transport backward_;
  std::vector<Initiator> initiators_;
  std::vector<Target> targets_;
  std::unordered_map<tlm::tlm_generic_payload*, Request> requests_;
  std::size_t last_granted_ = 0;
  std::uint64_t next_grant_ = 0;  ///< bus cycle
  sc_core::sc_event arbiter_{"arbiter"};
  tlm_utils::peq_with_cb_and_phase<BusRouter> phases_;
  tlm_utils::peq_with_get<Request> steps_{"steps"};
};

}  // namespace systole::tlm_model
