#include "tlm/ring/ring_link.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "tlm/common/time.h"

namespace systole::tlm_model::dfx {

RingLink::RingLink(const sc_core::sc_module_name& name, const hw::dfx::Ring& ring)
    : sc_module(name),
      ps_per_byte_(8000.0 / (ring.gbit_per_s * ring.coding)),
      hop_ps_(static_cast<std::uint64_t>(std::llround(ring.hop_ns * 1000.0))) {
  SC_HAS_PROCESS(RingLink);
  SC_METHOD(deliver);
  sensitive << under_way_.get_event();
  dont_initialize();
}

void RingLink::put(const Packet& packet) {
  const std::uint64_t now = to_ps(sc_core::sc_time_stamp());
  const std::uint64_t bytes = packet.elements * sizeof(hw::Half);
  const auto length = static_cast<std::uint64_t>(
      std::llround(std::ceil(static_cast<double>(bytes) * ps_per_byte_)));
  free_ps_ = std::max(now, free_ps_) + length;
  bytes_ += bytes;
  if (recorder_ != nullptr) {
    recorder_->hold(state_, free_ps_ - length, free_ps_, wave_state("busy"));
    recorder_->add(sent_, free_ps_, static_cast<std::int64_t>(bytes));
  }
  if (spare_.empty()) spare_.push_back(packets_.emplace_back(std::make_unique<Packet>()).get());
  Packet& copy = *spare_.back();
  spare_.pop_back();
  copy = packet;
  under_way_.notify(copy, from_ps(free_ps_ + hop_ps_ - now));
}

void RingLink::watch(SignalRecorder& recorder) {
  const std::string prefix = std::string(name()) + ".";
  recorder_ = &recorder;
  state_ = recorder.add_state(prefix + "state");
  sent_ = recorder.add_signal(prefix + "bytes", 40, SignalRecorder::Kind::kNumber);
}

void RingLink::deliver() {
  while (Packet* packet = under_way_.get_next_transaction()) {
    out->put(*packet);
    spare_.push_back(packet);
  }
}

}  // namespace systole::tlm_model::dfx
