#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hw/attention/head_mix.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// A coefficient of head_mix_line, as its pin config_field_i has it.
enum class MixField : std::uint8_t { kWeight, kBias, kMultiplier, kShift };

/// rtl/attention/systole_head_mix_line.sv: one line of the auto-encoder's decoder or encoder.
/// Values: hw::mix_heads; cycles: hw::HeadMixLines of one line.
class HeadMixLineRtl {
 public:
  /// Heads on either side for which the RTL has registers.
  static constexpr std::uint32_t kMaxHeads = 16;

  /// A group of features in the line, in cycles in which the line was not stalled,
  /// from the first beat on.
  struct Group {
    std::uint64_t arrival = 0;  ///< all of its beats are in
    std::uint64_t done = 0;     ///< its last beat has left
  };
  struct Cycles {
    RtlCycles total;  ///< from the first beat to the last; stalled: an output was refused
    std::vector<Group> groups;
  };

  virtual ~HeadMixLineRtl() = default;
  /// Tokens one after the other: `in` is [tokens][in_heads][features], `out` is
  /// [tokens][out_heads][features]. `expected`: `out` by the model for the waveform, or null. The
  /// mix has passed check_head_mix(). Throws InputError for more than kMaxHeads heads,
  /// std::runtime_error if the line stops moving or delivers another head than it should.
  virtual Cycles mix(const hw::HeadMix& mix, const std::int8_t* in, std::size_t features,
                     std::size_t tokens, std::int8_t* out, const std::int8_t* expected = nullptr,
                     const BackPressure& pressure = {}) = 0;
  [[nodiscard]] virtual bool failed() const = 0;  ///< an assertion has fired
};

/// Throws InputError for a number of MACs that no RTL is built for.
[[nodiscard]] std::unique_ptr<HeadMixLineRtl> make_head_mix_line(std::uint32_t macs,
                                                                 const RtlOptions& options = {});

}  // namespace systole::testbench
