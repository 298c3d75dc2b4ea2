#pragma once

#include <gtest/gtest.h>
#include <tlm_utils/passthrough_target_socket.h>
#include <tlm_utils/peq_with_get.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <systemc>
#include <tlm>
#include <vector>

namespace systole::test {

/// Target of fixed latency with any number of requests in flight, which can answer in every way
/// that the base protocol allows. Every violation by the other side is a test failure.
class AtTarget : public sc_core::sc_module {
 public:
  enum class Style {
    kFourPhase,     ///< END_REQ after accept_delay, BEGIN_RESP after latency
    kUpdatedEnd,    ///< END_REQ as the answer to BEGIN_REQ
    kNoEnd,         ///< BEGIN_RESP implies END_REQ: one request at a time
    kUpdatedBegin,  ///< BEGIN_RESP as the answer to BEGIN_REQ, delayed by latency
    kCompleted,     ///< TLM_COMPLETED as the answer to BEGIN_REQ, delayed by latency
  };

  tlm_utils::passthrough_target_socket<AtTarget> socket{"socket"};
  Style style = Style::kFourPhase;
  sc_core::sc_time accept_delay;
  sc_core::sc_time latency{10, sc_core::SC_NS};
  std::vector<unsigned char> memory;
  std::vector<std::uint64_t> addresses;    ///< of all requests
  std::vector<sc_core::sc_time> arrivals;  ///< of all requests

  explicit AtTarget(const sc_core::sc_module_name& name, std::size_t bytes = 4096)
      : sc_module(name), memory(bytes) {
    socket.register_b_transport(this, &AtTarget::b_transport);
    socket.register_nb_transport_fw(this, &AtTarget::nb_transport_fw);
    socket.register_get_direct_mem_ptr(this, &AtTarget::get_direct_mem_ptr);
    SC_HAS_PROCESS(AtTarget);
    SC_METHOD(send_end_req);
    sensitive << accepting_.get_event();
    dont_initialize();
    SC_METHOD(on_finished);
    sensitive << finished_.get_event();
    dont_initialize();
  }

 private:
  void serve(tlm::tlm_generic_payload& payload, const sc_core::sc_time& arrival) {
    addresses.push_back(payload.get_address());
    arrivals.push_back(arrival);
    if (payload.get_address() + payload.get_data_length() > memory.size()) {
      payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
      return;
    }
    unsigned char* const here = memory.data() + payload.get_address();
    if (payload.get_data_ptr() != nullptr) {
      if (payload.is_read()) std::memcpy(payload.get_data_ptr(), here, payload.get_data_length());
      if (payload.is_write()) std::memcpy(here, payload.get_data_ptr(), payload.get_data_length());
    }
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
  }

  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
    serve(payload, sc_core::sc_time_stamp() + delay);
    delay += latency;
  }

  // Offers more than it has been asked for, as a target may.
  bool get_direct_mem_ptr(tlm::tlm_generic_payload&, tlm::tlm_dmi& dmi) {
    dmi.allow_read_write();
    dmi.set_dmi_ptr(memory.data());
    dmi.set_start_address(0);
    dmi.set_end_address(memory.size() - 1);
    dmi.set_read_latency(dmi.get_read_latency() + latency);
    return true;
  }

  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay) {
    EXPECT_EQ(delay, sc_core::SC_ZERO_TIME) << "phases are sent at their time";
    if (phase == tlm::END_RESP) {
      EXPECT_EQ(responding_, &payload) << "END_RESP for a response that is not pending";
      end_response(payload);
      return tlm::TLM_COMPLETED;
    }
    EXPECT_EQ(phase, tlm::BEGIN_REQ);
    EXPECT_EQ(requesting_, nullptr) << "BEGIN_REQ before the END_REQ of the previous request";
    serve(payload, sc_core::sc_time_stamp());
    if (style == Style::kCompleted) {
      delay = latency;
      return tlm::TLM_COMPLETED;
    }
    payload.acquire();
    if (style == Style::kUpdatedBegin) {
      EXPECT_EQ(responding_, nullptr);
      responding_ = &payload;
      delay = latency;
      phase = tlm::BEGIN_RESP;
      return tlm::TLM_UPDATED;
    }
    finished_.notify(payload, latency);
    if (style == Style::kUpdatedEnd) {
      phase = tlm::END_REQ;
      return tlm::TLM_UPDATED;
    }
    requesting_ = &payload;
    if (style == Style::kFourPhase) accepting_.notify(payload, accept_delay);
    return tlm::TLM_ACCEPTED;
  }

  void send_end_req() {
    while (tlm::tlm_generic_payload* const payload = accepting_.get_next_transaction()) {
      if (requesting_ == payload) {
        requesting_ = nullptr;
        send(*payload, tlm::END_REQ);
      }
    }
  }

  void on_finished() {
    while (tlm::tlm_generic_payload* const payload = finished_.get_next_transaction()) {
      responses_.push_back(payload);
    }
    respond();
  }

  void respond() {
    if (responding_ != nullptr || responses_.empty()) return;
    responding_ = responses_.front();
    responses_.pop_front();
    if (requesting_ == responding_) requesting_ = nullptr;
    send(*responding_, tlm::BEGIN_RESP);
  }

  void end_response(tlm::tlm_generic_payload& payload) {
    responding_ = nullptr;
    payload.release();
    respond();
  }

  void send(tlm::tlm_generic_payload& payload, tlm::tlm_phase phase) {
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    EXPECT_EQ(socket->nb_transport_bw(payload, phase, delay), tlm::TLM_ACCEPTED);
  }

  tlm::tlm_generic_payload* requesting_ = nullptr;
  tlm::tlm_generic_payload* responding_ = nullptr;
  std::deque<tlm::tlm_generic_payload*> responses_;
  tlm_utils::peq_with_get<tlm::tlm_generic_payload> accepting_{"accepting"};
  tlm_utils::peq_with_get<tlm::tlm_generic_payload> finished_{"finished"};
};

}  // namespace systole::test
