#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/postop/postop.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// Consecutive rows of s32 values in front of a stage, replaced by those behind it.
struct StageRows {
  std::int32_t* x;
  std::size_t rows;
  std::size_t cols;
  const std::int32_t* parameters;  ///< the stage's words of the parameter block
  std::uint32_t* row_statistics;   ///< one entry per row, null if the chain has none
  std::size_t valid_cols;          ///< hw::ChainOperands::valid_cols
};

/// A block in RTL, as a stage of the post-op chain that it computes, alone or in part.
class StageTwin {
 public:
  virtual ~StageTwin() = default;
  [[nodiscard]] virtual const char* block() const = 0;
  [[nodiscard]] virtual bool serves(const hw::Stage& stage) const = 0;
  /// `expected`: what the model makes of the rows, shown in the waveform.
  virtual RtlCycles run(const hw::Stage& stage, const StageRows& rows,
                        const std::int32_t* expected) = 0;
  /// Cycles that run() must take, by the block's contract.
  [[nodiscard]] virtual std::uint64_t contract(const hw::Stage& stage, std::size_t rows,
                                               std::size_t cols) const = 0;
  [[nodiscard]] virtual bool failed() const = 0;  ///< an assertion has fired
};

/// The twins that `backends` asks for. `options.wave`, if set, is the stem of a file name per
/// block. Throws InputError for a number of lanes that no RTL is built for.
[[nodiscard]] std::vector<std::unique_ptr<StageTwin>> make_stage_twins(
    const hw::Machine::Backends& backends, std::uint32_t lanes, const RtlOptions& options);

}  // namespace systole::testbench
