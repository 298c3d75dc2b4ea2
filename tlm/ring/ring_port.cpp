#include "tlm/ring/ring_port.h"

#include <algorithm>
#include <string>

#include "tlm/common/time.h"

namespace systole::tlm_model::dfx {

RingPort::RingPort(const sc_core::sc_module_name& name, std::uint64_t base)
    : sc_module(name), base_(base) {
  batch_.direct = true;
}

void RingPort::make_requests(std::uint64_t address, std::uint64_t bytes, std::uint64_t ps) {
  batch_.requests.clear();
  for (std::uint64_t at = 0; at < bytes;) {
    const std::uint64_t room = kBeatBytes - (address + at) % kBeatBytes;
    const std::uint64_t length = shared_ ? std::min(room, bytes - at) : bytes;
    batch_.requests.push_back({base_ + address + at, nullptr, ps,
                               static_cast<std::uint32_t>(length), tlm::TLM_INCOMPLETE_RESPONSE});
    at += length;
  }
}

std::uint64_t RingPort::access(std::uint64_t address, std::uint64_t bytes, bool write,
                               std::uint64_t ps) {
  if (shared_) {
    const std::uint64_t now = to_ps(sc_core::sc_time_stamp());
    if (ps > now) wait(from_ps(ps - now));
    ps = std::max(ps, now);
  }
  make_requests(address, bytes, ps);
  payload_.set_command(write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
  transport_batch(batch_, payload_,
                  [this](auto& payload, auto& delay) { socket->b_transport(payload, delay); });
  std::uint64_t end = ps;
  for (const RequestBatch::Request& request : batch_.requests) {
    end = std::max(end, request.time);
    if (request.is_ok()) continue;
    SC_REPORT_ERROR("/systole/ring", (std::string(name()) + ": no answer at address " +
                                      std::to_string(request.address))
                                         .c_str());
  }
  return end;
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
