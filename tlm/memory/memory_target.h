#pragma once

#include <tlm_utils/passthrough_target_socket.h>
#include <tlm_utils/peq_with_cb_and_phase.h>
#include <tlm_utils/peq_with_get.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <systemc>
#include <tlm>

#include "base/accounting.h"
#include "tlm/bus/request_batch.h"

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

/// The TLM-2.0 face of a memory; what serving a request means is the derived class's.
///
/// b_transport adds the time of the request to `delay` and never waits. Requests are served in the
/// order of the calls; b_transport knows RequestBatch. nb_transport takes the four phases of the
/// base protocol, with up to kRequestQueue requests in flight (see AtServer); both may be used at
/// once.
///
/// | request                             | answer                         |
/// |-------------------------------------|--------------------------------|
/// | neither read nor write              | TLM_OK_RESPONSE, nothing done  |
/// | byte enables                        | TLM_BYTE_ENABLE_ERROR_RESPONSE |
/// | no bytes, or streaming              | TLM_BURST_ERROR_RESPONSE       |
/// | not inside the memory               | TLM_ADDRESS_ERROR_RESPONSE     |
/// | no data pointer (functional memory) | TLM_GENERIC_ERROR_RESPONSE     |
///
/// A memory that is not functional takes requests without a data pointer, for their time alone.
/// Those that have one move their data.
class MemoryTarget : public sc_core::sc_module {
 public:
  static constexpr std::size_t kRequestQueue = 64;

  tlm_utils::passthrough_target_socket<MemoryTarget> socket{"socket"};

  [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }
  /// Requests answered with an error.
  [[nodiscard]] std::uint64_t rejected() const noexcept { return rejected_; }

 protected:
  MemoryTarget(const sc_core::sc_module_name& name, std::uint64_t capacity, bool functional);

  [[nodiscard]] bool functional() const noexcept { return functional_; }
  [[nodiscard]] hw::BlockReport with_rejected(hw::BlockReport report) const {
    report.counters.push_back(
        {"rejected", "requests", "requests answered with an error", rejected_});
    return report;
  }
  /// Copies from `data` to what stands `here`, or the other way.
  static void copy_bytes(bool write, unsigned char* here, unsigned char* data,
                         std::uint64_t bytes) {
    if (write) {
      std::memcpy(here, data, bytes);
    } else {
      std::memcpy(data, here, bytes);
    }
  }

 private:
  /// Serves a request inside the memory: moves its data, if it has any, and its time from arrival
  /// to completion.
  virtual void move(bool write, RequestBatch::Request& request) = 0;
  /// Moves data without time; the range is inside the memory.
  virtual void copy(bool write, std::uint64_t address, unsigned char* data,
                    std::uint64_t bytes) = 0;
  /// Fills in pointer, rights and latencies of direct access to the whole memory; false if it has
  /// none to offer.
  virtual bool offer(tlm::tlm_dmi& dmi) = 0;

  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay) {
    return server_.transport(payload, phase, delay);
  }
  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  unsigned transport_dbg(tlm::tlm_generic_payload& payload);
  bool get_direct_mem_ptr(tlm::tlm_generic_payload& payload, tlm::tlm_dmi& dmi);

  /// Serves the request of the payload; moves `time` (ps) from its arrival to its completion.
  tlm::tlm_response_status serve(tlm::tlm_generic_payload& payload, std::uint64_t& time);
  /// The same for a request without byte enables or streaming.
  tlm::tlm_response_status check_and_serve(bool write, RequestBatch::Request& request);
  tlm::tlm_response_status reject(tlm::tlm_response_status status);

  const std::uint64_t capacity_;
  const bool functional_;
  std::uint64_t rejected_ = 0;
  AtServer server_;
};

}  // namespace systole::tlm_model
