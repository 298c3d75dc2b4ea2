#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "testbench/rtl/drive/rtl_counts.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// Drives the Verilated softmax of a streaming core, groups of hw::stream::kGroup scores.
class StreamSoftmaxRtl {
 public:
  struct Row {
    std::int8_t maximum = 0;
    std::uint32_t sum = 0;
    std::uint8_t inverse = 0;
  };

  virtual ~StreamSoftmaxRtl() = default;
  /// Rows of `length` scores, a multiple of a group, one after the other. Fills `rows` and
  /// `probabilities`. Throws std::runtime_error if the RTL hangs.
  virtual RtlCycles run(const std::vector<std::int8_t>& scores, std::size_t length,
                        std::vector<Row>& rows, std::vector<std::uint8_t>& probabilities,
                        const BackPressure& pressure = {}) = 0;
  /// Whether an assertion has fired.
  [[nodiscard]] virtual bool failed() const = 0;
};

[[nodiscard]] std::unique_ptr<StreamSoftmaxRtl> make_stream_softmax(const RtlOptions& options = {});

/// Runs the rows and compares everything with hw::stream::SoftmaxRow, cycles with
/// hw::stream::softmax_cycles, under the name stream_softmax.
RtlCycles check_stream_softmax(StreamSoftmaxRtl& unit, const std::vector<std::int8_t>& scores,
                               std::size_t length, RtlCounts& counts,
                               const BackPressure& pressure = {});

}  // namespace systole::testbench
