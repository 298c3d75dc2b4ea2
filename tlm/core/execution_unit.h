#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <systemc>
#include <vector>

#include "base/accounting.h"
#include "hw/energy.h"
#include "hw/program/program.h"
#include "tlm/common/signals.h"
#include "tlm/core/command_processor.h"

namespace systole::tlm_model {

/// One in-order unit of a core: takes its commands, waits for their hazards, executes them, and
/// accounts for every cycle. What executing means is the derived class's.
class ExecutionUnit : public sc_core::sc_module, public Watched {
 public:
  /// Traced while the unit has no command: the largest value of each type.
  static constexpr std::uint32_t kNoIndex = 0xffffffff;
  static constexpr std::uint8_t kNoHalf = 0xff;

  /// From `cycle` on, time counts in the account or it does not.
  void set_counting(bool on, std::uint64_t cycle) { account_.set_counting(on, cycle); }
  [[nodiscard]] hw::BlockReport report(std::uint64_t end) const;
  void trace(sc_core::sc_trace_file* file) const override;
  /// The state is that of the account, stall by stall.
  void watch(SignalRecorder& recorder) override;
  [[nodiscard]] std::uint64_t settled_ps() const override;

 protected:
  // Causes that every unit has.
  static constexpr std::size_t kNoCommand = 0;
  static constexpr std::size_t kWaitLoad = kNoCommand + 1;
  static constexpr std::size_t kWaitCompute = kNoCommand + 2;
  static constexpr std::size_t kWaitStore = kNoCommand + 3;
  static constexpr std::size_t kOwnCauses = kNoCommand + 4;

  ExecutionUnit(const sc_core::sc_module_name& name, hw::Unit unit, CommandProcessor& processor,
                std::vector<hw::BlockAccount::Cause> own_causes);

  /// Blocks until the unit can start a command whose hazards are clear, and accounts for that.
  virtual void await_turn(const Entry& /*entry*/) {}
  /// Blocks while the command occupies the unit; accounts for these cycles in account(); calls
  /// processor().release() when the operands are read. Returns the cycle of completion, or nothing
  /// if the derived class says processor().complete_at() later.
  virtual std::optional<std::uint64_t> execute(Entry& entry) = 0;
  virtual std::vector<hw::Counter> counters() const = 0;
  /// Bytes that the unit's ports have moved so far.
  [[nodiscard]] virtual std::uint64_t moved_bytes() const { return 0; }

  [[nodiscard]] CommandProcessor& processor() { return processor_; }
  [[nodiscard]] const CommandProcessor& processor() const { return processor_; }
  /// The command that starts next, or `after` it, if it has been dispatched; else null.
  [[nodiscard]] Entry* upcoming(std::size_t after = 0) const {
    if (waiting_ == nullptr) return processor_.waiting(unit_, after);
    return after == 0 ? waiting_ : processor_.waiting(unit_, after - 1);
  }
  [[nodiscard]] hw::BlockAccount& account() { return account_; }
  /// What the current command does; execute() adds to it whatever it counts. Bytes on the bus are
  /// added after it.
  [[nodiscard]] hw::EnergyEvents& events() noexcept { return events_; }
  /// The current command works on this half of the accumulator, 0 or 1.
  void show_accumulator_half(std::uint8_t half) noexcept { accumulator_half_ = half; }
  void account_busy(std::uint64_t cycles) { account_.busy_until(account_.now() + cycles); }
  void account_stall(std::uint64_t cycles, std::size_t cause) {
    account_.stall_until(account_.now() + cycles, cause);
  }
  /// Null: nobody watches.
  [[nodiscard]] SignalRecorder* recorder() noexcept {
    return recorder_ != nullptr && recorder_->records() ? recorder_ : nullptr;
  }
  [[nodiscard]] std::uint64_t ps(std::uint64_t cycle) const {
    return processor_.clock().edge_ps(cycle);
  }
  [[nodiscard]] std::uint64_t cycle() const { return processor_.cycle(); }
  void wait_cycles(std::uint64_t cycles);

 private:
  void run();

  const hw::Unit unit_;
  CommandProcessor& processor_;
  hw::BlockAccount account_;
  hw::EnergyEvents events_;
  std::uint32_t op_ = kNoIndex;              ///< traced: operator of the current command
  std::uint32_t command_ = kNoIndex;         ///< traced: its position in the program
  std::uint8_t accumulator_half_ = kNoHalf;  ///< traced, but for the load unit
  Entry* waiting_ = nullptr;                 ///< that the unit has taken and that has not started
  SignalRecorder* recorder_ = nullptr;
  std::unique_ptr<AccountSignal> state_;
};

}  // namespace systole::tlm_model
