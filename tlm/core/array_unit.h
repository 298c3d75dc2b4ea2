#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "hw/array/array_schedule.h"
#include "hw/engines.h"
#include "tlm/attention/attention_unit.h"
#include "tlm/core/execution_unit.h"
#include "tlm/core/local_memory.h"

namespace systole::tlm_model {

/// The systolic array with its operand and result ports: scratchpad -> array -> accumulator.
///
/// Every fold streams one operand row a cycle and shifts the resident operand in beside it; the
/// array stands still in each cycle in which a scratchpad bank cannot serve both and the others
/// (hw/core/operand_stream.h). Results never wait at the accumulator.
/// Sparse attention is the same MACs at another task: the attention engines do it meanwhile.
class ArrayUnit final : public ExecutionUnit {
 public:
  ArrayUnit(const sc_core::sc_module_name& name, const hw::Machine& machine,
            CommandProcessor& processor, LocalMemory& memory, hw::ArrayEngine& engine,
            AttentionUnit* attention, bool functional);

  [[nodiscard]] std::uint64_t macs() const noexcept { return macs_; }
  /// Of them: by int4 weights.
  [[nodiscard]] std::uint64_t int4_macs() const noexcept { return int4_macs_; }
  /// Of these: of int4 activations.
  [[nodiscard]] std::uint64_t int4_int4_macs() const noexcept { return int4_int4_macs_; }

  void watch(SignalRecorder& recorder) override;

 private:
  static constexpr std::size_t kPreload = kOwnCauses;
  static constexpr std::size_t kDrain = kOwnCauses + 1;
  static constexpr std::size_t kBankConflict = kOwnCauses + 2;

  static constexpr std::size_t kAttention = kOwnCauses + 3;

  /// A matmul that has left the array's inputs.
  struct Leaving {
    Entry* entry;
    std::uint64_t started, released;
    std::uint64_t ended;  ///< hw::OperandStream::end()
    std::uint64_t after;  ///< cycles from its last sums leaving the array to its completion
  };

  std::optional<std::uint64_t> execute(Entry& entry) override;
  /// Matmuls whose last sums have left the array complete. They take longer to leave if the next
  /// matmul has to wait for a bank.
  void complete_due();
  /// The cycle in which the array will have taken all of the matmul in it, as far as that is known
  /// now.
  std::uint64_t advance_reads();
  std::uint64_t attend(Entry& entry, const hw::cmd::Attention& attention);
  std::vector<hw::Counter> counters() const override;
  [[nodiscard]] std::uint64_t moved_bytes() const override {
    return attention_ == nullptr ? 0 : attention_->moved_bytes();
  }
  [[nodiscard]] hw::GemmArgs operands(const hw::cmd::Matmul& matmul);
  [[nodiscard]] hw::ArrayCycles compute(const hw::cmd::Matmul& matmul, bool preloaded,
                                        std::uint64_t exposed);
  /// The same for an observer of the memories, who may change bits meanwhile.
  [[nodiscard]] hw::ArrayCycles compute_observed(const hw::cmd::Matmul& matmul, hw::GemmArgs args,
                                                 const hw::ArraySchedule& schedule, bool preloaded);
  /// Cycles that the codes of the memories delay the results by.
  [[nodiscard]] std::uint64_t read_delay(const hw::cmd::Matmul& matmul) const;
  /// Reports which bytes the product uses when, the command begins now.
  void observe_uses(const hw::cmd::Matmul& matmul, std::uint64_t step,
                    const hw::ArraySchedule& schedule);
  /// Waits until the matmul has left the array's inputs. Returns in how many of the cycles it
  /// moved.
  std::uint64_t run_reads();
  /// Shows what a matmul has read of the scratchpad since `started`.
  void show_reads(const hw::cmd::Matmul& matmul, const hw::ArrayReads& reads,
                  std::uint64_t started);
  [[nodiscard]] BankedSram::Demand result_demand(const hw::cmd::Matmul& matmul,
                                                 const hw::ArrayCycles& cycles) const;
  /// Accounts for the cycles of a matmul from `started` on in which it moved, `lead` of them before
  /// its first row: as a whole, or fold by fold for a waveform.
  void account_matmul(const hw::ArrayCycles& cycles, std::uint64_t moved, std::uint64_t lead,
                      std::uint64_t started);

  const hw::Machine machine_;
  const hw::Machine::Array& array_ = machine_.array;
  const bool functional_;
  LocalMemory& memory_;
  hw::ArrayEngine& engine_;
  AttentionUnit* const attention_;     ///< nullptr: the machine has none
  std::vector<std::int32_t> product_;  ///< in flight to the accumulator engine, if there is one
  std::deque<Leaving> leaving_;
  sc_core::sc_event leave_;
  std::uint64_t macs_ = 0, int4_macs_ = 0, int4_int4_macs_ = 0;
  std::uint64_t folds_ = 0;
  SignalRecorder::Signal fold_ = 0;  ///< shown
};

}  // namespace systole::tlm_model
