#include "tlm/common/signals.h"

namespace systole::tlm_model {

AccountSignal::AccountSignal(SignalRecorder& recorder, const std::string& name,
                             const hw::BlockAccount& account, const Clock* clock)
    : recorder_(recorder),
      signal_(recorder.add_state(name)),
      clock_(clock),
      states_{wave_state("idle"), wave_state("busy")} {
  for (const hw::TimeAccount::Stall& stall : account.time().stalled) {
    // A unit without a command is one that is idle, as its other signals show it.
    const bool idle = stall.cause == "no_command";
    states_.push_back(idle ? wave_state("idle") : wave_state(stall.cause));
  }
}

void AccountSignal::spend(std::uint64_t from, std::uint64_t to, std::uint8_t state) {
  if (states_[state] == wave_state("idle")) return;
  if (clock_ != nullptr) {
    from = clock_->edge_ps(from);
    to = clock_->edge_ps(to);
  }
  recorder_.hold(signal_, from, to, states_[state]);
}

}  // namespace systole::tlm_model
