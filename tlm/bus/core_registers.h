#pragma once

#include <cstdint>
#include <optional>
#include <systemc>
#include <tlm>

#include "hw/host/core_registers.h"
#include "tlm/common/time.h"

namespace systole::tlm_model {

/// The registers by which a host drives a core, whatever its kind.
///
/// They are only accessible whole; anything else is answered with an error status. Every access is
/// answered kAnswerCycles after it arrives.
class CoreRegisters : public hw::CoreRegisterMap {
 public:
  virtual ~CoreRegisters() = default;

 protected:
  /// Serves a register access that arrives in `delay`. Waits until it is answered.
  void serve(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay, const Clock& clock);
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

  /// Of the register at an offset; nothing: none can be read there.
  [[nodiscard]] std::optional<std::uint64_t> read(std::uint64_t offset) const;
  /// Whether there is a register that can be written.
  [[nodiscard]] static bool is_writable(std::uint64_t offset);
  void write(std::uint64_t offset, std::uint64_t value);

  std::uint64_t address_ = 0;
  std::uint64_t cycles_ = 0;
  bool pending_ = false;
  sc_core::sc_event pending_changed_;
};

}  // namespace systole::tlm_model
