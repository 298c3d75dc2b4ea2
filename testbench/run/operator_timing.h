#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/mapped_cost.h"
#include "tlm/common/observer.h"

namespace systole::testbench {

/// Why an operator of a simulation took longer than its slowest unit by contract. Seen from that
/// unit: the array, the post-op unit, or for memory the unit that moves most of the operator's
/// bytes.
enum class Cause : std::uint8_t {
  kCommands,     ///< its commands took longer than by contract: banks, DRAM, contention
  kEarlier,      ///< negative: work that was done while earlier operators were not over
  kOthers,       ///< the unit worked for other operators
  kNoCommand,    ///< no command had been dispatched to the unit
  kWaitLoad,     ///< the next command waited for a load,
  kWaitCompute,  ///< ... for a matmul,
  kWaitStore,    ///< ... for a store or move
  kEnd,          ///< its last command was over, its results were not in memory
};
inline constexpr std::size_t kCauses = 8;
/// "commands", "earlier", "others", "no_command", "wait_load", "wait_compute", "wait_store", "end".
[[nodiscard]] std::string_view name_of(Cause cause);

/// When the operators of a run end, from the traces of their commands in any order.
class OperatorEnds {
 public:
  void add(const tlm_model::CommandTrace& trace);
  /// The cycle at which the first command was dispatched.
  [[nodiscard]] std::uint64_t begin() const { return begin_; }
  /// Of so many operators, each not before the one before it.
  [[nodiscard]] std::vector<std::uint64_t> ends(std::size_t operators) const;

 private:
  std::uint64_t begin_ = UINT64_MAX;
  std::vector<std::uint64_t> ends_;  ///< by operator
};

struct OperatorTiming {
  /// From the completion of the earlier operators to its own, so that the timings of all operators
  /// follow one another.
  std::uint64_t cycles = 0;
  /// By Cause, cycles; their sum is `cycles` less those of the slowest unit.
  std::array<double, kCauses> causes{};
  hw::EnergyEvents events;  ///< of its commands; as in a CommandTrace
};

/// One timing for each estimate. `traces`: by position in the program, without kEnd's.
[[nodiscard]] std::vector<OperatorTiming> time_operators(
    const std::vector<tlm_model::CommandTrace>& traces,
    const std::vector<analysis::OperatorEstimate>& estimates);

}  // namespace systole::testbench
