#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/accounting.h"
#include "hw/machine/machine.h"
#include "hw/ring/pass.h"
#include "tlm/common/signals.h"
#include "tlm/common/time.h"
#include "tlm/ring/memory_port.h"

namespace systole::tlm_model::dfx {

using hw::dfx::Exchange;
using hw::dfx::Instruction;
using hw::dfx::Unit;

/// When the instructions of one core begin and end, in core cycles: units that each take theirs in
/// order, a scoreboard by register, memories. Knows nothing of values and of the other cores; the
/// instructions are given in program order.
///
/// An instruction begins `issue_cycles` after its unit is free and its operands are valid: all of
/// them, or, where instructions are chained by vector, the first; the others then hold it up as it
/// goes.
class CoreTiming {
 public:
  struct Times {
    std::uint64_t begin, end;  ///< first operand in, last result there
    std::uint64_t released;    ///< the unit could take its next instruction
  };
  /// Why a unit with an instruction to do does nothing.
  enum Cause : std::size_t { kOperands, kIssue, kMemory, kAdder };

  /// The memories must outlive it.
  CoreTiming(const hw::Machine& machine, std::uint32_t register_elements, PortMemory& hbm,
             PortMemory& ddr);

  /// From then on the core may work.
  void start(std::uint64_t cycle) { floor_ = std::max(floor_, cycle); }

  /// Of any instruction but a kSync.
  Times issue(const Instruction& instruction);

  /// When `own`, the part of an exchange that this core has, may leave. Elements of registers.
  [[nodiscard]] std::uint64_t sync_begin(std::uint32_t first, std::uint32_t elements);
  /// The elements have arrived from `cycle` on.
  void arrived(std::uint32_t first, std::uint32_t elements, std::uint64_t cycle);
  /// Nothing begins before `cycle`, the end of an exchange that the core waits for.
  void wait(std::uint64_t cycle);

  [[nodiscard]] const hw::BlockAccount& account(Unit unit) const {
    return accounts_[index_of(unit)];
  }
  /// Shows the time of the units; names begin with `prefix`.
  void watch(SignalRecorder& recorder, const std::string& prefix);

  [[nodiscard]] std::uint64_t hbm_bytes() const { return weights_.bytes(); }
  [[nodiscard]] std::uint64_t instructions(Unit unit) const { return counts_[index_of(unit)]; }

 private:
  static constexpr std::size_t index_of(Unit unit) { return static_cast<std::size_t>(unit); }
  /// Registers of `elements` from `first` on.
  struct Span {
    std::uint32_t begin, end;
  };
  [[nodiscard]] Span span(std::uint32_t first, std::uint32_t elements) const {
    return {first / depth_, (first + elements + depth_ - 1) / depth_};
  }
  [[nodiscard]] std::uint64_t latest(const std::vector<std::uint64_t>& times, Span span) const;
  void raise(std::vector<std::uint64_t>& times, Span span, std::uint64_t cycle);

  /// When an instruction of the unit may take its first operand, if those registers, and results
  /// that have to make room, allow it.
  std::uint64_t begin(Unit unit, std::uint64_t operands, std::uint64_t results);
  [[nodiscard]] bool by_vector() const {
    return machine_.dfx.chaining == hw::dfx::Chaining::kVector;
  }

  Times matrix(const Instruction& instruction);
  Times vector(const Instruction& instruction);
  Times scalar(const Instruction& instruction);
  /// A vector takes the multipliers twice, then the adders.
  Times rotate(const Instruction& instruction);
  Times write_cache(const Instruction& instruction);
  [[nodiscard]] std::uint32_t latency(hw::dfx::Opcode op) const;

  const hw::Machine machine_;
  const Clock clock_;
  const std::uint32_t depth_;
  const std::uint32_t tree_cycles_;
  MemoryPort hbm_, ddr_;
  OperandStream weights_;      ///< of the matrix unit, from HBM
  OperandStream ddr_weights_;  ///< the same from DDR
  OperandStream vectors_;      ///< of the vector unit, and biases, from DDR

  std::uint64_t floor_ = 0;  ///< nothing begins before
  std::array<std::uint64_t, hw::dfx::kUnits> free_{};
  std::vector<std::uint64_t> ready_, read_;  ///< of a register: written, read for the last time
  std::vector<std::uint64_t> scalar_ready_;
  std::vector<hw::BlockAccount> accounts_;  ///< by unit
  std::array<std::uint64_t, hw::dfx::kUnits> counts_{};
  std::vector<std::unique_ptr<AccountSignal>> states_;  ///< shown, by unit
};

}  // namespace systole::tlm_model::dfx
