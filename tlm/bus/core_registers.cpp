#include "tlm/bus/core_registers.h"

#include <cstring>

namespace systole::tlm_model {

void CoreRegisters::serve(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay,
                          const Clock& clock) {
  const std::uint64_t arrival = clock.cycle_from(sc_core::sc_time_stamp() + delay);
  const auto answer = [&](tlm::tlm_response_status status) {
    clock.wait_until(arrival + kAnswerCycles);
    delay = sc_core::SC_ZERO_TIME;
    payload.set_response_status(status);
  };
  if (payload.get_byte_enable_ptr() != nullptr) return answer(tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
  if (payload.get_data_length() != 8 || payload.get_streaming_width() < 8) {
    return answer(tlm::TLM_BURST_ERROR_RESPONSE);
  }
  const std::uint64_t offset = payload.get_address();
  if (payload.is_write()) {
    if (!is_writable(offset)) return answer(tlm::TLM_ADDRESS_ERROR_RESPONSE);
    std::uint64_t value = 0;
    std::memcpy(&value, payload.get_data_ptr(), 8);
    answer(tlm::TLM_OK_RESPONSE);
    return write(offset, value);
  }
  if (!payload.is_read()) return answer(tlm::TLM_COMMAND_ERROR_RESPONSE);
  // What the edge itself changes is not there yet.
  const sc_core::sc_time looks = clock.edge(arrival + kAnswerCycles - 1) - from_ps(1);
  if (looks > sc_core::sc_time_stamp()) sc_core::wait(looks - sc_core::sc_time_stamp());
  const std::optional<std::uint64_t> value = read(offset);
  if (value) std::memcpy(payload.get_data_ptr(), &*value, 8);
  answer(value ? tlm::TLM_OK_RESPONSE : tlm::TLM_ADDRESS_ERROR_RESPONSE);
}

std::optional<std::uint64_t> CoreRegisters::read(std::uint64_t offset) const {
  switch (offset) {
    case kId:
      return id();
    case kProgram:
      return address_;
    case kStatus:
      return (is_running() ? kBusy : 0) | (pending_ ? kPending : 0) |
             (waits_for_host() ? kWaits : 0) | (has_fault() && !is_running() ? kFault : 0);
    case kCycles:
      return cycles_;
    case kHostCall:
      return called_command();
    default:
      return std::nullopt;
  }
}

bool CoreRegisters::is_writable(std::uint64_t offset) {
  return offset == kProgram || offset == kControl;
}

void CoreRegisters::write(std::uint64_t offset, std::uint64_t value) {
  if (offset == kProgram) {
    address_ = value;
    return;
  }
  if ((value & kAcknowledge) != 0) {
    pending_ = false;
    pending_changed_.notify();
  }
  if ((value & kHostDone) != 0) end_host_call();
  if ((value & kStart) != 0 && !is_running()) start_program(address_);
}

void CoreRegisters::complete(std::uint64_t cycles) {
  cycles_ = cycles;
  raise();
}

void CoreRegisters::raise() {
  pending_ = true;
  pending_changed_.notify();
}

}  // namespace systole::tlm_model
