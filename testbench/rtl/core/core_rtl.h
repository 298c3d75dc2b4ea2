#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "hw/array/fold_stream.h"
#include "hw/dma/read_dma.h"
#include "hw/dma/write_dma.h"
#include "hw/program/dispatch.h"
#include "hw/program/program.h"
#include "testbench/rtl/core/core_size.h"
#include "testbench/rtl/drive/rtl_counts.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// What a core works on. Between two programs it stays.
struct CoreState {
  std::vector<std::uint8_t> memory;  ///< from address 0 on
  std::vector<std::uint8_t> scratchpad;
  std::vector<std::int32_t> sums;  ///< the accumulator
  std::vector<std::uint32_t> statistics;
};

/// The other side of a core's four ports.
struct CoreMemory {
  hw::ReadMemory program, loads, operands;
  hw::WriteMemory stores;
};

/// A program, whose image is in the memory at `address` and which ends with `end`.
struct CoreCase {
  const hw::Program& program;
  std::uint64_t address = 0;
  hw::SlotOrder slots = hw::SlotOrder::kIssue;
  hw::ArrayOverlap overlap = hw::ArrayOverlap::kFull;
  bool resets = true;  ///< before it; otherwise the core has finished another program
};

struct CoreCommandTimes {
  std::uint64_t dispatched = 0, started = 0;
  /// A matmul starts in gates while the one before it still reads: cycle from which on it has the
  /// array, as it starts in the model. Else `started`.
  std::uint64_t begun = 0;
  std::uint64_t released = 0;  ///< of a load: 0
  std::uint64_t completed = 0;
  std::uint64_t readable = 0;  ///< hw::DispatchTimes; not known of the RTL
};

/// The first time at which a command is not where it was expected.
struct CommandDifference {
  enum class Moment : std::uint8_t { kDispatched, kBegun, kCompleted };
  std::size_t command = 0;
  Moment moment = Moment::kDispatched;
  std::uint64_t found = 0, expected = 0;  ///< cycles
};

/// What happened, or should.
struct CoreRun {
  std::vector<CoreCommandTimes> commands;  ///< without `end`
  std::vector<hw::ReadRequest> fetches, reads, operands;
  std::vector<hw::WriteRequest> writes;
  std::uint64_t began = 0;            ///< cycle of the system, if there is one
  std::uint64_t done = 0;             ///< cycle from which on the interrupt is high
  std::uint64_t counted = 0;          ///< register CYCLES
  std::vector<std::uint64_t> called;  ///< register HOST_CALL at each command for the host
};

/// Drives the Verilated core (rtl/core/systole_core.sv).
class CoreRtl {
 public:
  virtual ~CoreRtl() = default;
  /// Starts the program in cycle 0, and says at once that a command for the host is done. Local
  /// memories hold what the program before left, at first anything. `memory` is read and written.
  /// `expected`: for the waveform, or null. Throws std::invalid_argument if the core stops at a
  /// command, std::runtime_error on a breach of the protocol of AXI4, or if the RTL hangs.
  virtual CoreRun run(const CoreCase& test, const CoreMemory& ports,
                      std::vector<std::uint8_t>& memory, const CoreRun* expected) = 0;
  [[nodiscard]] virtual const CoreSize& size() const = 0;
  [[nodiscard]] virtual std::uint64_t cycles() const = 0;  ///< of the last run
  [[nodiscard]] virtual bool error() const = 0;   ///< a response of the last run was no OKAY
  [[nodiscard]] virtual bool failed() const = 0;  ///< an assertion has fired
  /// The last program has stopped and is not over: the core needs a reset.
  [[nodiscard]] virtual bool busy() const = 0;
};

/// In a waveform the model's outputs are, for each unit, the cycles of dispatch and start of the
/// command that started last.
inline constexpr std::size_t kCoreViewWords = 2 * hw::kStations;
/// Of what `options.own` names "core", or of `size`, one of kCoreSizes.
[[nodiscard]] std::unique_ptr<CoreRtl> make_core(const RtlOptions& options = {},
                                                 const CoreSize& size = kTinyCore);

/// What the contracts of all parts say together. They depend on each other: a load on the matmul
/// whose operands it overwrites, that matmul on the banks that other loads write. Each depends on
/// earlier cycles alone, so they are computed again and again, until nothing changes any more.
[[nodiscard]] CoreRun model_core(const CoreSize& size, const CoreCase& test,
                                 const std::function<CoreMemory()>& make_ports);

/// What a program leaves, its commands one after the other.
void execute(const hw::Program& program, CoreState& state);

/// Runs the case and compares everything but the local memories, which a store has to show; an
/// operation is a command. `make_ports` is called for each side and pass, and must give the same
/// memories. `state`: before and afterwards. Returns what should happen.
CoreRun check_core(CoreRtl& core, const CoreCase& test,
                   const std::function<CoreMemory()>& make_ports, CoreState& state,
                   RtlCounts& counts);

}  // namespace systole::testbench
