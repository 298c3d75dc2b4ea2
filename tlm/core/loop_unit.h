#pragma once

#include <tlm_utils/simple_initiator_socket.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <systemc>
#include <tlm>
#include <vector>

#include "base/accounting.h"
#include "hw/engines.h"
#include "hw/loop/loop_core.h"
#include "hw/machine/machine.h"
#include "tlm/common/signals.h"
#include "tlm/core/command_processor.h"

namespace systole::tlm_model {

/// Loops of products from memory to memory: hw::loop::LoopCore on the system bus, and their values.
///
/// The core runs up to kQuantum cycles ahead of simulated time, and never less than kLag: a write
/// reaches the bus when its last beat leaves the core, and begins there with the first one.
class LoopUnit : public sc_core::sc_module, public Watched, private hw::loop::Memory {
 public:
  tlm_utils::simple_initiator_socket<LoopUnit> socket{"socket"};

  LoopUnit(const sc_core::sc_module_name& name, const hw::Machine& machine,
           CommandProcessor& processor, hw::ArrayEngine& array, hw::PostopEngine& postop,
           bool functional);

  /// Work that has been done, for energy.
  struct Work {
    std::uint64_t macs = 0;
    std::uint64_t elements = 0;  ///< times stages
    std::uint64_t bus_bytes = 0;
    [[nodiscard]] bool any() const { return macs != 0; }
  };
  [[nodiscard]] const Work& work() const noexcept { return work_; }
  [[nodiscard]] std::uint64_t scratchpad_bytes() const;
  [[nodiscard]] std::uint64_t accumulator_bytes() const;

  /// From `cycle` on, time counts in the account or it does not.
  void set_counting(bool on, std::uint64_t cycle) { account_.set_counting(on, cycle); }
  [[nodiscard]] hw::BlockReport report(std::uint64_t end) const;

  void watch(SignalRecorder& recorder) override;
  [[nodiscard]] std::uint64_t settled_ps() const override;

 private:
  static constexpr std::uint64_t kQuantum = 32;
  static constexpr std::uint64_t kLag = 8;
  /// Loops whose commands the host has begun to send, at most.
  static constexpr std::size_t kMostOpen = 6;

  struct Open {
    Entry* entry;
    std::uint64_t number;  ///< of the loop, counted from 1
    std::uint64_t started;
    std::uint64_t writes_left;  ///< requests without an acknowledgement
    std::vector<std::uint8_t> result;
    std::uint64_t macs = 0, elements = 0;  ///< see Work
  };

  void run();
  /// Takes the next command; blocks until there is one.
  void take();
  void compute(const hw::cmd::Loop& loop, std::vector<std::uint8_t>& result);
  void debug_read(std::uint64_t address, std::uint8_t* data, std::size_t bytes);
  void step();
  void account();
  void complete();
  /// Bytes that have been moved.
  [[nodiscard]] hw::EnergyEvents moved() const;
  [[nodiscard]] std::uint64_t writes_of(const hw::cmd::Loop& loop) const;
  std::uint64_t send(const Request& request) override;
  [[nodiscard]] std::uint32_t beat_cycles() const override { return beat_cycles_; }

  const hw::Machine machine_;
  CommandProcessor& processor_;
  hw::ArrayEngine& array_;
  hw::PostopEngine& postop_;
  const bool functional_;
  const std::uint32_t beat_cycles_;
  hw::loop::LoopCore core_;
  std::deque<Open> open_;
  std::uint64_t taken_ = 0;         ///< loops
  std::uint64_t acknowledged_ = 0;  ///< writes that are accounted for
  std::vector<std::int32_t> sums_;
  std::vector<std::uint8_t> beats_;  ///< what a read brings
  tlm::tlm_generic_payload payload_;
  std::uint64_t rows_ = 0, conflicts_ = 0;  ///< as they were in the last cycle
  Work work_;
  hw::BlockAccount account_;
  std::unique_ptr<AccountSignal> state_;
  StallMark completed_;            ///< when the last loop was
  hw::EnergyEvents of_completed_;  ///< moved by all loops until then
};

}  // namespace systole::tlm_model
