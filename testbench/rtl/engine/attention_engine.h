#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hw/engines.h"
#include "hw/machine/machine.h"
#include "testbench/rtl/attention/attention_line_rtl.h"
#include "testbench/rtl/drive/rtl_counts.h"

namespace systole::testbench {

/// The lines of the attention engines in RTL, of one engine or of both. One line in RTL does what
/// each line of the machine did, one after the other. The machine gets the values that the RTL
/// delivers; beside it run the model and the cycle contract, for comparison.
class AttentionRtlEngine final : public hw::AttentionEngine {
 public:
  /// The engines that `backends` asks for, one at least. Counts into `report`, which must outlive
  /// the engine; an operation is a phase of a line. `options.wave`, if set, is the stem of a file
  /// name per block. Throws InputError for a machine without attention engines, or with lines that
  /// no RTL is built for.
  AttentionRtlEngine(const hw::Machine::Attention& attention, const hw::Machine::Backends& backends,
                     const RtlOptions& options, RtlReport& report);

  /// Stages of the scores and the softmax stand between the lines' phases and are the model's.
  /// Throws InputError for rows that are too long for the RTL.
  [[nodiscard]] hw::AttentionSums sums(const hw::SparseHead& head,
                                       const hw::AttentionOperands& operands,
                                       const hw::ScoreFunctions& functions) override;

 private:
  struct Twin {
    std::unique_ptr<AttentionLineRtl> rtl;  ///< null: the model
    std::shared_ptr<ModelView> view;
    RtlCounts* counts = nullptr;
    bool failed = false;  ///< its assertions have been counted
  };

  void run_scores(const hw::SparseHead& head, const hw::AttentionOperands& operands,
                  hw::SplitCells<std::int32_t>& scores);
  void run_sums(const hw::SparseHead& head, const hw::SparseRows& rows,
                const hw::AttentionOperands& operands, const hw::AttentionCodes& codes,
                std::vector<std::int32_t>& sums);
  /// Results of the work, `expected` being the model's.
  std::vector<std::int32_t> run(Twin& twin, const LineWork& work, std::uint64_t contract,
                                const std::vector<std::int32_t>& expected);

  hw::Machine::Attention attention_;
  Twin dense_, sparse_;
};

}  // namespace systole::testbench
