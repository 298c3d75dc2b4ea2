#pragma once

#include <array>
#include <cstdint>
#include <systemc>
#include <vector>

#include "base/accounting.h"
#include "hw/host/host_cycles.h"
#include "hw/machine/machine.h"
#include "hw/program/program.h"
#include "tlm/common/time.h"
#include "tlm/dma/request_dma.h"

namespace systole::tlm_model {

/// What a host does that computes in float32 (hw/host/host_function.h): block of rows after block,
/// in order, it reads the operands in cache lines, computes, and writes the result. At most
/// host.outstanding lines are in flight; writes are posted. Call it from one SC_THREAD only.
class HostCompute : public sc_core::sc_module {
 public:
  /// The cache's way to the bus.
  RequestDma lines;

  /// Of the host's time; the caller has the rest.
  enum Cause : std::size_t { kMemory, kCore };

  /// Cycles of the host's clock.
  struct Work {
    std::array<std::uint64_t, hw::kHostOps> operation{};
    std::uint64_t conversion = 0;
    std::uint64_t wait = 0;  ///< for the lines of operands, results and commands
    std::uint64_t calls = 0;
    std::uint64_t elements = 0;  ///< of results
  };

  /// `functional` off: the same cycles without values.
  HostCompute(const sc_core::sc_module_name& name, const hw::Machine& machine, bool functional);

  /// Executes the command at `address` of the memory, which calls one of the functions. Sets
  /// `state` to what it is doing: one of three values of Host::State.
  void execute(const std::vector<hw::HostFunction>& functions, std::uint64_t address,
               std::uint8_t& state);

  /// The time since the last account was no work, or waited for `cause`.
  void account_idle() { account_.idle_until(cycle()); }
  void account_stall(Cause cause) { account_.stall_until(cycle(), cause); }

  /// From `now` on, time counts in the account or it does not.
  void set_counting(bool on, const sc_core::sc_time& now) {
    account_.set_counting(on, clock_.cycle_from(now));
  }

  [[nodiscard]] const Work& work() const noexcept { return work_; }
  /// `host`, closed at the present.
  [[nodiscard]] hw::BlockReport report() const;

 private:
  struct Operand {
    std::uint64_t address, pitch, row_bytes;
    std::vector<std::uint8_t> bytes;  ///< of a block
  };

  [[nodiscard]] hw::cmd::HostCall fetch(std::uint64_t address);
  /// The result is the cycle in which the last byte has arrived.
  std::uint64_t read(Operand& operand, std::uint64_t row, std::uint64_t rows);
  std::uint64_t write(Operand& operand, std::uint64_t row, std::uint64_t rows);
  void wait_for_memory(std::uint64_t cycle);
  void compute(const hw::HostFunction& function, std::uint64_t elements);
  [[nodiscard]] std::uint64_t cycle() const;

  const hw::Machine::Host params_;
  const Clock clock_;
  const bool functional_;
  hw::BlockAccount account_;
  Work work_;
};

}  // namespace systole::tlm_model
