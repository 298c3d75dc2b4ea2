#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "mapper/mapping.h"
#include "model/graph/graph.h"
#include "tlm/system.h"

namespace systole::testbench {

/// Bytes of an operator's result, one row of one tile, as a command left them in simulated memory.
struct WrittenRow {
  std::uint32_t op = 0;      ///< position of the operator in the program
  std::uint64_t row = 0;     ///< of the operator's result
  std::uint64_t first = 0;   ///< byte of that row that the tile begins at
  model::TensorId tensor{};  ///< that the operator writes, maybe not as a whole
  std::size_t offset = 0;    ///< of these bytes in the tensor, its rows one after another
  const std::vector<std::uint8_t>& bytes;
};

/// Reads what the commands of an inference leave in simulated memory, DRAM or scratchpad, as soon
/// as each has completed. Not later: when the readers of a tile are done, another operator may
/// write over it, even before the last tile of this one is complete.
class ResultRows {
 public:
  /// Of a core of the system.
  ResultRows(const model::Graph& graph, tlm_model::System& system, tlm_model::Core& core)
      : graph_(graph), system_(system), core_(core) {}

  /// The next inference runs by the program of this mapping of the graph, which outlives it.
  void begin(const mapper::Mapping& mapping);

  /// The rows that the command at a position of the program has written, in order; none for one
  /// that leaves no result. May be an action of the system's values.
  void read(std::uint32_t index, const std::function<void(const WrittenRow&)>& visit);

 private:
  const model::Graph& graph_;
  tlm_model::System& system_;
  tlm_model::Core& core_;
  const mapper::Mapping* mapping_ = nullptr;
  std::vector<std::uint64_t> ring_rows_;  ///< by operator whose result is a ring: rows so far
};

}  // namespace systole::testbench
