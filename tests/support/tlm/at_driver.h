#pragma once

#include <gtest/gtest.h>
#include <tlm_utils/peq_with_get.h>
#include <tlm_utils/simple_initiator_socket.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <systemc>
#include <tlm>
#include <vector>

#include "support/tlm/tlm_driver.h"

namespace systole::test {

/// Pool of payloads for the non-blocking transport.
class PayloadPool : public tlm::tlm_mm_interface {
 public:
  tlm::tlm_generic_payload& take() {
    if (free_.empty()) {
      all_.push_back(std::make_unique<tlm::tlm_generic_payload>(this));
      free_.push_back(all_.back().get());
    }
    tlm::tlm_generic_payload& payload = *free_.back();
    free_.pop_back();
    payload.acquire();
    return payload;
  }
  void free(tlm::tlm_generic_payload* payload) override {
    payload->reset();
    free_.push_back(payload);
  }
  [[nodiscard]] bool all_returned() const { return free_.size() == all_.size(); }

 private:
  std::vector<std::unique_ptr<tlm::tlm_generic_payload>> all_;
  std::vector<tlm::tlm_generic_payload*> free_;
};

/// Minimal approximately timed initiator with any number of requests in flight. Every violation of
/// the base protocol by the other side is a test failure.
class AtDriver : public sc_core::sc_module {
 public:
  /// How a response is ended.
  enum class End { kCompleted, kUpdated, kByPhase };
  struct Record {
    tlm::tlm_response_status status = tlm::TLM_INCOMPLETE_RESPONSE;
    sc_core::sc_time begin_req, end_req, begin_resp;
    bool accepted = false;
    bool done = false;
  };

  tlm_utils::simple_initiator_socket<AtDriver> socket{"socket"};
  End end = End::kCompleted;
  sc_core::sc_time end_delay;   ///< from BEGIN_RESP to the end of the response
  std::vector<Record> records;  ///< in the order of post()

  explicit AtDriver(const sc_core::sc_module_name& name) : sc_module(name) {
    socket.register_nb_transport_bw(this, &AtDriver::nb_transport_bw);
    SC_HAS_PROCESS(AtDriver);
    SC_METHOD(send_end_resp);
    sensitive << ending_.get_event();
    dont_initialize();
  }

  /// Waits until the previous request has been accepted, then begins this one. Returns the index of
  /// its record. To be called from one thread.
  std::size_t post(tlm::tlm_command command, std::uint64_t address, void* data, std::size_t bytes) {
    while (requesting_ != nullptr) wait(request_ended_);
    tlm::tlm_generic_payload& payload = pool_.take();
    TlmDriver::fill(payload, command, address, data, bytes);
    const std::size_t index = records.size();
    records.emplace_back().begin_req = sc_core::sc_time_stamp();
    flights_.push_back({&payload, index, address});
    requesting_ = &payload;
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    const tlm::tlm_sync_enum answer = socket->nb_transport_fw(payload, phase, delay);
    EXPECT_EQ(answer, tlm::TLM_ACCEPTED) << "the targets under test answer by phases";
    return index;
  }

  /// Waits until every response has ended.
  void wait_all() {
    while (!flights_.empty()) wait(response_ended_);
  }
  /// Waits until fewer than `limit` requests are in flight.
  void wait_below(std::size_t limit) {
    while (flights_.size() >= limit) wait(response_ended_);
  }
  [[nodiscard]] bool all_returned() const { return pool_.all_returned(); }

 private:
  struct Flight {
    tlm::tlm_generic_payload* payload;
    std::size_t index;
    std::uint64_t address;
  };

  std::size_t flight_of(const tlm::tlm_generic_payload& payload) const {
    std::size_t i = 0;
    while (i < flights_.size() && flights_[i].payload != &payload) ++i;
    return i;
  }

  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay) {
    EXPECT_EQ(delay, sc_core::SC_ZERO_TIME) << "phases are sent at their time";
    const std::size_t i = flight_of(payload);
    if (i == flights_.size()) {
      ADD_FAILURE() << phase << " for a request that is not in flight";
      return tlm::TLM_ACCEPTED;
    }
    Record& record = records[flights_[i].index];
    if (phase == tlm::END_REQ) {
      EXPECT_EQ(requesting_, &payload) << "END_REQ for a request that is not pending";
      end_request(record);
      return tlm::TLM_ACCEPTED;
    }
    EXPECT_EQ(phase, tlm::BEGIN_RESP);
    EXPECT_TRUE(responding_ == nullptr && sc_core::sc_time_stamp() >= response_end_)
        << "BEGIN_RESP before the end of the previous response";
    if (requesting_ == &payload) end_request(record);  // implied
    EXPECT_EQ(payload.get_address(), flights_[i].address) << "the address was not restored";
    record.begin_resp = sc_core::sc_time_stamp();
    record.status = payload.get_response_status();
    ending_.notify(payload, end_delay);
    if (end == End::kByPhase) {
      responding_ = &payload;
      return tlm::TLM_ACCEPTED;
    }
    response_end_ = record.begin_resp + end_delay;
    delay = end_delay;
    phase = tlm::END_RESP;
    return end == End::kUpdated ? tlm::TLM_UPDATED : tlm::TLM_COMPLETED;
  }

  void end_request(Record& record) {
    EXPECT_FALSE(record.accepted);
    record.accepted = true;
    record.end_req = sc_core::sc_time_stamp();
    requesting_ = nullptr;
    request_ended_.notify(sc_core::SC_ZERO_TIME);
  }

  void send_end_resp() {
    while (tlm::tlm_generic_payload* const payload = ending_.get_next_transaction()) {
      if (end == End::kByPhase) {
        tlm::tlm_phase phase = tlm::END_RESP;
        sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
        socket->nb_transport_fw(*payload, phase, delay);
        responding_ = nullptr;
      }
      const std::size_t i = flight_of(*payload);
      records[flights_[i].index].done = true;
      flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(i));
      payload->release();
      response_ended_.notify(sc_core::SC_ZERO_TIME);
    }
  }

  PayloadPool pool_;
  std::vector<Flight> flights_;
  tlm::tlm_generic_payload* requesting_ = nullptr;
  tlm::tlm_generic_payload* responding_ = nullptr;  ///< until END_RESP is sent
  sc_core::sc_time response_end_;                   ///< of the last one that ended by its answer
  sc_core::sc_event request_ended_{"request_ended"};
  sc_core::sc_event response_ended_{"response_ended"};
  tlm_utils::peq_with_get<tlm::tlm_generic_payload> ending_{"ending"};
};

}  // namespace systole::test
