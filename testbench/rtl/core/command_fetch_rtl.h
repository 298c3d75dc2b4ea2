#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "hw/dma/read_dma.h"
#include "testbench/rtl/drive/rtl_counts.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// A program in memory, and who takes its commands.
struct FetchCase {
  const std::vector<std::uint8_t>& bytes;  ///< main memory from address 0 on
  std::uint64_t address = 0;               ///< of the header
  std::uint32_t commands = 1;
  /// By command: cycles from its arrival, or from the cycle after the command before it went out,
  /// until it is taken.
  const std::vector<std::uint64_t>& waits;
  hw::SlotOrder slots = hw::SlotOrder::kIssue;
};

struct FetchRun {
  std::vector<std::uint64_t> arrivals;    ///< by command: cycle from which it is on the output
  std::vector<std::uint8_t> commands;     ///< their bytes
  std::vector<std::uint8_t> looked;       ///< of those looked at: opcode, chain
  std::size_t wrong_looks = 0;            ///< cycles in which look_next_o is wrong
  std::vector<hw::ReadRequest> requests;  ///< without their lengths
  bool fault = false;
};

/// Drives the Verilated fetch of commands: the chunks and the DMA of preset "tiny".
class CommandFetchRtl {
 public:
  static constexpr std::uint32_t kChunk = 4, kBeatBytes = 4, kRequestBytes = 16, kOutstanding = 4;

  virtual ~CommandFetchRtl() = default;
  /// Fetches all commands, which begins in cycle 0. `expected`: for the waveform, or null. Throws
  /// std::runtime_error on a breach of the protocol of AXI4, or if the RTL hangs.
  virtual FetchRun run(const FetchCase& test, const hw::ReadMemory& memory,
                       const FetchRun* expected) = 0;
  [[nodiscard]] virtual std::uint64_t cycles() const = 0;  ///< of the last run
  [[nodiscard]] virtual bool failed() const = 0;           ///< an assertion has fired
};

/// In a waveform the model's output is the arrival of the command that is on the output next.
inline constexpr std::size_t kFetchViewWords = 1;
[[nodiscard]] std::unique_ptr<CommandFetchRtl> make_command_fetch(const RtlOptions& options = {});

/// What hw::FetchSchedule says of it.
[[nodiscard]] FetchRun model_command_fetch(const FetchCase& test, const hw::ReadMemory& memory);

/// Fetches a program and compares arrivals, bytes and requests; an operation is a command.
/// `make_memory` is called for each side, and must give the same memory.
void check_command_fetch(CommandFetchRtl& fetch, const FetchCase& test,
                         const std::function<hw::ReadMemory()>& make_memory, RtlCounts& counts);

}  // namespace systole::testbench
