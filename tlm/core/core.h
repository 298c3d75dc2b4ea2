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
/// registers by which a host drives it.
///
/// | offset | name    | access | content                                                        |
/// |--------|---------|--------|----------------------------------------------------------------|
/// | 0x00   | ID      | R      | 0x5359_5354 ("SYST")                                           |
/// | 0x08   | PROGRAM | RW     | byte address of a program (hw/program/program_image.h)         |
/// | 0x10   | CONTROL | W      | 1: start (ignored while busy), 2: acknowledge the interrupt,   |
/// |        |         |        | 4: the command at HOST_CALL is done                            |
/// | 0x18   | STATUS  | R      | bit 0 busy, bit 1 interrupt pending, bit 2 waits for the host, |
/// |        |         |        | bit 3 fault: at PROGRAM was no program that this core can run  |
/// | 0x20   | CYCLES  | R      | core cycles of the last completed run                          |
/// | 0x28   | HOST_CALL | R    | byte address of the command that the host has to execute, or 0 |
///
/// Registers are 8 bytes wide and only accessible whole; anything else is answered with an error
/// status.
class Core : public sc_core::sc_module, public Watched {
 public:
  static constexpr std::uint64_t kId = 0x00, kProgram = 0x08, kControl = 0x10, kStatus = 0x18,
                                 kCycles = 0x20, kHostCall = 0x28,
                                 kRegisterBytes = hw::kRegisterBytes;
  static constexpr std::uint64_t kIdValue = 0x53595354;
  static constexpr std::uint64_t kStart = 1, kAcknowledge = 2, kHostDone = 4;

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
  tlm::tlm_response_status access(tlm::tlm_generic_payload& payload);
  void finish();
  void raise_interrupt();
  void drive_interrupt();

  OnRun on_run_;
  std::uint64_t address_ = 0;
  std::uint64_t started_ = 0;
  std::uint64_t cycles_ = 0;
  bool pending_ = false;
  sc_core::sc_event pending_changed_;
};

}  // namespace systole::tlm_model
