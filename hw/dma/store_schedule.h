#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "hw/dma/read_dma.h"
#include "hw/dma/write_dma.h"
#include "hw/postop/postop.h"

/// The cycle contract of a unit that brings rows of sums through the post-op pipeline to memory
/// or into the scratchpad, in gates: rtl/store/systole_store_unit.sv meets it. Its chains have up
/// to kStoreTensors tensor operands, a stage that knows rows (softmax, LayerNorm,
/// that of parts of rows), if at all, at their end, and side outputs of a last stage that does not.
namespace systole::hw {

/// Tensor operands that a unit has buffers for.
inline constexpr std::size_t kStoreTensors = 2;

/// What a unit is built for.
struct StoreParams {
  std::uint64_t lanes;  ///< of the pipeline, as many as sums in a row of the accumulator
  WriteParams port;     ///< its beats are as long as a word of the scratchpad
  ReadParams operands;  ///< the port for tensor operands
};

/// A store, or a move, that the unit takes in cycle `started`. From `dispatched` on it is in the
/// station, from `readable` on its parameters and tensor operands may be read: DispatchTimes.
struct StoreCommand {
  std::uint64_t started = 0, dispatched = 0, readable = 0;
  bool move = false;
  bool whole = false;  ///< it writes where its operands are: all of them come first
  std::uint64_t m = 1, n = 1;
  std::uint64_t c = 0, c_pitch = 0;    ///< sums of the accumulator
  std::uint64_t to = 0, to_pitch = 0;  ///< bytes of memory or of the scratchpad
  std::uint64_t parameters = 0;        ///< byte of the scratchpad
  std::size_t chain = 0;               ///< its number
  /// Of its chain's tensor operands, in the order of their stages.
  struct Tensor {
    std::uint64_t address = 0, pitch = 0;
  };
  std::array<Tensor, kStoreTensors> tensors;
};

struct StoreTimes {
  std::uint64_t free = 0;       ///< from this cycle on the unit can take the next command
  std::uint64_t released = 0;   ///< all sums have been read
  std::uint64_t completed = 0;  ///< all results are in their places
};

/// What is around a unit.
struct StoreSurroundings {
  /// Whether the scratchpad serves an access in a cycle. In each, writes are asked for first.
  /// `ahead`: the command has not started, so the access goes after those of all others.
  std::function<bool(std::uint64_t cycle, std::uint64_t address, bool ahead)> read_parameters;
  std::function<bool(std::uint64_t cycle, std::uint64_t address, std::uint64_t bytes)> write;
  /// Whether there is no port in a cycle to read the vector from sum `at` of the accumulator on.
  std::function<bool(std::uint64_t cycle, std::uint64_t at)> no_port;
  WriteMemory memory;
  ReadMemory operands;
};

struct StoreSchedule {
  std::vector<StoreTimes> times;  ///< by command
  std::vector<WriteRequest> requests;
  std::vector<ReadRequest> operands;
};

/// Runs commands whose starts are known: a command that would start before the `free` of the one
/// before it starts then.
///
/// - A command is fetched for ahead of its start, from when on it is the next one in the station.
/// In
///   the cycle after the one in which that begins come
///   - the micro-code, nine words a stage, one a cycle, unless the stages hold it: it begins when
///     the command before has handed on its last vector;
///   - at the same time the parameters, stage by stage, word by word, for each vector of `lanes`
///     columns 4 bytes a column in words of the scratchpad: when they may be read, and those of
///     the command before are there. They have a second buffer.
///   The tile of a tensor operand comes from the cycle itself on, when it may be read and the
///   command before has no tensor operand or has handed on its last vector; that of a second one
///   when the port is free.
/// - When it has started and micro-code and parameters are there, a vector of sums is read a cycle,
///   in the order of RowOrder, unless the accumulator has no port or the pipeline stands still,
///   from the cycle on after the one with which its operands are there, and all that is before them
///   in the order of the requests. It enters the pipeline in the next cycle: StageFlow.
/// - A vector of results leaves in pieces of up to a beat, one a cycle, when the port or the
///   scratchpad takes them; meanwhile the pipeline stands still.
/// - The next command can start when the last piece has left and the port has issued all requests,
///   after a side output four cycles later: the statistics of a row are in their place then, and
///   the command is not complete before.
[[nodiscard]] StoreSchedule store_times(const std::vector<Chain>& chains,
                                        const std::vector<StoreCommand>& commands,
                                        const StoreParams& params, const StoreSurroundings& around);

}  // namespace systole::hw
