#include "tlm/memory/dram_signals.h"

#include <algorithm>

namespace systole::tlm_model {

DramSignals::DramSignals(SignalRecorder& recorder, const std::string& prefix,
                         const hw::DramTiming& timing)
    : recorder_(recorder) {
  using Kind = SignalRecorder::Kind;
  for (std::size_t c = 0; c < timing.channels(); ++c) {
    const std::string path = prefix + "channel" + std::to_string(c) + ".";
    Channel& channel = channels_.emplace_back();
    channel.state =
        std::make_unique<AccountSignal>(recorder, path + "state", timing.account(c), nullptr);
    channel.direction = recorder.add_state(path + "direction");
    channel.bank = recorder.add_signal(path + "bank", 8, Kind::kLatest);
    for (std::size_t b = 0; b < timing.banks(); ++b) {
      const std::string of = path + "bank" + std::to_string(b) + ".";
      channel.banks.push_back(
          {recorder.add_state(of + "state"), recorder.add_signal(of + "row", 24, Kind::kNumber)});
      recorder.set(channel.banks.back().row, 0, SignalRecorder::kNone);
    }
  }
}

void DramSignals::burst(const hw::DramBurst& burst) {
  if (!recorder_.records()) return;
  const Channel& channel = channels_[burst.at.channel];
  const Bank& bank = channel.banks[burst.at.bank];
  if (burst.closes) {
    recorder_.hold(bank.state, burst.precharge, burst.activate, wave_state("precharge"));
    recorder_.set(bank.row, burst.precharge, SignalRecorder::kNone);
  }
  if (burst.opens) {
    recorder_.hold(bank.state, burst.activate, burst.row_ready, wave_state("activate"));
    recorder_.set(bank.row, burst.activate, burst.at.row);
  }
  const std::uint8_t direction = burst.write ? wave_state("write") : wave_state("read");
  recorder_.hold(bank.state, burst.begin, burst.end, direction);
  recorder_.hold(channel.direction, burst.begin, burst.end, direction);
  recorder_.hold(channel.bank, burst.begin, burst.end, burst.at.bank);
}

// A controller finds a refresh with the next request: until then the rows look open.
void DramSignals::refresh(std::uint32_t channel, std::uint64_t begin, std::uint64_t end) {
  begin = std::max(begin, to_ps(sc_core::sc_time_stamp()));
  for (const Bank& bank : channels_[channel].banks) {
    recorder_.set(bank.row, begin, SignalRecorder::kNone);
    recorder_.hold(bank.state, begin, end, wave_state("refresh"));
  }
}

}  // namespace systole::tlm_model
