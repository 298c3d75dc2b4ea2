#pragma once

#include <cstdint>
#include <map>
#include <tuple>

#include "hw/machine.h"
#include "mapper/fusion.h"
#include "model/graph.h"

namespace systole::mapper {

/// Tile sizes and order of one group. C tiles are m x c_cols; inside one, matmuls of m x n x k.
struct Tiling {
  std::uint32_t m = 0;
  std::uint32_t c_cols = 0;  ///< columns of a C tile: n, or the whole row for row-wise chains
  std::uint32_t n = 0;
  std::uint32_t k = 0;
  bool m_outer = true;       ///< m loop outside the n loop, else inside
  // What the cost model expects (cycles of the core clock, bytes).
  std::uint64_t cycles = 0;
  std::uint64_t compute_cycles = 0;
  std::uint64_t load_bytes = 0;
};

/// What the tiler knows about where the operands are.
struct Operands {
  bool a_on_chip = false;
  bool b_on_chip = false;
  bool out_on_chip = false;
  std::uint64_t stream_bytes = 0;  ///< scratchpad left for streaming tiles
};

/// Chooses tile sizes from the machine's sizes: all tilings into balanced pieces whose double
/// buffers fit, by the cost max(compute, load, store) + what the first and last tile expose.
class Tiler {
 public:
  explicit Tiler(const hw::Machine& machine) : machine_(machine) {}
  /// Throws InputError when not even single folds fit.
  [[nodiscard]] Tiling choose(const model::Graph& graph, const Group& group,
                              const Operands& operands);

 private:
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, bool, bool, bool, bool, bool,
                         std::uint32_t, std::uint32_t, std::uint32_t, std::uint64_t>;
  const hw::Machine machine_;
  std::map<Key, Tiling> known_;
};

/// What the cost model knows about a DMA port on an idle memory. A request takes the larger of two
/// times: its bytes at the rate of the bus or the DRAM, whichever is slower, and its share of the
/// latency that the outstanding requests cover together.
struct DmaRate {
  double bytes_per_cycle;    ///< of the core clock
  double cycles_per_request;
};
[[nodiscard]] DmaRate dma_rate(const hw::Machine& machine, std::uint32_t outstanding);

}  // namespace systole::mapper
