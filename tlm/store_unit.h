#pragma once

#include <vector>

#include "hw/engines.h"
#include "tlm/dma_port.h"
#include "tlm/execution_unit.h"
#include "tlm/local_memory.h"

namespace systole::tlm_model {

/// Accumulator -> post-op chain -> DRAM or scratchpad, `lanes` elements a cycle. A tensor operand
/// (the residual) streams in from DRAM ahead of its use.
class StoreUnit final : public ExecutionUnit {
 public:
  DmaPort write_dma;
  DmaPort read_dma;  ///< tensor operands

  StoreUnit(const sc_core::sc_module_name& name, const hw::Machine& machine,
            CommandProcessor& processor, LocalMemory& memory, hw::PostopEngine& engine,
            bool functional);

  [[nodiscard]] std::uint64_t operations() const noexcept { return operations_; }

 private:
  static constexpr std::size_t kFill = kOwnCauses;
  static constexpr std::size_t kMemory = kOwnCauses + 1;
  static constexpr std::size_t kBankConflict = kOwnCauses + 2;

  /// Timing of one command in progress.
  struct Flow {
    std::uint64_t started;
    hw::ChainCycles cycles;
    std::uint64_t row_done;  ///< cycle at which the pipeline delivered the last row
    std::uint64_t written;   ///< cycle of the last acknowledgement
  };

  std::uint64_t execute(Entry& entry) override;
  std::vector<hw::Counter> counters() const override;
  void fetch_operand(const hw::Command& command, const hw::Chain& chain, std::uint64_t row,
                     std::uint64_t not_before);
  void compute(const hw::Command& command, const hw::Chain& chain, std::uint64_t first,
               std::uint64_t rows);
  void deliver(const hw::Command& command, const hw::Chain& chain, std::uint64_t first,
               std::uint64_t row, Flow& flow);

  const bool functional_;
  const std::uint32_t lanes_;
  LocalMemory& memory_;
  hw::PostopEngine& engine_;
  std::vector<std::uint8_t> operand_;      ///< tensor operand rows of the whole tile
  std::vector<std::uint64_t> operand_at_;  ///< cycle of arrival, per row
  std::vector<std::uint8_t> result_;       ///< rows of the current block
  std::uint64_t operations_ = 0;
  std::uint64_t accumulator_reads_ = 0;
};

}  // namespace systole::tlm_model
