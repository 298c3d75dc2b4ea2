#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hw/function/softmax.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// Rows of scores, one after the other.
struct ScoreRows {
  std::vector<std::int32_t> scores;
  std::vector<std::size_t> ends;  ///< by row: end of its scores; a row may have none
};

/// rtl/attention/systole_attention_softmax.sv. Values: hw::softmax_row in the deferred mode.
class AttentionSoftmaxRtl {
 public:
  virtual ~AttentionSoftmaxRtl() = default;

  /// `codes` gets the code of each score, `sums` that of each row, 1 for a row of no scores. The
  /// maximum of a row is the driver's. `expected`: codes by the model for the waveform, or null.
  /// Throws std::runtime_error if the RTL stops moving, or ends a row in the wrong place.
  virtual RtlCycles run(const ScoreRows& rows, const hw::SoftmaxConstants& constants,
                        std::vector<std::uint8_t>& codes, std::vector<std::uint32_t>& sums,
                        const std::int32_t* expected = nullptr,
                        const BackPressure& pressure = {}) = 0;
  /// Cycles that run() must take without back-pressure; 0 for rows of no scores.
  [[nodiscard]] virtual std::uint64_t contract(const ScoreRows& rows) const = 0;
  [[nodiscard]] virtual bool failed() const = 0;  ///< an assertion has fired
};

/// Lanes that Makefile.verilator builds.
inline constexpr std::uint32_t kSoftmaxLanes = 8;

/// Throws InputError for lanes that are not built.
[[nodiscard]] std::unique_ptr<AttentionSoftmaxRtl> make_attention_softmax(
    std::uint32_t lanes, const RtlOptions& options = {});

}  // namespace systole::testbench
