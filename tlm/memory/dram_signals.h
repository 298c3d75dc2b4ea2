#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hw/memory/dram_timing.h"
#include "tlm/common/signals.h"

namespace systole::tlm_model {

/// Shows what channels and banks of a DRAM do, and which rows are open.
class DramSignals final : public hw::DramWatch {
 public:
  /// Names begin with `prefix`: "system.dram." To be given to timing.watch().
  DramSignals(SignalRecorder& recorder, const std::string& prefix, const hw::DramTiming& timing);

  void burst(const hw::DramBurst& burst) override;
  void refresh(std::uint32_t channel, std::uint64_t begin, std::uint64_t end) override;
  hw::AccountWatch& channel(std::size_t index) override { return *channels_[index].state; }

 private:
  struct Bank {
    SignalRecorder::Signal state, row;
  };
  struct Channel {
    std::unique_ptr<AccountSignal> state;
    SignalRecorder::Signal direction, bank;
    std::vector<Bank> banks;
  };

  SignalRecorder& recorder_;
  std::vector<Channel> channels_;
};

}  // namespace systole::tlm_model
