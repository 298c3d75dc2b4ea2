#pragma once

#include <vector>

#include "tlm/dma_port.h"
#include "tlm/execution_unit.h"
#include "tlm/local_memory.h"

namespace systole::tlm_model {

/// DRAM -> scratchpad, and DRAM -> accumulator with widening to int32.
class LoadUnit final : public ExecutionUnit {
 public:
  DmaPort dma;

  LoadUnit(const sc_core::sc_module_name& name, const hw::Machine& machine,
           CommandProcessor& processor, LocalMemory& memory, bool functional);

 private:
  static constexpr std::size_t kMemory = kOwnCauses;

  std::uint64_t execute(Entry& entry) override;
  std::vector<hw::Counter> counters() const override;
  void widen(const hw::Command& command, std::uint64_t row, const std::uint8_t* from);

  const bool functional_;
  const std::uint32_t beat_bytes_;
  LocalMemory& memory_;
  std::vector<std::uint8_t> staging_;  ///< rows on their way to the accumulator
};

}  // namespace systole::tlm_model
