#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "hw/number/weight_groups.h"
#include "testbench/rtl/drive/rtl_counts.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// A run of packed weights as it resides in memory: kGroupWeights rows of `cols` weights.
struct PackedRun {
  hw::WeightFormat format = hw::WeightFormat::kGroups;
  std::uint32_t cols = 0;
  std::vector<std::uint8_t> bytes;
};

/// What an expander made of a run, and when.
struct ExpandedRun {
  std::vector<std::int8_t> weights;  ///< [kGroupWeights x cols]
  std::uint64_t arrived = 0;         ///< cycle in which its last word comes in
  std::uint64_t started = 0;         ///< in which it begins, at or after that
  std::uint64_t placed = 0;          ///< in which its last weights leave
};

/// Drives the Verilated expander of weights.
class WeightExpanderRtl {
 public:
  virtual ~WeightExpanderRtl() = default;
  [[nodiscard]] virtual std::uint32_t lanes() const = 0;
  [[nodiscard]] virtual std::uint32_t max_cols() const = 0;
  /// Runs that follow each other: each comes in while the one before is expanded, `gap` cycles
  /// after that began, and begins as soon as it can.
  [[nodiscard]] virtual std::vector<ExpandedRun> expand(const std::vector<PackedRun>& runs,
                                                        std::uint64_t gap) = 0;
  [[nodiscard]] virtual std::uint64_t cycles() const = 0;
  [[nodiscard]] virtual bool failed() const = 0;  ///< an assertion has fired
};

/// In a waveform the model's output are the weights of four lanes.
inline constexpr std::size_t kExpanderViewWords = 4;
/// `lanes`: one of those that are built, 4 or 16.
[[nodiscard]] std::unique_ptr<WeightExpanderRtl> make_weight_expander(
    std::uint32_t lanes, const RtlOptions& options = {});

/// Any bytes of any format and width.
[[nodiscard]] PackedRun random_run(std::mt19937_64& random, std::uint32_t max_cols);

/// Expands the runs and compares weights with hw::expand_group() and times with
/// hw::expansion_cycles(); an operation is a run.
void check_weight_expander(WeightExpanderRtl& expander, const std::vector<PackedRun>& runs,
                           std::uint64_t gap, RtlCounts& counts);

}  // namespace systole::testbench
