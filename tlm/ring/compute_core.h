#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <systemc>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/ring/pass.h"
#include "tlm/common/signals.h"
#include "tlm/common/time.h"
#include "tlm/ring/core_timing.h"
#include "tlm/ring/core_values.h"
#include "tlm/ring/ring_router.h"

namespace systole::tlm_model::dfx {

/// One instruction as it ran, in cycles of its core.
struct InstructionTrace {
  std::uint32_t core;
  const Instruction* instruction;
  CoreTiming::Times times;
};

/// A core: instructions of a pass in order, exchanges with the others through its router. Runs
/// ahead of simulated time between exchanges, since no other process sees what it does there.
class ComputeCore : public sc_core::sc_module, public Watched {
 public:
  RingRouter router;

  /// `memory`: nullptr for a run without values; must outlive the core.
  ComputeCore(const sc_core::sc_module_name& name, const hw::Machine& machine, std::uint32_t core,
              std::uint32_t register_elements, CoreMemory* memory, HalfEngines engines);

  /// Runs the pass, from now on. It must outlive that. To be called while none runs.
  void start(const hw::dfx::Pass& pass);
  /// Whether the pass has ended, in simulated time.
  [[nodiscard]] bool done() const { return pass_ == nullptr; }
  [[nodiscard]] const sc_core::sc_event& done_event() const { return done_; }

  /// Registers, in a run with values.
  [[nodiscard]] hw::Half* registers() { return values_->registers(); }
  /// Cycles by which each phase moved the end of the work; their sum is all time that it took.
  [[nodiscard]] const std::array<std::uint64_t, hw::dfx::kPhases>& phases() const {
    return phases_;
  }
  [[nodiscard]] const CoreTiming& timing() const { return timing_; }
  [[nodiscard]] std::vector<hw::BlockReport> reports(std::uint64_t cycles) const;

  std::function<void(const InstructionTrace&)> observer;  ///< may be empty

  /// Of each unit its time and its instruction, and what the core works on.
  void watch(SignalRecorder& recorder) override;
  [[nodiscard]] std::uint64_t settled_ps() const override;

 private:
  void run();
  void sync(const Instruction& instruction);
  void account(hw::dfx::Phase phase, std::uint64_t end);
  void tell(const Instruction& instruction, const CoreTiming::Times& times);

  const hw::Machine machine_;
  const std::uint32_t core_;
  const Clock clock_;
  CoreTiming timing_;
  std::unique_ptr<CoreValues> values_;
  const hw::dfx::Pass* pass_ = nullptr;
  std::uint32_t exchanges_ = 0;  ///< so far
  std::uint64_t end_ = 0;        ///< of all instructions so far
  std::array<std::uint64_t, hw::dfx::kPhases> phases_{};
  sc_core::sc_event start_, done_;
  /// Only while a waveform is recorded.
  struct Signals {
    SignalRecorder* recorder;
    SignalRecorder::Signal phase;
    std::array<SignalRecorder::Signal, hw::dfx::kUnits> instructions;
  };
  std::optional<Signals> signals_;
  std::uint64_t pass_began_ps_ = 0;
};

}  // namespace systole::tlm_model::dfx
