#include "tlm/ring/pcie.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "tlm/common/time.h"

namespace systole::tlm_model::dfx {
namespace {

/// What travels with its header.
constexpr unsigned kHeaderBytes = 8;

std::uint64_t rounded_ps(double ns) { return static_cast<std::uint64_t>(std::llround(ns * 1e3)); }

}  // namespace

Pcie::Pcie(const sc_core::sc_module_name& name, const hw::dfx::Pcie& params,
           std::shared_ptr<PcieTurns> turns)
    : sc_module(name),
      params_(params),
      account_("ps", {}),
      turns_(turns != nullptr ? std::move(turns) : std::make_shared<PcieTurns>()) {
  require_ps_resolution();
  host.register_b_transport(this, &Pcie::b_transport);
  host.register_transport_dbg(this, &Pcie::transport_dbg);
}

void Pcie::b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  card->b_transport(payload, delay);
  const std::uint64_t now = to_ps(sc_core::sc_time_stamp());
  const std::uint64_t answered = now + to_ps(delay);
  const unsigned bytes = payload.get_data_length();
  std::uint64_t end = answered + rounded_ps(params_.latency_ns);
  if (bytes > kHeaderBytes) {
    PcieTurns& turns = *turns_;
    if (turns.since_ps + rounded_ps(turns.taken_ns) <= answered) turns = {answered, 0.0};
    account_.idle_until(turns.since_ps + rounded_ps(turns.taken_ns));
    turns.taken_ns += static_cast<double>(bytes) / params_.gbyte_per_s;
    account_.busy_until(turns.since_ps + rounded_ps(turns.taken_ns));
    end = turns.since_ps + rounded_ps(turns.taken_ns + params_.latency_ns);
  }
  ++requests_;
  bytes_ += bytes;
  delay = from_ps(end - now);
}

void Pcie::watch(SignalRecorder& recorder) {
  state_ =
      std::make_unique<AccountSignal>(recorder, std::string(name()) + ".state", account_, nullptr);
  account_.watch(*state_);
}

hw::BlockReport Pcie::report(std::uint64_t ps) const {
  return account_.report(basename(), std::max(ps, account_.now()),
                         {{"requests", "requests", "of the host", requests_},
                          {"bytes", "bytes", "moved, both ways together", bytes_}});
}

}  // namespace systole::tlm_model::dfx
