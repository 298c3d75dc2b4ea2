#pragma once

#include <tlm_utils/simple_target_socket.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <systemc>
#include <tlm>
#include <utility>
#include <vector>

#include "hw/engines.h"
#include "hw/machine/machine.h"
#include "hw/program/program.h"
#include "tlm/attention/attention_unit.h"
#include "tlm/bus/core_registers.h"
#include "tlm/common/signals.h"
#include "tlm/core/array_unit.h"
#include "tlm/core/command_processor.h"
#include "tlm/core/load_unit.h"
#include "tlm/core/local_memory.h"
#include "tlm/core/loop_unit.h"
#include "tlm/core/store_unit.h"
#include "tlm/dma/tlb.h"

namespace systole::tlm_model {

/// The engines a core computes with. Swap one for its RTL twin here.
struct Engines {
  std::unique_ptr<hw::ArrayEngine> array;
  std::unique_ptr<hw::PostopEngine> postop;
  std::unique_ptr<hw::AccumulatorEngine> accumulator;  ///< or nullptr: sums are in LocalMemory
  std::unique_ptr<hw::AttentionEngine> attention;
  std::unique_ptr<hw::HeadMixEngine> mix;
};
[[nodiscard]] Engines make_models(const hw::Machine& machine);

/// One accelerator core on the system bus: command processor, units, local memories, and the
/// registers by which a host drives it: CoreRegisters, whose program is that of
/// hw/program/program_image.h.
class Core : public sc_core::sc_module, public CoreRegisters, public Watched {
 public:
  static constexpr std::uint64_t kIdValue = 0x53595354;  ///< "SYST"

  tlm_utils::simple_target_socket<Core> registers{"registers"};
  sc_core::sc_out<bool> interrupt{"interrupt"};

  CommandProcessor processor;
  LocalMemory memory;

 private:
  Engines engines_;

 public:
  std::unique_ptr<AttentionUnit> attention;  ///< nullptr: the machine has no such engines
  LoadUnit load;
  ArrayUnit array;
  StoreUnit store;
  std::unique_ptr<LoopUnit> loops;  ///< nullptr: the machine has no unroller

  /// Translation for load and store unit, and who walks the page table for each.
  struct Mmu {
    Tlb tlb;
    const std::unique_ptr<DmaPort> load_walker, store_walker;
    Mmu(const hw::Machine& machine, const DmaFactory& make_dma);
  };
  std::unique_ptr<Mmu> mmu;  ///< nullptr: addresses are physical

  /// `functional` off: the same cycles without values. `make_dma` makes every initiator of the
  /// core: another factory puts other DMA ports in place of Systole's.
  Core(const sc_core::sc_module_name& name, const hw::Machine& machine, Engines engines,
       bool functional, const DmaFactory& make_dma = make_request_dma);

  /// Whether values can be computed by the actions of a queue: its engines have no time of their
  /// own, and nobody observes the memories.
  [[nodiscard]] bool can_share_values() const noexcept;
  /// Values are computed by the actions of this queue, which outlives the run.
  void share_values(ValueQueue& values) noexcept;

  /// Called at the start of a run, before anything of it is simulated, and at its completion.
  using OnRun = std::function<void(bool running)>;
  void set_on_run(OnRun on_run) { on_run_ = std::move(on_run); }
  /// From `cycle` on, time counts in the accounts of all blocks or it does not.
  void set_counting(bool on, std::uint64_t cycle);

  /// Every initiator of the core, to be bound to the bus.
  [[nodiscard]] std::vector<DmaPort*> ports();
  [[nodiscard]] std::vector<hw::BlockReport> reports(std::uint64_t cycles) const;

  /// Banks of the memories, and the translation.
  void watch(SignalRecorder& recorder) override;

 private:
  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  void finish();
  void raise_interrupt() { raise(); }
  void drive_interrupt() { interrupt.write(pending()); }

  // CoreRegisters
  [[nodiscard]] std::uint64_t id() const override { return kIdValue; }
  [[nodiscard]] bool is_running() const override { return processor.running(); }
  [[nodiscard]] bool has_fault() const override { return !processor.fault().empty(); }
  void start_program(std::uint64_t address) override;
  [[nodiscard]] std::uint64_t called_command() const override {
    return processor.host_call_address();
  }
  [[nodiscard]] bool waits_for_host() const override { return processor.host_call() != 0; }
  void end_host_call() override { processor.complete_host_call(); }

  OnRun on_run_;
  std::uint64_t started_ = 0;
};

}  // namespace systole::tlm_model
