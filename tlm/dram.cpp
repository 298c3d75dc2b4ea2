#include "tlm/dram.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "tlm/time.h"

namespace systole::tlm_model {

Dram::Dram(const sc_core::sc_module_name& name, const hw::Machine::Dram& params, bool functional)
    : sc_module(name),
      timing_(params),
      memory_(functional ? timing_.capacity() : 0),
      functional_(functional),
      server_(
          "server", kRequestQueue,
          [this](tlm::tlm_generic_payload& payload) {
            sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
            b_transport(payload, delay);
            return delay;
          },
          [this](tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                 sc_core::sc_time& delay) {
            return socket->nb_transport_bw(payload, phase, delay);
          }) {
  require_ps_resolution();
  socket.register_nb_transport_fw(this, &Dram::nb_transport_fw);
  socket.register_b_transport(this, &Dram::b_transport);
  socket.register_transport_dbg(this, &Dram::transport_dbg);
  socket.register_get_direct_mem_ptr(this, &Dram::get_direct_mem_ptr);
}

void Dram::finish(const sc_core::sc_time& total) { timing_.finish(to_ps(total)); }

void Dram::b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  if (RequestBatch* const batch = batch_of(payload, delay)) {
    const tlm::tlm_command command = payload.get_command();
    for (RequestBatch::Request& request : batch->requests) {
      request.status = serve(command, request);
    }
    batch->served = true;
    return;
  }
  const std::uint64_t now = to_ps(sc_core::sc_time_stamp());
  std::uint64_t time = now + to_ps(delay);
  payload.set_response_status(serve(payload, time));
  delay = from_ps(time - now);
}

tlm::tlm_response_status Dram::reject(tlm::tlm_response_status status) {
  ++rejected_;
  return status;
}

// A bad access is the initiator's error: answer with a status, never abort.
tlm::tlm_response_status Dram::serve(tlm::tlm_generic_payload& payload, std::uint64_t& time) {
  if (payload.get_command() == tlm::TLM_IGNORE_COMMAND) return tlm::TLM_OK_RESPONSE;
  if (payload.get_byte_enable_ptr() != nullptr) return reject(tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
  if (payload.get_streaming_width() < payload.get_data_length()) {
    return reject(tlm::TLM_BURST_ERROR_RESPONSE);
  }
  RequestBatch::Request request{payload.get_address(), payload.get_data_ptr(), time,
                                payload.get_data_length(), tlm::TLM_INCOMPLETE_RESPONSE};
  const tlm::tlm_response_status status = serve(payload.get_command(), request);
  if (functional_ && status == tlm::TLM_OK_RESPONSE) payload.set_dmi_allowed(true);
  time = request.time;
  return status;
}

tlm::tlm_response_status Dram::serve(tlm::tlm_command command, RequestBatch::Request& request) {
  const std::uint64_t address = request.address;
  const std::uint64_t bytes = request.bytes;
  if (bytes == 0) return reject(tlm::TLM_BURST_ERROR_RESPONSE);
  if (address >= capacity() || bytes > capacity() - address) {
    return reject(tlm::TLM_ADDRESS_ERROR_RESPONSE);
  }
  if (functional_) {
    if (request.data == nullptr) return reject(tlm::TLM_GENERIC_ERROR_RESPONSE);
    copy(command, address, request.data, bytes);
  }
  const bool write = command == tlm::TLM_WRITE_COMMAND;
  const hw::DramAccess access = timing_.access(address, bytes, write, request.time);
  row_hits_ += access.hits;
  row_misses_ += access.misses;
  row_conflicts_ += access.conflicts;
  request.time = access.end;
  return tlm::TLM_OK_RESPONSE;
}

void Dram::copy(tlm::tlm_command command, std::uint64_t address, unsigned char* data,
                std::uint64_t bytes) {
  unsigned char* const here = memory_.data() + address;
  if (command == tlm::TLM_WRITE_COMMAND) {
    std::memcpy(here, data, bytes);
  } else if (command == tlm::TLM_READ_COMMAND) {
    std::memcpy(data, here, bytes);
  }
}

void Dram::trace(sc_core::sc_trace_file* file) const {
  const std::string prefix = std::string(name()) + ".";
  sc_core::sc_trace(file, row_hits_, prefix + "row_hits");
  sc_core::sc_trace(file, row_misses_, prefix + "row_misses");
  sc_core::sc_trace(file, row_conflicts_, prefix + "row_conflicts");
}

unsigned Dram::transport_dbg(tlm::tlm_generic_payload& payload) {
  if (!functional_ || payload.get_data_ptr() == nullptr || payload.get_address() >= capacity()) {
    return 0;
  }
  const std::uint64_t bytes =
      std::min<std::uint64_t>(payload.get_data_length(), capacity() - payload.get_address());
  copy(payload.get_command(), payload.get_address(), payload.get_data_ptr(), bytes);
  return static_cast<unsigned>(bytes);
}

bool Dram::get_direct_mem_ptr(tlm::tlm_generic_payload&, tlm::tlm_dmi& dmi) {
  dmi.set_start_address(0);
  dmi.set_end_address(capacity() - 1);
  if (!functional_) return false;
  const hw::DramTimes& times = timing_.times();
  dmi.allow_read_write();
  dmi.set_dmi_ptr(memory_.data());
  dmi.set_read_latency(dmi.get_read_latency() + from_ps(times.controller + times.cl + times.burst));
  dmi.set_write_latency(dmi.get_write_latency() +
                        from_ps(times.controller + times.cwl + times.burst));
  return true;
}

}  // namespace systole::tlm_model
