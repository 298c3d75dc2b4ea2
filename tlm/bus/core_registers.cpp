#include "tlm/bus/core_registers.h"

#include <cstring>

namespace systole::tlm_model {

tlm::tlm_response_status CoreRegisters::access(tlm::tlm_generic_payload& payload) {
  if (payload.get_byte_enable_ptr() != nullptr) return tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE;
  if (payload.get_data_length() != 8 || payload.get_streaming_width() < 8) {
    return tlm::TLM_BURST_ERROR_RESPONSE;
  }
  std::uint64_t value = 0;
  if (payload.is_write()) {
    std::memcpy(&value, payload.get_data_ptr(), 8);
    return write(payload.get_address(), value);
  }
  if (!payload.is_read()) return tlm::TLM_COMMAND_ERROR_RESPONSE;
  switch (payload.get_address()) {
    case kId:
      value = id();
      break;
    case kProgram:
      value = address_;
      break;
    case kStatus:
      value = (is_running() ? kBusy : 0) | (pending_ ? kPending : 0) |
              (waits_for_host() ? kWaits : 0) | (has_fault() ? kFault : 0);
      break;
    case kCycles:
      value = cycles_;
      break;
    case kHostCall:
      value = called_command();
      break;
    default:
      return tlm::TLM_ADDRESS_ERROR_RESPONSE;
  }
  std::memcpy(payload.get_data_ptr(), &value, 8);
  return tlm::TLM_OK_RESPONSE;
}

tlm::tlm_response_status CoreRegisters::write(std::uint64_t address, std::uint64_t value) {
  switch (address) {
    case kProgram:
      address_ = value;
      return tlm::TLM_OK_RESPONSE;
    case kControl:
      if ((value & kAcknowledge) != 0) {
        pending_ = false;
        pending_changed_.notify();
      }
      if ((value & kHostDone) != 0) end_host_call();
      if ((value & kStart) != 0 && !is_running()) start_program(address_);
      return tlm::TLM_OK_RESPONSE;
    default:
      return tlm::TLM_ADDRESS_ERROR_RESPONSE;
  }
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
