#include "tlm/bus/bus_router.h"

#include <algorithm>
#include <utility>

namespace systole::tlm_model {
namespace {

void violation(const char* text) { SC_REPORT_ERROR("/systole/system_bus", text); }

}  // namespace

BusRouter::BusRouter(const sc_core::sc_module_name& name, BusCore& core, const AddressMap& map,
                     Transport forward, Transport backward)
    : sc_module(name),
      core_(core),
      map_(map),
      forward_(std::move(forward)),
      backward_(std::move(backward)),
      phases_(this, &BusRouter::on_phase) {
  SC_HAS_PROCESS(BusRouter);
  SC_METHOD(arbitrate);
  sensitive << arbiter_;
  dont_initialize();
  SC_METHOD(on_step);
  sensitive << steps_.get_event();
  dont_initialize();
}

void BusRouter::resize(std::size_t initiators, std::size_t targets) {
  initiators_.resize(initiators);
  targets_.resize(targets);
  last_granted_ = initiators == 0 ? 0 : initiators - 1;
}

tlm::tlm_sync_enum BusRouter::from_initiator(std::size_t id, tlm::tlm_generic_payload& payload,
                                             tlm::tlm_phase& phase, sc_core::sc_time& delay) {
  if (phase == tlm::BEGIN_REQ) {
    payload.acquire();
    const Request request{&payload, id, nullptr, payload.get_address(), 0, 0, Step::kAccept, false};
    if (!requests_.emplace(&payload, request).second)
      violation("BEGIN_REQ for a request on its way");
    phases_.notify(payload, phase, delay);
  } else if (phase == tlm::END_RESP) {
    phases_.notify(payload, phase, delay);
  } else if (phase == tlm::END_REQ || phase == tlm::BEGIN_RESP) {
    violation("an initiator sent a phase that belongs to targets");
  }
  return tlm::TLM_ACCEPTED;
}

tlm::tlm_sync_enum BusRouter::from_target(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                          sc_core::sc_time& delay) {
  if (phase == tlm::END_REQ || phase == tlm::BEGIN_RESP) {
    phases_.notify(payload, phase, delay);
  } else if (phase == tlm::BEGIN_REQ || phase == tlm::END_RESP) {
    violation("a target sent a phase that belongs to initiators");
  }
  return tlm::TLM_ACCEPTED;
}

BusRouter::Request& BusRouter::find(tlm::tlm_generic_payload& payload) {
  const auto found = requests_.find(&payload);
  if (found == requests_.end()) violation("a phase of a request that is not on its way");
  return found->second;
}

void BusRouter::on_phase(tlm::tlm_generic_payload& payload, const tlm::tlm_phase& phase) {
  Request& request = find(payload);
  if (phase == tlm::BEGIN_REQ) {
    begin_request(request);
  } else if (phase == tlm::END_REQ) {
    end_request(request);
  } else if (phase == tlm::BEGIN_RESP) {
    begin_response(request);
  } else {
    end_response(request);
  }
}

void BusRouter::schedule(Request& request, Step step, std::uint64_t cycle) {
  request.step = step;
  steps_.notify(request, core_.clock().edge(cycle) - sc_core::sc_time_stamp());
}

void BusRouter::on_step() {
  while (Request* const request = steps_.get_next_transaction()) {
    switch (request->step) {
      case Step::kAccept:
        accept(*request);
        break;
      case Step::kForward:
        targets_[request->range->target].queue.push_back(request);
        send(request->range->target);
        break;
      case Step::kTake:
        take(*request);
        break;
      case Step::kRespond:
        initiators_[request->initiator].responses.push_back(request);
        respond(request->initiator);
        break;
    }
  }
}

void BusRouter::begin_request(Request& request) {
  Initiator& initiator = initiators_[request.initiator];
  if (initiator.requesting) violation("BEGIN_REQ before the END_REQ of the previous request");
  request.arrival = core_.clock().cycle_from(sc_core::sc_time_stamp());
  request.range = map_.find(request.address, request.payload->get_data_length());
  initiator.requesting = true;
  initiator.waiting = &request;
  wake_arbiter();
}

void BusRouter::wake_arbiter() {
  const sc_core::sc_time& now = sc_core::sc_time_stamp();
  const std::uint64_t cycle = std::max(next_grant_, core_.clock().cycle_from(now));
  arbiter_.notify(core_.clock().edge(cycle) - now);
}

bool BusRouter::blocked(const Request& request) const {
  return request.range != nullptr &&
         targets_[request.range->target].unaccepted >= core_.params().request_latency + 2;
}

BusRouter::Request* BusRouter::pick() {
  const bool rotate = core_.params().arbitration == hw::Arbitration::kRoundRobin;
  const std::size_t first = rotate ? last_granted_ + 1 : 0;
  for (std::size_t i = 0; i < initiators_.size(); ++i) {
    const std::size_t id = (first + i) % initiators_.size();
    Request* const request = initiators_[id].waiting;
    if (request != nullptr && !blocked(*request)) return request;
  }
  return nullptr;
}

void BusRouter::arbitrate() {
  const std::uint64_t now = core_.clock().cycle_from(sc_core::sc_time_stamp());
  if (now < next_grant_) return wake_arbiter();
  const auto anyone_waits = [this] {
    return std::any_of(initiators_.begin(), initiators_.end(),
                       [](const Initiator& initiator) { return initiator.waiting != nullptr; });
  };
  if (Request* const request = pick()) {
    core_.request().nothing_waiting(now);
    grant(*request, now);
    if (anyone_waits()) wake_arbiter();
  } else if (anyone_waits()) {  // end_request() of a target goes on from here
    core_.request().waiting_for(now, BusCore::kTargetBackpressure);
  }
}

void BusRouter::grant(Request& request, std::uint64_t cycle) {
  initiators_[request.initiator].waiting = nullptr;
  last_granted_ = request.initiator;
  core_.retire(cycle);
  BusCore::Initiator& initiator = core_.initiator(request.initiator);
  const std::uint64_t granted = core_.grant(initiator, request.arrival, cycle);
  next_grant_ = granted + 1;
  if (request.range == nullptr) {
    ++core_.decode_errors;
    ++initiator.errors;
    request.payload->set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
    request.arrives = granted + core_.round_trip();
    schedule(request, Step::kAccept, granted);
    return;
  }
  ++targets_[request.range->target].unaccepted;
  request.arrives = core_.deliver(initiator, granted, request.payload->is_write(),
                                  request.payload->get_data_length());
  schedule(request, Step::kAccept, request.arrives - core_.params().request_latency);
}

void BusRouter::accept(Request& request) {
  schedule(request, request.range == nullptr ? Step::kRespond : Step::kForward, request.arrives);
  initiators_[request.initiator].requesting = false;
  tlm::tlm_phase phase = tlm::END_REQ;
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  backward_(request.initiator, *request.payload, phase, delay);
}

void BusRouter::send(std::size_t id) {
  Target& target = targets_[id];
  if (target.sending != nullptr || target.queue.empty()) return;
  Request& request = *target.queue.front();
  target.queue.pop_front();
  target.sending = &request;
  tlm::tlm_generic_payload& payload = *request.payload;
  payload.set_address(request.address - request.range->base);
  tlm::tlm_phase phase = tlm::BEGIN_REQ;
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  const tlm::tlm_sync_enum answer = forward_(id, payload, phase, delay);
  request.ended_by_target = answer == tlm::TLM_COMPLETED;
  if (answer == tlm::TLM_COMPLETED) {
    phases_.notify(payload, tlm::BEGIN_RESP, delay);
  } else if (answer == tlm::TLM_UPDATED) {
    from_target(payload, phase, delay);
  }
}

void BusRouter::end_request(Request& request) {
  if (request.range == nullptr || targets_[request.range->target].sending != &request) {
    violation("END_REQ for a request that is not pending");
  }
  const std::size_t id = request.range->target;
  targets_[id].sending = nullptr;
  --targets_[id].unaccepted;
  send(id);
  wake_arbiter();
}

void BusRouter::begin_response(Request& request) {
  if (targets_[request.range->target].sending == &request) end_request(request);
  tlm::tlm_generic_payload& payload = *request.payload;
  payload.set_address(request.address);
  BusCore::Initiator& initiator = core_.initiator(request.initiator);
  const bool ok = payload.is_response_ok();
  if (!ok) ++initiator.errors;
  const std::uint64_t now = core_.clock().cycle_from(sc_core::sc_time_stamp());
  core_.retire(now);
  request.arrives =
      core_.respond(initiator, now, ok && payload.is_read(), payload.get_data_length());
  schedule(request, Step::kTake, request.arrives - core_.params().response_latency);
}

void BusRouter::take(Request& request) {
  schedule(request, Step::kRespond, request.arrives);
  if (request.ended_by_target) return;
  tlm::tlm_phase phase = tlm::END_RESP;
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  forward_(request.range->target, *request.payload, phase, delay);
}

void BusRouter::respond(std::size_t id) {
  Initiator& initiator = initiators_[id];
  if (initiator.responding != nullptr || initiator.responses.empty()) return;
  Request& request = *initiator.responses.front();
  initiator.responses.pop_front();
  initiator.responding = &request;
  tlm::tlm_phase phase = tlm::BEGIN_RESP;
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  // Anything but TLM_ACCEPTED ends the response, after the delay.
  if (backward_(id, *request.payload, phase, delay) != tlm::TLM_ACCEPTED) {
    phases_.notify(*request.payload, tlm::END_RESP, delay);
  }
}

void BusRouter::end_response(Request& request) {
  const std::size_t id = request.initiator;
  if (initiators_[id].responding != &request)
    violation("END_RESP for a response that is not pending");
  initiators_[id].responding = nullptr;
  tlm::tlm_generic_payload& payload = *request.payload;
  requests_.erase(&payload);
  payload.release();
  respond(id);
}

}  // namespace systole::tlm_model
