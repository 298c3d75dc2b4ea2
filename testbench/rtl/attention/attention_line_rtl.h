#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "testbench/rtl/attention/line_work.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// rtl/attention/systole_sparser_line.sv or rtl/attention/systole_denser_line.sv, a phase at a
/// time. Values: hw/attention/sparse_attention.h; cycles: hw::line_cycles().
class AttentionLineRtl {
 public:
  /// Words of a row that the RTL can hold.
  static constexpr std::size_t kMaxWords = 16;

  virtual ~AttentionLineRtl() = default;
  [[nodiscard]] virtual const char* block() const = 0;
  /// Results in the order in which they leave: in the SDDMM a score for each step, in the SpMM as
  /// many sums as the line has MACs for each item, of which those beyond the last feature mean
  /// nothing. `expected`: the same by the model, shown in the waveform, or null. `pressure`: each
  /// stream into the line withholds beats on its own. Throws InputError for rows of more than
  /// kMaxWords words, std::runtime_error if the line stops moving, or wants or delivers what it
  /// should not.
  virtual std::vector<std::int32_t> run(const LineWork& work, RtlCycles& cycles,
                                        const std::int32_t* expected = nullptr,
                                        const BackPressure& pressure = {}) = 0;
  [[nodiscard]] virtual bool failed() const = 0;  ///< an assertion has fired
};

/// Throw InputError for a number of MACs that no RTL is built for.
[[nodiscard]] std::unique_ptr<AttentionLineRtl> make_sparser_line(std::uint32_t macs,
                                                                  const RtlOptions& options = {});
[[nodiscard]] std::unique_ptr<AttentionLineRtl> make_denser_line(std::uint32_t macs,
                                                                 const RtlOptions& options = {});

}  // namespace systole::testbench
