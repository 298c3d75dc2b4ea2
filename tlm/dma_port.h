#pragma once

#include <tlm_utils/simple_initiator_socket.h>

#include <cstdint>
#include <deque>
#include <systemc>
#include <tlm>
#include <vector>

#include "hw/machine.h"
#include "tlm/sampled.h"
#include "tlm/time.h"

namespace systole::tlm_model {

/// One direction of a DMA engine: turns runs of bytes into bus requests of at most
/// dma.request_bytes that never cross a multiple of it, issues one a cycle, and keeps at most
/// `outstanding` in flight. The effective bandwidth (outstanding x request_bytes / latency, or the
/// width of the bus) follows from that.
///
/// Loosely timed: a port runs up to kQuantum cycles ahead of simulated time before it waits, and
/// says at which cycle its next request can issue. The bus and the memory keep calendars, so that a
/// request of another initiator still finds the gaps. Call it from one SC_THREAD only.
class DmaPort : public sc_core::sc_module, public Sampled {
 public:
  tlm_utils::simple_initiator_socket<DmaPort> socket{"socket"};

  struct Stats {
    std::uint64_t requests = 0;
    std::uint64_t bytes = 0;
    std::uint64_t window_wait_cycles = 0;  ///< a request could not issue: all slots in flight
  };

  DmaPort(const sc_core::sc_module_name& name, const hw::Machine& machine,
          std::uint32_t outstanding);

  /// Cycles that a port may be ahead of simulated time. A tenth of this already hides the cost of
  /// the kernel; that it does not move results is measured in tests/testbench/quantum_test.cpp.
  static constexpr std::uint64_t kQuantum = 128;

  /// Moves `bytes` from or to `address`, no request before cycle `not_before`. `data` may be null:
  /// timing only. The result is the cycle at which the last byte has arrived (read) or is
  /// acknowledged (write).
  std::uint64_t read(std::uint64_t address, std::uint8_t* data, std::uint64_t bytes,
                     std::uint64_t not_before = 0) {
    return move(tlm::TLM_READ_COMMAND, address, data, bytes, not_before);
  }
  std::uint64_t write(std::uint64_t address, const std::uint8_t* data, std::uint64_t bytes,
                      std::uint64_t not_before = 0) {
    return move(tlm::TLM_WRITE_COMMAND, address, const_cast<std::uint8_t*>(data), bytes,
                not_before);
  }
  /// First cycle after the last issued request.
  [[nodiscard]] std::uint64_t next_issue() const noexcept { return next_issue_; }
  /// Waits until simulated time has caught up with the port.
  void synchronise();
  void set_quantum(std::uint64_t cycles) noexcept { quantum_ = cycles; }

  [[nodiscard]] const Stats& stats() const noexcept { return stats_; }
  void sample() override;
  void trace(sc_core::sc_trace_file* file) const override;

 private:
  std::uint64_t move(tlm::tlm_command command, std::uint64_t address, std::uint8_t* data,
                     std::uint64_t bytes, std::uint64_t not_before);
  std::uint64_t issue(tlm::tlm_command command, std::uint64_t address, std::uint8_t* data,
                      std::uint32_t bytes);
  [[nodiscard]] std::uint64_t now() const { return clock_.cycle_from(sc_core::sc_time_stamp()); }

  const std::uint32_t request_bytes_;
  const Clock clock_;
  std::vector<std::uint64_t> window_;  ///< cycles of completion of the requests in flight, a ring
  std::size_t oldest_ = 0;
  std::uint64_t next_issue_ = 0;
  std::uint64_t quantum_ = kQuantum;
  tlm::tlm_generic_payload payload_;
  Stats stats_;

  struct Flight {
    std::uint64_t issued, done, bytes;
  };
  bool sampled_ = false;           ///< somebody looks: keep `flights_`
  std::deque<Flight> flights_;     ///< issued, ahead of time perhaps, and not yet seen as done
  std::uint32_t outstanding_ = 0;  ///< traced: requests in flight
  std::uint64_t moved_ = 0;        ///< traced: bytes of the requests that are done
};

}  // namespace systole::tlm_model
