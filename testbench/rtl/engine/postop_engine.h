#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "hw/engines.h"
#include "testbench/rtl/drive/rtl_counts.h"
#include "testbench/rtl/engine/chain_twin.h"
#include "testbench/rtl/engine/stage_twin.h"

namespace systole::testbench {

/// The post-op pipeline with some of its blocks in RTL, or all of it. The machine gets the values
/// and cycles that the RTL delivers; beside it run the model and the cycle contracts, for
/// comparison.
class PostopRtlEngine final : public hw::PostopEngine {
 public:
  /// Counts into `report`, which must outlive the engine. `pipeline` may be null; of the chains
  /// that it serves it has the last word.
  PostopRtlEngine(std::uint32_t lanes, std::vector<std::unique_ptr<StageTwin>> twins,
                  RtlReport& report, std::unique_ptr<ChainTwin> pipeline = nullptr);

  void apply(const hw::Chain& chain, const hw::ChainOperands& operands) override;
  [[nodiscard]] hw::ChainCycles cycles(const hw::Chain& chain, std::uint64_t rows,
                                       std::uint64_t cols) override;

 private:
  void apply_stage(const hw::Stage& stage, const hw::ChainOperands& operands);
  void side_output(const hw::Stage& stage, const hw::ChainOperands& operands);
  void run_twin(StageTwin& twin, const hw::Stage& stage, const StageRows& rows,
                const std::vector<std::int32_t>& expected,
                const std::vector<std::uint32_t>& expected_statistics);
  void run_pipeline(const hw::Chain& chain, const hw::ChainOperands& operands);
  template <typename Twin>
  void count(const Twin& twin, const RtlCycles& taken, std::uint64_t contract,
             const std::vector<std::int32_t>& expected);
  [[nodiscard]] std::int64_t excess(StageTwin& twin, const hw::Stage& stage, std::size_t rows,
                                    std::size_t cols);
  [[nodiscard]] std::int64_t pipeline_excess(const hw::Chain& chain, std::size_t rows,
                                             std::size_t cols);

  std::uint32_t lanes_;
  std::vector<std::unique_ptr<StageTwin>> twins_;
  std::unique_ptr<ChainTwin> pipeline_;
  RtlReport& report_;
  std::vector<std::int32_t> values_;  ///< in front of the next stage
  std::vector<std::int32_t> saved_;   ///< in front of the first
  std::set<const void*> failed_;      ///< twins whose assertions have been counted
  using Shape = std::tuple<const StageTwin*, hw::StageOp, std::int64_t, std::size_t, std::size_t>;
  std::map<Shape, std::int64_t> excess_;  ///< measured cycles beyond the contract, by shape
  /// Of whole chains, by the latencies of their stages, rows, columns.
  std::map<std::vector<std::uint64_t>, std::int64_t> pipeline_excess_;
};

}  // namespace systole::testbench
