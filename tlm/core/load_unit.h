#pragma once

#include <deque>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/postop/postop.h"
#include "hw/postop/store_set_up.h"
#include "tlm/core/execution_unit.h"
#include "tlm/core/local_memory.h"
#include "tlm/dma/dma_port.h"

namespace systole::tlm_model {

/// DRAM -> scratchpad, and DRAM -> accumulator with widening to int32; with stages on the way
/// (preop.lanes elements a cycle: hw/core/staged_load.h) where a command has them, and expansion of
/// packed weights (dma.expander_lanes of them a cycle).
class LoadUnit final : public ExecutionUnit {
 public:
  const std::unique_ptr<DmaPort> dma;

  LoadUnit(const sc_core::sc_module_name& name, const hw::Machine& machine,
           CommandProcessor& processor, LocalMemory& memory, bool functional,
           const DmaFactory& make_dma);

  /// Elements times stages before the anchor, and expanded weights.
  [[nodiscard]] std::uint64_t operations() const noexcept { return stage_operations_ + expanded_; }

  void watch(SignalRecorder& recorder) override;
  /// A program begins.
  void forget_chain() noexcept { set_up_.forget(); }

 private:
  /// Called for each row, in order, as soon as the cycle is known in which it is complete.
  using OnRow = std::function<void(std::uint64_t row, std::uint64_t cycle)>;

  static constexpr std::size_t kMemory = kOwnCauses;
  static constexpr std::size_t kStages = kOwnCauses + 1;

  /// A load to the accumulator whose requests have arrived.
  struct Placing {
    Entry* entry;
    std::uint64_t started, released;
    hw::SumTraffic::Request last;  ///< the one that is there last
  };
  class SumPlaces final : public DmaPort::Places {
   public:
    explicit SumPlaces(LoadUnit& unit) : unit_(unit) {}
    [[nodiscard]] std::uint64_t last() const override { return last_request; }
    Placed placed(std::uint64_t request) override { return unit_.placed(request); }

    hw::SumTraffic::Request last_request = 0;

   private:
    LoadUnit& unit_;
  };

  void await_turn(const Entry& entry) override;
  std::optional<std::uint64_t> execute(Entry& entry) override;
  /// One with stages, which has the unit to itself. Returns the cycle of its completion.
  std::uint64_t execute_stages(const hw::cmd::Load& load, bool to_accumulator);
  /// When the sums of a request are in the accumulator, as far as is known by now.
  DmaPort::Places::Placed placed(hw::SumTraffic::Request request);
  /// Loads whose sums are there complete.
  void complete_due();
  /// When more is known of one whose sums are not known to be there.
  void look_again(const DmaPort::Places::Placed& at);
  std::vector<hw::Counter> counters() const override;
  [[nodiscard]] std::uint64_t moved_bytes() const override { return dma->stats().bytes; }
  /// Posts what a load does to values; false: its requests have to bring them.
  bool post(const hw::cmd::Load& load, bool to_accumulator);
  /// What a load without stages does to values. `from`: where its rows are, or the picture of its
  /// window.
  void compute(const hw::cmd::Load& load, bool to_accumulator, const std::uint8_t* from);
  void widen(const hw::cmd::Load& load, std::uint64_t row, const std::uint8_t* from);
  /// Reads what the window of a load gathers, row by row, and calls on_row. `to`: where the first
  /// of its rows goes, `pitch` bytes to the next; null: timing only. `beats`: what the runs take on
  /// the bus.
  std::uint64_t gather(const hw::cmd::Load& load, std::uint8_t* to, std::uint64_t pitch,
                       std::uint64_t& beats, const OnRow& on_row);
  /// The maximum or the sum of the runs of a row as a row of sums.
  void reduce(const hw::cmd::Load& load, std::uint64_t row, const std::uint8_t* from);
  /// The parameters that the stages are about to read, a word a cycle from `started` on.
  void observe_parameters(const hw::ChainUse& use, const hw::Chain& chain, std::uint64_t cols,
                          std::uint64_t started);
  /// Expands groups to where the weights go.
  void expand(const hw::cmd::Load& load, const hw::TensorRows& groups);
  /// The same of one with stages.
  bool post_stages(const hw::cmd::Load& load, bool to_accumulator, const hw::Chain& chain);
  /// Sends rows through the chain, to where they go.
  void apply(const hw::cmd::Load& load, bool to_accumulator, const hw::Chain& chain,
             const hw::TensorRows& rows, const std::vector<hw::TensorRows>& tensors);

  const bool functional_;
  const BlockSize access_size_;  ///< of a request, into the scratchpad
  LocalMemory& memory_;
  const hw::Machine machine_;
  hw::StoreSetUp set_up_;              ///< of the stages
  std::uint64_t all_complete_ = 0;     ///< cycle with which the loads so far are, but for placing_
  std::vector<std::uint8_t> staging_;  ///< rows in flight to the accumulator, expander or stages
  std::vector<std::vector<std::uint8_t>> operands_;  ///< rows of each tensor operand
  std::vector<DmaPort::Run> runs_;                   ///< of a load with a window
  std::vector<std::uint64_t> rows_;                  ///< of these, in their order
  std::vector<std::int32_t> sums_;                   ///< a row of them
  SumPlaces places_{*this};
  std::deque<Placing> placing_;
  sc_core::sc_event place_, placed_;
  std::uint64_t stage_operations_ = 0;
  std::uint64_t expanded_ = 0;          ///< weights
  std::uint64_t expander_free_ = 0;     ///< cycle at which the expander has taken all so far
  SignalRecorder::Signal arrived_ = 0;  ///< shown: rows so far
};

}  // namespace systole::tlm_model
