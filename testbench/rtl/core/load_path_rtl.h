#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "hw/dma/read_dma.h"
#include "hw/program/dispatch.h"
#include "hw/program/program.h"
#include "testbench/rtl/drive/rtl_counts.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// When a command of a program arrives, and, unless it is a load, how long its unit takes: cycles
/// after its start, as in hw::DispatchItem.
struct LoadPathItem {
  std::uint64_t arrival = 0;
  std::uint64_t occupied = 1, released = 1, completed = 1;
};

/// What happened, or should.
struct LoadPathRun {
  std::vector<hw::DispatchTimes> dispatch;  ///< by command
  std::vector<hw::ReadTimes> loads;         ///< by command, zeros of others
  std::vector<hw::ReadRequest> requests;
  std::vector<std::uint8_t> scratchpad;  ///< afterwards
  std::vector<std::uint8_t> sums;        ///< bytes that went to the accumulator, where they belong
  std::vector<hw::LocalWrite> sums_written;  ///< without their sources
};

/// What it is to run: a program whose commands have no `end`, and all of which the RTL does.
struct LoadPathCase {
  const hw::Program& program;
  const std::vector<LoadPathItem>& items;  ///< by command
  const std::vector<std::uint8_t>& bytes;  ///< main memory from address 0 on
  hw::SlotOrder slots = hw::SlotOrder::kIssue;
  std::uint32_t row_bytes = 0;
};

/// Drives the Verilated path from commands to the scratchpad (rtl/core/systole_load_path.sv) of
/// preset "tiny": its station sizes, DMA and scratchpad.
class LoadPathRtl {
 public:
  static constexpr std::array<std::uint32_t, hw::kStations> kStationSizes = {4, 4, 2};
  static constexpr std::uint32_t kBeatBytes = 4, kRequestBytes = 16, kOutstanding = 4;
  static constexpr std::size_t kScratchpadBytes = 4096, kSumsBytes = 1 << 16, kChainSlots = 64;

  virtual ~LoadPathRtl() = default;
  /// Sends the chains of the program, at most kChainSlots, and then its commands; cycles count from
  /// there. The scratchpad holds zeros before. `expected`: for the waveform, or null. Throws
  /// std::invalid_argument for a command that the RTL refuses, std::runtime_error on a breach of
  /// the protocol of AXI4, or if the RTL hangs.
  virtual LoadPathRun run(const LoadPathCase& test, const hw::ReadMemory& memory,
                          const LoadPathRun* expected) = 0;
  [[nodiscard]] virtual std::uint64_t cycles() const = 0;  ///< of the last run
  [[nodiscard]] virtual bool failed() const = 0;           ///< an assertion has fired
};

/// In a waveform the model's outputs are, for each unit, the cycles of dispatch and start of the
/// command that started last.
inline constexpr std::size_t kLoadPathViewWords = 2 * hw::kStations;
[[nodiscard]] std::unique_ptr<LoadPathRtl> make_load_path(const RtlOptions& options = {});

/// The load that a command is for the port; of none, rows is 0. Bytes to the accumulator go to
/// where their elements would be if those had as many bytes there as in memory.
[[nodiscard]] hw::RowRead row_read(const hw::Command& command);

/// What hw::DispatchSchedule and hw::ReadPort say of it.
[[nodiscard]] LoadPathRun model_load_path(const LoadPathCase& test, const hw::ReadMemory& memory);

/// Runs the case and compares everything; an operation is a command. `make_memory` is called for
/// each side, and must give the same memory.
void check_load_path(LoadPathRtl& path, const LoadPathCase& test,
                     const std::function<hw::ReadMemory()>& make_memory, RtlCounts& counts);

}  // namespace systole::testbench
