#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hw/engines.h"
#include "hw/machine/machine.h"
#include "testbench/rtl/array/accumulator_sram_rtl.h"
#include "testbench/rtl/drive/rtl_counts.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// The accumulator in RTL. The machine gets the sums that the RTL delivers; beside it run the model
/// and the cycle contract, for comparison.
class AccumulatorRtlEngine final : public hw::AccumulatorEngine {
 public:
  /// Counts into `counts`, which must outlive the engine; an operation is a tile that was written
  /// or read. Throws InputError if the RTL is not built for this machine's accumulator.
  AccumulatorRtlEngine(const hw::Machine& machine, const RtlOptions& options, RtlCounts& counts);

  void write(const hw::AccumulatorTile& tile, const std::int32_t* values, std::size_t pitch,
             bool accumulate) override;
  void read(const hw::AccumulatorTile& tile, std::int32_t* values, std::size_t pitch) override;

 private:
  struct Piece;
  struct Stream;
  [[nodiscard]] std::vector<Stream> streams_of(const hw::AccumulatorTile& tile) const;
  void clear();
  void account(const AccumulatorSramRtl::Cycles& cycles, const hw::AccumulatorCycles& contract);

  std::uint32_t cols_;
  hw::AccumulatorBanks banks_;
  std::shared_ptr<ModelView> view_;
  AccumulatorSramRtl rtl_;
  hw::AccumulatorModel model_;
  RtlCounts& counts_;
};

}  // namespace systole::testbench
