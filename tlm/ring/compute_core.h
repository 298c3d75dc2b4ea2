#pragma once

#include <tlm_utils/simple_target_socket.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <systemc>
#include <tlm>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/ring/pass.h"
#include "hw/ring/ring_map.h"
#include "tlm/bus/core_registers.h"
#include "tlm/common/signals.h"
#include "tlm/common/time.h"
#include "tlm/memory/dram.h"
#include "tlm/ring/core_timing.h"
#include "tlm/ring/core_values.h"
#include "tlm/ring/ring_port.h"
#include "tlm/ring/ring_router.h"

namespace systole::tlm_model::dfx {

/// One instruction as it ran, in cycles of its core.
struct InstructionTrace {
  std::uint32_t core;
  const Instruction* instruction;
  CoreTiming::Times times;
};

/// A core on its card: instructions of a pass in order, exchanges with the others through its
/// router; its HBM, and the card's DDR, which are targets of the bus like its registers and its
/// register file.
///
/// What it runs is a program in its DDR (hw/ring/pass_image.h), which it reads without time when it
/// is started. It runs ahead of simulated time between exchanges: what others change in its
/// memories while it runs may come too late, and its requests are served in the order of its
/// program. Where others use its DDR too, it waits at each access to that until its time has come.
class ComputeCore : public sc_core::sc_module, public CoreRegisters, public Watched {
 public:
  static constexpr std::uint64_t kIdValue = 0x44465850;  ///< "DFXP"

  tlm_utils::simple_target_socket<ComputeCore> registers{"registers"};
  tlm_utils::simple_target_socket<ComputeCore> vectors{"vectors"};  ///< the register file
  sc_core::sc_out<bool> interrupt{"interrupt"};
  RingRouter router;
  Dram hbm;
  std::unique_ptr<Dram> ddr;    ///< nullptr: it is a part of a memory that others use too
  RingPort hbm_port, ddr_port;  ///< to be bound to whatever has the memories at `places`

  /// `functional` off: the same cycles without values. `shares_ddr`: it is not the card's.
  ComputeCore(const sc_core::sc_module_name& name, const hw::Machine& machine, std::uint32_t core,
              const hw::dfx::CoreAddresses& places, std::uint32_t register_elements,
              bool functional, bool shares_ddr, HalfEngines engines);

  /// Why it could not run what it was started with; empty: it could.
  [[nodiscard]] const std::string& fault() const { return fault_; }
  /// Whether no pass runs, in simulated time.
  [[nodiscard]] bool done() const { return !running_; }

  /// Registers, in a run with values.
  [[nodiscard]] hw::Half* vector_data() { return values_->registers(); }
  /// Cycles by which each phase moved the end of the work; their sum is all time that it took.
  [[nodiscard]] const std::array<std::uint64_t, hw::dfx::kPhases>& phases() const {
    return phases_;
  }
  [[nodiscard]] const CoreTiming& timing() const { return timing_; }
  /// Of its units and memories, until now. Closes the accounts of the memories.
  [[nodiscard]] std::vector<hw::BlockReport> reports();

  std::function<void(const InstructionTrace&)> observer;  ///< may be empty

  /// Of each unit its time and its instruction, and what the core works on.
  void watch(SignalRecorder& recorder) override;
  [[nodiscard]] std::uint64_t settled_ps() const override;

 private:
  void run();
  /// Takes the program; false, with the reason in fault(): there is none.
  bool fetch();
  void sync(const Instruction& instruction);
  void account(hw::dfx::Phase phase, std::uint64_t end);
  void tell(const Instruction& instruction, const CoreTiming::Times& times);

  // CoreRegisters
  [[nodiscard]] std::uint64_t id() const override { return kIdValue; }
  [[nodiscard]] bool is_running() const override { return running_; }
  [[nodiscard]] bool has_fault() const override { return !fault_.empty(); }
  void start_program(std::uint64_t address) override;
  void drive_interrupt() { interrupt.write(pending()); }
  void access_registers(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  void access_vectors(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  unsigned move_vectors(tlm::tlm_generic_payload& payload);

  const hw::Machine machine_;
  const std::uint32_t core_;
  const Clock clock_;
  CoreTiming timing_;
  std::unique_ptr<CoreValues> values_;
  const std::uint32_t register_elements_;
  hw::dfx::Pass pass_;
  std::uint64_t program_ = 0;  ///< its address
  bool running_ = false;
  std::string fault_;
  std::uint32_t exchanges_ = 0;  ///< so far
  std::uint64_t end_ = 0;        ///< of all instructions so far
  std::array<std::uint64_t, hw::dfx::kPhases> phases_{};
  sc_core::sc_event start_;
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
