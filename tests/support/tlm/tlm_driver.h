#pragma once

#include <tlm_utils/simple_initiator_socket.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <systemc>
#include <tlm>
#include <utility>
#include <vector>

namespace systole::test {

/// Simulates until `body`, run in a separate thread, returns.
inline void run_body(std::function<void()> body) {
  sc_core::sc_set_stop_mode(sc_core::SC_STOP_IMMEDIATE);
  sc_core::sc_spawn(
      [body = std::move(body)] {
        body();
        sc_core::sc_stop();
      },
      sc_core::sc_gen_unique_name("body"));
  sc_core::sc_start();
}

/// Minimal loosely timed initiator: one blocking call per request, the payload on the stack.
class TlmDriver : public sc_core::sc_module {
 public:
  struct Response {
    tlm::tlm_response_status status = tlm::TLM_INCOMPLETE_RESPONSE;
    sc_core::sc_time delay;
  };

  tlm_utils::simple_initiator_socket<TlmDriver> socket{"socket"};
  /// DMI ranges that a target has withdrawn.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> invalidated;

  explicit TlmDriver(const sc_core::sc_module_name& name) : sc_module(name) {
    socket.register_invalidate_direct_mem_ptr(this, &TlmDriver::invalidate);
  }

  void run(std::function<void()> body) { run_body(std::move(body)); }

  Response write(std::uint64_t address, const void* data, std::size_t bytes) {
    return transport(tlm::TLM_WRITE_COMMAND, address, const_cast<void*>(data), bytes);
  }
  Response read(std::uint64_t address, void* data, std::size_t bytes) {
    return transport(tlm::TLM_READ_COMMAND, address, data, bytes);
  }

  /// Sends a payload that the test has prepared. A delay to start from may be given.
  Response send(tlm::tlm_generic_payload& payload,
                const sc_core::sc_time& start = sc_core::SC_ZERO_TIME) {
    Response response;
    response.delay = start;
    payload.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
    socket->b_transport(payload, response.delay);
    response.status = payload.get_response_status();
    return response;
  }

  /// Debug access; returns the number of bytes moved.
  unsigned debug(tlm::tlm_command command, std::uint64_t address, void* data, std::size_t bytes) {
    tlm::tlm_generic_payload payload;
    fill(payload, command, address, data, bytes);
    return socket->transport_dbg(payload);
  }

  static void fill(tlm::tlm_generic_payload& payload, tlm::tlm_command command,
                   std::uint64_t address, void* data, std::size_t bytes) {
    payload.set_command(command);
    payload.set_address(address);
    payload.set_data_ptr(static_cast<unsigned char*>(data));
    payload.set_data_length(static_cast<unsigned>(bytes));
    payload.set_streaming_width(static_cast<unsigned>(bytes));
    payload.set_byte_enable_ptr(nullptr);
    payload.set_dmi_allowed(false);
    payload.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
  }

 private:
  Response transport(tlm::tlm_command command, std::uint64_t address, void* data,
                     std::size_t bytes) {
    tlm::tlm_generic_payload payload;
    fill(payload, command, address, data, bytes);
    return send(payload);
  }

  void invalidate(sc_dt::uint64 start, sc_dt::uint64 end) { invalidated.emplace_back(start, end); }
};

}  // namespace systole::test
