#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hw/program/dispatch.h"
#include "testbench/rtl/drive/rtl_counts.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// Drives the Verilated dispatcher. Its units take as long as the commands say.
class DispatcherRtl {
 public:
  /// Ranges of a command in main memory and in the scratchpad that it has registers for.
  static constexpr std::size_t kDramRanges = 5, kScratchpadRanges = 2;

  virtual ~DispatcherRtl() = default;
  /// Runs the commands from reset on, every cycle. Throws std::invalid_argument for a command with
  /// more ranges than there are registers, std::runtime_error if the RTL hangs.
  virtual std::vector<hw::DispatchTimes> run(const std::vector<hw::DispatchItem>& items) = 0;
  /// Clock cycles of the last run.
  [[nodiscard]] virtual std::uint64_t cycles() const = 0;
  /// Whether an assertion has fired.
  [[nodiscard]] virtual bool failed() const = 0;
};

/// Station sizes that an RTL is built for.
inline constexpr std::array<std::array<std::uint32_t, hw::kStations>, 2> kDispatcherSizes = {
    {{8, 16, 4}, {4, 4, 2}}};

/// Throws InputError for other sizes. In a waveform the model's outputs are, for each unit, the
/// cycles of dispatch and start of the command that started last: kDispatcherViewWords words.
inline constexpr std::size_t kDispatcherViewWords = 2 * hw::kStations;
[[nodiscard]] std::unique_ptr<DispatcherRtl> make_dispatcher(
    const std::array<std::uint32_t, hw::kStations>& sizes, const RtlOptions& options = {});

/// Runs the commands and compares both times of each with hw::dispatch_times(); an operation is a
/// command, and counts under the name dispatcher.
void check_dispatcher(DispatcherRtl& dispatcher, const std::vector<hw::DispatchItem>& items,
                      const std::array<std::uint32_t, hw::kStations>& sizes, RtlCounts& counts);

}  // namespace systole::testbench
