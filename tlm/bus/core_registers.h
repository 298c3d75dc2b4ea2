#pragma once

#include <cstdint>
#include <systemc>
#include <tlm>

#include "hw/program/program.h"

namespace systole::tlm_model {

/// The registers by which a host drives a core, whatever its kind.
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
///
/// Registers are 8 bytes wide and only accessible whole; anything else is answered with an error
/// status.
class CoreRegisters {
 public:
  static constexpr std::uint64_t kId = 0x00, kProgram = 0x08, kControl = 0x10, kStatus = 0x18,
                                 kCycles = 0x20, kHostCall = 0x28,
                                 kRegisterBytes = hw::kRegisterBytes;
  static constexpr std::uint64_t kStart = 1, kAcknowledge = 2, kHostDone = 4;
  static constexpr std::uint64_t kBusy = 1, kPending = 2, kWaits = 4, kFault = 8;

  virtual ~CoreRegisters() = default;

 protected:
  /// Serves a register access, in no time.
  tlm::tlm_response_status access(tlm::tlm_generic_payload& payload);
  /// A run has completed that took so many cycles.
  void complete(std::uint64_t cycles);
  /// The interrupt goes high until it is acknowledged.
  void raise();
  [[nodiscard]] bool pending() const noexcept { return pending_; }
  [[nodiscard]] const sc_core::sc_event& pending_changed() const { return pending_changed_; }

 private:
  [[nodiscard]] virtual std::uint64_t id() const = 0;
  [[nodiscard]] virtual bool is_running() const = 0;
  [[nodiscard]] virtual bool has_fault() const = 0;
  virtual void start_program(std::uint64_t address) = 0;
  /// Of the command that waits for the host; 0: none does.
  [[nodiscard]] virtual std::uint64_t called_command() const { return 0; }
  [[nodiscard]] virtual bool waits_for_host() const { return false; }
  virtual void end_host_call() {}

  tlm::tlm_response_status write(std::uint64_t address, std::uint64_t value);

  std::uint64_t address_ = 0;
  std::uint64_t cycles_ = 0;
  bool pending_ = false;
  sc_core::sc_event pending_changed_;
};

}  // namespace systole::tlm_model
