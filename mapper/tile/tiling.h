#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/round.h"
#include "hw/array/array.h"
#include "hw/machine/machine.h"
#include "mapper/group/group.h"
#include "mapper/place/placement.h"
#include "model/graph/graph.h"

namespace systole::mapper {

/// Tile sizes and order of one group. C tiles are m x c_cols; inside one, matmuls of m x n x k.
struct Tiling {
  std::uint32_t m = 0;
  std::uint32_t c_cols = 0;  ///< columns of a C tile: n, a section, or the row of a row-wise chain
  std::uint32_t n = 0;
  std::uint32_t k = 0;
  bool m_outer = true;   ///< m loop outside the n loop, else inside
  bool k_outer = false;  ///< inside a C tile: k loop outside the n loop, else inside
  bool a_stays = false;  ///< all of A stays in the scratchpad once its tiles have been loaded
  bool b_stays = false;  ///< all of B does
  bool unrolled =
      false;  ///< each m x n x k is a loop of a loop unroller (mapper/emit/loop_emitter.h)
  bool double_buffered = true;  ///< tiles of operands come in while others are multiplied
  bool two_results = true;      ///< a C tile leaves while the next one is computed
  /// Parts of a C tile, n columns each, have places of their own that are taken in turn. Each
  /// leaves once its last k has been multiplied, and those of the next tile follow it.
  bool in_parts = false;
  /// Every sweep through the tiles along k begins with those that the last one ended with, which
  /// may still be on chip.
  bool back_and_forth = false;
  bool far_ahead = false;    ///< of tiles that are used in turn, the next as many may come in
  bool spread = false;       ///< tiles of each operand go round all banks of the scratchpad
  bool banks_apart = false;  ///< no more slots than each operand has in banks of its own
  // What the cost model expects (cycles of the core clock, bytes).
  std::uint64_t cycles = 0;
  std::uint64_t cautious_cycles = 0;  ///< if half as many reads in flight did their work
  std::uint64_t compute_cycles = 0;
  std::uint64_t load_bytes = 0;
  double a_loads = 1, b_loads = 1;  ///< how often all of A and of B are loaded
  std::uint64_t staged = 0;         ///< elements times load stages of A
  double energy = 0;                ///< joules, by mapper/tile/tiling_energy.h
  std::uint64_t tried = 0;          ///< tilings that a search compared
};

/// So many of something, each `times` times: an operand may be loaded in part only.
[[nodiscard]] inline std::uint64_t times_loaded(std::uint64_t count, double times) {
  return static_cast<std::uint64_t>(static_cast<double>(count) * times);
}

/// Whether their commands are the same.
[[nodiscard]] bool same_tiles(const Tiling& a, const Tiling& b);

/// All that the choice of tiles depends on: equal problems have equal answers.
struct TilingProblem {
  std::uint32_t m = 0, n = 0, k = 0;  ///< k 0: no matmul, the chain runs on a loaded tensor
  bool row_wise = false;              ///< a C tile holds whole rows
  bool even_cols = false;             ///< and pairs of columns
  std::uint32_t section = 0;      ///< columns of every C tile, of which n is a multiple; 0: free
  std::uint32_t out_section = 0;  ///< columns of the results' sections in memory; 0: none
  bool a_on_chip = false, b_on_chip = false, out_on_chip = false;
  bool b_is_activation = false;  ///< its rows are apart in memory, not one run per tile
  bool b_transposed = false;     ///< stored n x k
  /// Another than int8: weights in groups, expanded as they are loaded.
  hw::WeightFormat b_format = hw::WeightFormat::kInt8;
  hw::Int4Operands int4;              ///< operands of four bits, multiplied as they are
  bool out_int4 = false;              ///< results are stored as int4, in pairs
  std::uint32_t parameter_words = 0;  ///< per column
  std::uint32_t out_bytes = 0;        ///< per element
  std::uint32_t tensor_bytes = 0;     ///< per element of the tensor operands together
  std::uint64_t postop_interval = 0;  ///< least cycles from row to row of results
  std::uint64_t postop_fill = 0;      ///< cycles from the first read to the first result
  std::uint64_t stream_bytes = 0;     ///< scratchpad left for streaming tiles
  std::uint64_t free_banks = 0;       ///< of the scratchpad, all of which streaming tiles may take
  std::uint64_t before_banks = 0;     ///< bytes of that room before the first of these
  std::uint64_t sums = 0;             ///< room for a C tile in each half of the accumulator
  bool in_turns = false;              ///< no C tile takes both halves: other groups use them, too
  std::uint32_t row_tile = 0;         ///< rows of every C tile but the last; 0: free
  bool by_rows = false;               ///< row tile after row tile: rings hold no others
  std::uint32_t in_bytes = 0;  ///< per element of the tensor that a chain alone is loaded with
  // Stages on the way in of A.
  std::uint32_t a_bytes = 1;           ///< per element of A in memory
  std::uint32_t pre_words = 0;         ///< of parameters, per column of A
  std::uint32_t pre_tensor_bytes = 0;  ///< per element of A: tensor operands
  std::uint32_t pre_stages = 0;
  std::uint64_t pre_fill = 0;        ///< cycles from the first value to its result
  std::uint64_t pre_interval = 0;    ///< least cycles from row to row, 0 without stages
  std::optional<hw::Window> window;  ///< through which A or the loaded tensor is read
  std::uint32_t window_run = 0;      ///< most bytes that it finds one after the other
  std::uint32_t stages = 0;          ///< of the chain
  std::uint64_t postop_passes = 1;   ///< over the sums
  std::uint64_t ahead_bytes = 0;     ///< of later groups' weights that come in between its tiles

  [[nodiscard]] auto key() const {
    return std::make_tuple(
        m, n, k, row_wise, section, out_section, a_on_chip, b_on_chip, out_on_chip, b_is_activation,
        b_transposed, parameter_words, out_bytes, tensor_bytes, postop_interval, postop_fill,
        stream_bytes, free_banks, before_banks, in_bytes, stages, postop_passes, a_bytes, pre_words,
        pre_stages, pre_fill, pre_tensor_bytes, pre_interval, even_cols, sums, in_turns, row_tile,
        by_rows, window, window_run, b_format, int4.a, int4.b, out_int4, ahead_bytes);
  }
  [[nodiscard]] bool b_packed() const { return b_format != hw::WeightFormat::kInt8; }
  /// Columns of A and rows of B on chip, of so many of k.
  [[nodiscard]] std::uint32_t a_cols(std::uint32_t depth) const {
    return hw::stored_bytes(depth, int4.a);
  }
  [[nodiscard]] std::uint32_t b_rows(std::uint32_t depth) const {
    return hw::stored_bytes(depth, int4.b);
  }
  /// Bytes of so many results of a row.
  [[nodiscard]] std::uint64_t result_bytes(std::uint32_t cols) const {
    return hw::stored_bytes<std::uint64_t>(cols, out_int4, out_bytes);
  }
  /// Whether results may leave in parts.
  [[nodiscard]] bool may_leave_in_parts(const Tiling& t) const {
    return t.k_outer && t.n < t.c_cols && !t.two_results && t.double_buffered && !in_turns &&
           !row_wise && section == 0 && (!out_int4 || t.n % hw::kInt4Pair == 0);
  }
  /// How many parts of C tiles the accumulator holds.
  [[nodiscard]] std::uint64_t part_places(const Tiling& t, std::uint32_t array_cols) const {
    return 2 * sums / (t.m * round_up(t.n, array_cols));
  }
  /// Columns that a command sends through the chain, of a C tile as wide as a whole one.
  [[nodiscard]] std::uint32_t result_cols(const Tiling& t) const {
    if (out_section != 0 && t.c_cols > out_section) return out_section;
    return t.in_parts ? t.n : t.c_cols;
  }
};
[[nodiscard]] TilingProblem tiling_problem(const model::Graph& graph, const Group& group,
                                           const Placement& placement, const hw::Machine& machine,
                                           const Share& share);

/// Rows of B of which every tile has whole multiples, but for the last one.
[[nodiscard]] std::uint32_t k_unit(const TilingProblem& problem, const hw::Machine& machine);

/// How many tilings of a group to find: the fewer the faster. The first of them is always the same.
struct Wanted {
  std::size_t best = 12;      ///< by cycles
  std::size_t cautious = 2;   ///< and by cautious_cycles
  std::size_t by_parts = 3;   ///< and by cycles, whose results leave in parts
  std::size_t by_sweeps = 2;  ///< and by cycles, whose sweeps go back and forth and load less
  std::size_t shallow = 3;    ///< and by cycles, less deep than the array and load less
  std::size_t by_banks = 6;   ///< and by cycles, whose tiles have banks of their own
  std::size_t by_width = 4;   ///< and of these, by cycles, whose C tiles or strips differ in width
};
inline constexpr Wanted kBestAlone{1, 0, 0, 0, 0, 0, 0};

/// Chooses tile sizes by the machine's mapper.strategy (mapper/tile/tiling_strategies.h).
class Tiler {
 public:
  /// `wanted` of cost_tilings().
  explicit Tiler(const hw::Machine& machine, Wanted wanted = {})
      : machine_(machine), wanted_(wanted) {}
  /// Throws InputError that names `group` when not even single folds fit.
  [[nodiscard]] const Tiling& choose(const TilingProblem& problem, const std::string& group) {
    return candidates(problem, group).front();
  }
  /// The best ones by the cost model, the best first.
  [[nodiscard]] const std::vector<Tiling>& candidates(const TilingProblem& problem,
                                                      const std::string& group);
  /// The same, and none if not even single folds fit.
  [[nodiscard]] const std::vector<Tiling>& tilings(const TilingProblem& problem);
  /// Frees the tilings of problems that nobody has asked for in the last `steps` calls of this.
  void forget_unused(std::uint64_t steps);

 private:
  struct Known {
    std::vector<Tiling> tilings;
    std::uint64_t asked;  ///< step
  };
  const hw::Machine machine_;
  const Wanted wanted_;
  std::map<decltype(TilingProblem().key()), Known> known_;
  std::uint64_t step_ = 0;
};

/// What the cost model knows about a DMA port on an idle memory. A request takes the larger of two
/// times: its bytes at the rate of the bus or the DRAM, whichever is slower, and its share of the
/// latency that the outstanding requests cover together.
struct DmaRate {
  double bytes_per_cycle;  ///< of the core clock
  double cycles_per_request;
  double cycles_per_row;  ///< of the DRAM that has to be opened, in place of one that is open
};
[[nodiscard]] DmaRate dma_rate(const hw::Machine& machine, std::uint32_t outstanding);

}  // namespace systole::mapper
