#include "tlm/ring/ring_port.h"

#include <string>

namespace systole::tlm_model::dfx {

RingPort::RingPort(const sc_core::sc_module_name& name, std::uint64_t base)
    : sc_module(name), base_(base) {
  batch_.direct = true;
  batch_.requests.resize(1);
}

std::uint64_t RingPort::access(std::uint64_t address, std::uint64_t bytes, bool write,
                               std::uint64_t ps) {
  RequestBatch::Request& request = batch_.requests.front();
  request.address = base_ + address;
  request.time = ps;
  request.bytes = static_cast<std::uint32_t>(bytes);
  payload_.set_command(write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
  transport_batch(batch_, payload_,
                  [this](auto& payload, auto& delay) { socket->b_transport(payload, delay); });
  if (!request.is_ok()) {
    SC_REPORT_ERROR("/systole/ring", (std::string(name()) + ": no answer at address " +
                                      std::to_string(base_ + address))
                                         .c_str());
  }
  return request.time;
}

hw::Half* RingPort::contents() {
  tlm::tlm_dmi dmi;
  payload_.set_address(base_);
  payload_.set_command(tlm::TLM_WRITE_COMMAND);
  if (!socket->get_direct_mem_ptr(payload_, dmi) || dmi.get_start_address() != base_) {
    SC_REPORT_ERROR("/systole/ring", (std::string(name()) + ": no direct access").c_str());
    return nullptr;
  }
  return reinterpret_cast<hw::Half*>(dmi.get_dmi_ptr());
}

std::vector<std::uint8_t> RingPort::peek(std::uint64_t address, std::uint32_t bytes) {
  std::vector<std::uint8_t> data(bytes);
  payload_.set_command(tlm::TLM_READ_COMMAND);
  describe_request(payload_, base_ + address, data.data(), bytes);
  data.resize(socket->transport_dbg(payload_));
  return data;
}

}  // namespace systole::tlm_model::dfx
