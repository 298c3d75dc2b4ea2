#pragma once

#include <tlm_utils/passthrough_target_socket.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <systemc>
#include <tlm>
#include <vector>

#include "base/accounting.h"
#include "tlm/bus/request_batch.h"

namespace systole::tlm_model {

/// The TLM-2.0 face of a memory; what serving a request means is the derived class's.
///
/// b_transport adds the time of the request to `delay` and never waits. Requests are served in the
/// order of the calls; b_transport knows RequestBatch. There is no nb_transport: SystemC reports an
/// initiator that calls it as an error.
///
/// | request                             | answer                         |
/// |-------------------------------------|--------------------------------|
/// | neither read nor write              | TLM_OK_RESPONSE, nothing done  |
/// | byte enables                        | TLM_BYTE_ENABLE_ERROR_RESPONSE |
/// | no bytes, or streaming              | TLM_BURST_ERROR_RESPONSE       |
/// | not inside the memory               | TLM_ADDRESS_ERROR_RESPONSE     |
/// | no data pointer (functional memory) | TLM_GENERIC_ERROR_RESPONSE     |
///
/// A memory that is not functional takes requests without a data pointer, for their time alone, and
/// any memory those of a batch whose data move by direct access, or all of them after
/// take_time_alone(). Those that have one move their data.
class MemoryTarget : public sc_core::sc_module {
 public:
  tlm_utils::passthrough_target_socket<MemoryTarget> socket{"socket"};

  [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }
  /// From now on initiators may move data without requests, and send these for their time alone.
  void take_time_alone() noexcept { needs_data_ = false; }
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
  /// Copies from `data` to what is stored `here`, or the other way.
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
  /// The same for many, in order.
  virtual void move_all(bool write, std::vector<RequestBatch::Request>& requests) {
    for (RequestBatch::Request& request : requests) move(write, request);
  }
  /// The same for a batch that stands for more requests than are in it, if their times stay equally
  /// far apart, and the status of all is that of the first; false, and nothing is done, if not.
  virtual bool move_in_one(bool /*write*/, RequestBatch& /*batch*/) { return false; }
  /// The same for one whose requests are in rows.
  virtual bool move_rows(bool /*write*/, RequestBatch& /*batch*/) { return false; }
  /// Moves data without time; the range is inside the memory.
  virtual void copy(bool write, std::uint64_t address, unsigned char* data,
                    std::uint64_t bytes) = 0;
  /// Fills in pointer, rights and latencies of direct access to the whole memory, or to a part with
  /// `address` in it, of which it sets the ends; false if it has none to offer.
  virtual bool offer(std::uint64_t address, tlm::tlm_dmi& dmi) = 0;

  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  unsigned transport_dbg(tlm::tlm_generic_payload& payload);
  bool get_direct_mem_ptr(tlm::tlm_generic_payload& payload, tlm::tlm_dmi& dmi);

  /// Serves the request of the payload; moves `time` (ps) from its arrival to its completion.
  tlm::tlm_response_status serve(tlm::tlm_generic_payload& payload, std::uint64_t& time);
  /// What a request without byte enables or streaming is answered.
  [[nodiscard]] tlm::tlm_response_status check(const RequestBatch::Request& request,
                                               bool needs_data) const noexcept;
  tlm::tlm_response_status reject(tlm::tlm_response_status status);

  const std::uint64_t capacity_;
  const bool functional_;
  bool needs_data_;  ///< of requests
  std::uint64_t rejected_ = 0;
};

}  // namespace systole::tlm_model
