#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "hw/engines.h"
#include "testbench/rtl/drive/rtl_check.h"
#include "testbench/rtl/drive/system_time.h"
#include "testbench/rtl/postop/chain_rtl.h"

namespace systole::testbench {

/// The post-op pipeline with some of its blocks in RTL, or all of it. The machine gets the values
/// and cycles that the RTL delivers; beside it run the model and the cycle contracts, for
/// comparison.
class PostopRtlEngine final : public TimedRtl<hw::PostopEngine> {
 public:
  /// Counts into `report`, which must outlive the engine. `stages` are blocks that do one stage or
  /// a part of it. `pipeline` may be null; its results override those of the stages.
  PostopRtlEngine(std::uint32_t lanes, std::vector<std::unique_ptr<ChainRtl>> stages,
                  RtlReport& report, std::unique_ptr<ChainRtl> pipeline = nullptr,
                  std::shared_ptr<SystemTime> time = nullptr);

  void apply(const hw::Chain& chain, const hw::ChainOperands& operands) override;
  [[nodiscard]] hw::ChainCycles cycles(const hw::Chain& chain, std::uint64_t rows,
                                       std::uint64_t cols) override;

 private:
  struct Block {
    std::unique_ptr<ChainRtl> rtl;
    RtlCheck check;
  };

  void apply_stage(const hw::Stage& stage, const hw::ChainOperands& operands);
  void side_output(const hw::Stage& stage, const hw::ChainOperands& operands);
  void run(Block& block, const hw::Chain& chain, const hw::ChainOperands& operands,
           const std::vector<std::int32_t>& expected);
  [[nodiscard]] bool runs_as_pipeline(const hw::Chain& chain) const;
  [[nodiscard]] std::int64_t excess(const Block& block, const hw::Chain& chain, std::size_t rows,
                                    std::size_t cols);

  std::uint32_t lanes_;
  std::vector<Block> stages_;
  std::optional<Block> pipeline_;
  std::vector<std::int32_t> values_;  ///< before the next stage
  std::vector<std::int32_t> saved_;   ///< before the first
  /// Measured cycles beyond the contract, by what they depend on: latencies and passes of the
  /// stages, rows, columns.
  std::map<std::pair<const ChainRtl*, std::vector<std::uint64_t>>, std::int64_t> excess_;
};

}  // namespace systole::testbench
