#pragma once

#include <tlm_utils/passthrough_target_socket.h>

#include <cstdint>
#include <systemc>
#include <tlm>

#include "hw/dram_timing.h"
#include "hw/machine.h"
#include "tlm/at_server.h"
#include "tlm/request_batch.h"
#include "tlm/sparse_memory.h"

namespace systole::tlm_model {

/// Main memory: a TLM-2.0 target with the timing of hw::DramTiming and zero-initialised contents
/// that cost host memory only where touched.
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
class Dram : public sc_core::sc_module {
 public:
  static constexpr std::size_t kRequestQueue = 64;

  tlm_utils::passthrough_target_socket<Dram> socket{"socket"};

  /// A memory that is not `functional` has timing only: it keeps no data, copies none, accepts
  /// payloads without a data pointer, and offers no DMI. Throws std::invalid_argument on bad
  /// parameters, std::bad_alloc if the host cannot provide the address space.
  Dram(const sc_core::sc_module_name& name, const hw::Machine::Dram& params,
       bool functional = true);

  /// Ends the accounts at `total`, the end of the run.
  void finish(const sc_core::sc_time& total);

  [[nodiscard]] std::uint64_t capacity() const noexcept { return timing_.capacity(); }
  [[nodiscard]] const hw::DramTiming& timing() const noexcept { return timing_; }
  /// Requests answered with an error.
  [[nodiscard]] std::uint64_t rejected() const noexcept { return rejected_; }

  void trace(sc_core::sc_trace_file* file) const override;

  template <typename Visitor>
  void for_each(Visitor visit) const {
    timing_.for_each(visit);
    hw::visit_counter(visit,
                      {"rejected", "requests", "requests answered with an error", rejected_});
  }

 private:
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
  tlm::tlm_response_status serve(tlm::tlm_command command, RequestBatch::Request& request);
  tlm::tlm_response_status reject(tlm::tlm_response_status status);
  void copy(tlm::tlm_command command, std::uint64_t address, unsigned char* data,
            std::uint64_t bytes);

  hw::DramTiming timing_;
  SparseMemory memory_;
  bool functional_;
  std::uint64_t rejected_ = 0;
  std::uint64_t row_hits_ = 0, row_misses_ = 0, row_conflicts_ = 0;  ///< traced, in bursts
  AtServer server_;
};

}  // namespace systole::tlm_model
