#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <systemc>
#include <tlm>
#include <vector>

#include "tlm/common/time.h"

namespace systole::tlm_model {

/// Requests of as many bytes each, in rows of as many requests each: where they are in memory, and
/// in the initiator's data.
struct RequestRows {
  std::uint64_t address = 0;  ///< of the next one
  unsigned char* data = nullptr;
  std::uint64_t in_row = 0, row_left = 0;  ///< requests of a row, and of the first one
  std::uint64_t bytes = 0, gap = 0;        ///< of a request, and between rows
  std::uint64_t data_bytes = 0;            ///< of a request in the data; 0: there are none
  std::uint64_t data_gap = 0;              ///< between rows of the data

  /// The next request is over. Whether it ended its row.
  bool pass() noexcept {
    address += bytes;
    data += data_bytes;
    if (--row_left != 0) return false;
    row_left = in_row;
    address += gap;
    data += data_gap;
    return true;
  }
  /// The next `count` are over.
  void pass(std::uint64_t count) noexcept {
    address += count * bytes;
    data += count * data_bytes;
    if (count < row_left) {
      row_left -= count;
      return;
    }
    const std::uint64_t beyond = count - row_left;
    const std::uint64_t rows = in_row == 1 ? beyond : beyond / in_row;
    row_left = in_row - (beyond - rows * in_row);
    address += (rows + 1) * gap;
    data += (rows + 1) * data_gap;
  }
  /// Bytes from the begin of the next request to the end of the last of `count`.
  [[nodiscard]] std::uint64_t span(std::uint64_t count) const noexcept {
    RequestRows last = *this;
    last.pass(count - 1);
    return last.address - address + bytes;
  }
};

/// Further requests that an initiator can issue without an answer to the first of them, the one
/// that the payload itself describes. It saves the host most of the cost of a call per request.
///
/// An ignorable extension of the base protocol, for b_transport alone: whoever does not know it
/// serves the payload and leaves `served` false. Whoever serves the batch does to each request, in
/// order, what a separate call would have done: all of them have the command of the payload and
/// neither byte enables nor streaming. It sets `served`; the delay and the rest of the payload then
/// mean nothing. Whoever knows the batch and passes on the payload alone takes the extension off.
class RequestBatch : public tlm::tlm_extension<RequestBatch> {
 public:
  struct Request {
    std::uint64_t address = 0;
    unsigned char* data = nullptr;
    /// ps: on the way there its arrival, on the way back its completion at whoever holds it. In the
    /// past only if what is on the way there has no calendar, and no other initiator uses it.
    std::uint64_t time = 0;
    std::uint32_t bytes = 0;
    tlm::tlm_response_status status = tlm::TLM_INCOMPLETE_RESPONSE;
    [[nodiscard]] bool is_ok() const noexcept { return status > tlm::TLM_INCOMPLETE_RESPONSE; }
  };

  static constexpr std::uint64_t kAll = ~std::uint64_t{0};

  std::vector<Request> requests;  ///< not empty; the first is that of the payload
  /// Further requests like the first, which is the only one in `requests`: each as many bytes
  /// further on, in memory and in the initiator's data, as it has, and `step` ps after the one
  /// before. Their status is the first one's. Whoever can do for all of them what has to be done
  /// in one step, does so if they are `step` apart afterwards, too, and all others see them in
  /// `requests`, because batch_of() puts them there.
  std::uint64_t more = 0;
  std::uint64_t step = 0;
  /// Requests of those that `more` counts that issue whatever comes. Those after them issue `step`
  /// after each other, too, if the first of all is answered between `answer_from` and `answer_by`
  /// ps, because each waits for the end of an earlier one, and else at another time. Whoever cannot
  /// be certain that it is, or cannot do all in one step, leaves the last ones out: `more` says how
  /// many are left. Only targets that have done so before get any.
  std::uint64_t certain = kAll;
  std::uint64_t answer_from = 0, answer_by = 0;
  /// The other way to stand for more: requests where `rows` says, the first of which is the only
  /// one in `requests`, with their times as Request::time has them. Their status is the first
  /// one's.
  RequestRows rows;
  std::vector<std::uint64_t> times;  ///< of each, the first included; empty: not in this form
  bool served = false;
  bool direct = false;  ///< the initiator moves the data by direct memory access: time alone

  [[nodiscard]] std::size_t size() const noexcept {
    return times.empty() ? requests.size() + more : times.size();
  }
  void clear() noexcept {
    requests.clear();
    times.clear();
    more = 0;
    certain = kAll;
  }
  /// Leaves out the requests that may issue at another time.
  void leave_uncertain() noexcept {
    if (more >= certain) more = certain - 1;
    certain = kAll;
  }
  /// Puts the requests that `more` counts into `rows` and `times`, but those that may issue at
  /// another time.
  void spread() {
    leave_uncertain();
    const Request& first = requests.front();
    rows = {first.address,
            first.data,
            more + 1,
            more + 1,
            first.bytes,
            0,
            first.data == nullptr ? 0 : first.bytes,
            0};
    times.clear();
    for (std::uint64_t i = 0; i <= more; ++i) times.push_back(first.time + i * step);
    more = 0;
  }
  /// Puts all requests into `requests`, but those that may issue at another time.
  void expand() {
    if (!times.empty()) return expand_rows();
    leave_uncertain();
    for (; more != 0; --more) {
      Request next = requests.back();
      next.address += next.bytes;
      if (next.data != nullptr) next.data += next.bytes;
      next.time += step;
      requests.push_back(next);
    }
  }

  [[nodiscard]] tlm::tlm_extension_base* clone() const override { return new RequestBatch(*this); }
  void copy_from(const tlm::tlm_extension_base& other) override {
    *this = static_cast<const RequestBatch&>(other);
  }
  /// It belongs to its initiator, not to the payload.
  void free() override {}

 private:
  void expand_rows() {
    const Request first = requests.front();
    requests.clear();
    RequestRows at = rows;
    at.address = first.address;  // as whoever holds it sees it
    for (const std::uint64_t time : times) {
      requests.push_back({at.address, at.data, time, first.bytes, first.status});
      at.pass();
    }
    times.clear();
  }
};

/// The batch of this call, which may stand for more requests than are in it. Null if there is none,
/// or if an intermediate that does not know it has moved the call to another address or time.
[[nodiscard]] inline RequestBatch* short_batch_of(const tlm::tlm_generic_payload& payload,
                                                  const sc_core::sc_time& delay) {
  auto* const batch = payload.get_extension<RequestBatch>();
  if (batch == nullptr) return nullptr;
  const RequestBatch::Request& first = batch->requests.front();
  const std::uint64_t now = to_ps(sc_core::sc_time_stamp());
  const bool same =
      first.address == payload.get_address() && std::max(first.time, now) == now + to_ps(delay);
  return same ? batch : nullptr;
}

/// The same with all its requests in it.
[[nodiscard]] inline RequestBatch* batch_of(const tlm::tlm_generic_payload& payload,
                                            const sc_core::sc_time& delay) {
  RequestBatch* const batch = short_batch_of(payload, delay);
  if (batch != nullptr) batch->expand();
  return batch;
}

/// Makes the payload one call for `bytes` bytes, without byte enables or streaming. The command is
/// the caller's.
inline void describe_request(tlm::tlm_generic_payload& payload, std::uint64_t address,
                             unsigned char* data, std::uint32_t bytes) {
  payload.set_address(address);
  payload.set_data_ptr(data);
  payload.set_data_length(bytes);
  payload.set_streaming_width(bytes);
  payload.set_byte_enable_ptr(nullptr);
  payload.set_dmi_allowed(false);
  payload.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
}

/// Sends the batch by `b_transport(payload, delay)`, as one call if the other side knows batches,
/// else request by request. Uses all of `payload` but its command.
template <typename Transport>
void transport_batch(RequestBatch& batch, tlm::tlm_generic_payload& payload,
                     Transport b_transport) {
  batch.served = false;
  payload.set_extension(&batch);
  for (std::size_t i = 0; i < batch.requests.size(); ++i) {
    RequestBatch::Request& first = batch.requests[i];
    describe_request(payload, first.address, first.data, first.bytes);
    const std::uint64_t now = to_ps(sc_core::sc_time_stamp());
    sc_core::sc_time delay = from_ps(std::max(first.time, now) - now);
    b_transport(payload, delay);
    payload.clear_extension(&batch);
    if (batch.served) return;
    batch.expand();
    RequestBatch::Request& request = batch.requests[i];
    request.time = to_ps(sc_core::sc_time_stamp() + delay);
    request.status = payload.get_response_status();
  }
  batch.served = true;
}

}  // namespace systole::tlm_model
