#pragma once

#include <cstdint>

/// The registers by which a host drives a core: docs/blocks/core_registers.md.
namespace systole::hw {

/// Offsets, and what their bits mean. Registers are 8 bytes wide.
///
/// | offset | name    | access | content                                                        |
/// |--------|---------|--------|----------------------------------------------------------------|
/// | 0x00   | ID      | R      | the kind of core, four letters                                 |
/// | 0x08   | PROGRAM | RW     | byte address of a program                                      |
/// | 0x10   | CONTROL | W      | 1: start (ignored while busy), 2: acknowledge the interrupt,   |
/// |        |         |        | 4: the command at HOST_CALL is done                            |
/// | 0x18   | STATUS  | R      | bit 0 busy, bit 1 interrupt pending, bit 2 waits for the host, |
/// |        |         |        | bit 3 fault: at PROGRAM was no program that this core can run  |
/// | 0x20   | CYCLES  | R      | core cycles of the last completed run                          |
/// | 0x28   | HOST_CALL | R    | byte address of the command that the host has to execute, or 0 |
struct CoreRegisterMap {
  static constexpr std::uint64_t kId = 0x00, kProgram = 0x08, kControl = 0x10, kStatus = 0x18,
                                 kCycles = 0x20, kHostCall = 0x28, kRegisterBytes = 0x30;
  static constexpr std::uint64_t kStart = 1, kAcknowledge = 2, kHostDone = 4;      ///< CONTROL
  static constexpr std::uint64_t kBusy = 1, kPending = 2, kWaits = 4, kFault = 8;  ///< STATUS
  /// Cycles of the core's clock from the arrival of an access to its answer. A write takes effect
  /// with the answer, a read has what is there a cycle earlier
  /// (rtl/core/systole_core_registers.sv).
  static constexpr std::uint64_t kAnswerCycles = 2;
};

}  // namespace systole::hw
