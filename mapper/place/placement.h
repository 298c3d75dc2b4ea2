#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "base/round.h"
#include "hw/machine/machine.h"
#include "hw/number/int4.h"
#include "mapper/group/group.h"
#include "mapper/place/pipeline.h"
#include "model/graph/graph.h"

namespace systole::mapper {

/// Where a tensor lives.
struct Location {
  enum class Place : std::uint8_t {
    kNowhere,     ///< fused away, or a weight, which is in DRAM tile by tile
    kDram,        ///< `address` in bytes
    kScratchpad,  ///< `address` in bytes
    kStatistics,  ///< `address` in words
  };
  Place place = Place::kNowhere;
  std::uint64_t address = 0;
  std::uint32_t pitch = 0;  ///< bytes between rows
  bool int4 = false;        ///< int8 that are stored as int4, in pairs along the rows
  /// Columns of a section: sections follow each other, each with all rows; 0: rows are whole.
  std::uint32_t section = 0;
  std::uint64_t section_bytes = 0;  ///< from one to the next: of all rows
  /// Row tiles that share `slots` places in turn with others, numbered from `first` in steps;
  /// without slots all rows have a place.
  struct Ring {
    std::uint32_t rows = 0, slots = 0, first = 0, step = 1;
    [[nodiscard]] bool operator==(const Ring& b) const {
      return std::tie(rows, slots, first, step) == std::tie(b.rows, b.slots, b.first, b.step);
    }
  } ring;
  [[nodiscard]] bool operator==(const Location& b) const {
    return std::tie(place, address, pitch, int4, section, ring) ==
           std::tie(b.place, b.address, b.pitch, b.int4, b.section, b.ring);
  }

  /// Where a row begins, `row_size` after the one before it: bytes, or words of row statistics.
  [[nodiscard]] std::uint64_t at_row(std::uint64_t row, std::uint64_t row_size) const {
    if (ring.slots == 0) return address + row * row_size;
    const std::uint64_t slot = (ring.first + row / ring.rows * ring.step) % ring.slots;
    return address + (slot * ring.rows + row % ring.rows) * row_size;
  }
  /// Where a column of elements of that size begins, after the begin of its row.
  [[nodiscard]] std::uint64_t at_col(std::uint64_t col, std::size_t element) const {
    if (section != 0) return col / section * section_bytes + col % section * element;
    return int4 ? hw::int4_pairs(col) : col * element;
  }
};

/// Whether some mapping has these weights reside in groups.
[[nodiscard]] inline bool may_pack(const model::Tensor& weights, const hw::Machine& machine) {
  return machine.dma.expander_lanes != 0 && weights.grouped();
}
/// Whether weights reside in groups, and the load unit expands them: whole groups of them on a
/// machine that can. A loop unroller reads eight bits.
[[nodiscard]] bool is_packed(const model::Graph& graph, const model::View& weights,
                             const hw::Machine& machine);

/// Whether the array multiplies by these weights as int4 (hw/array/array.h), and they reside in
/// pairs (hw/number/int4.h). Gemmini's library knows int8 alone.
[[nodiscard]] inline bool is_int4(const model::Graph& graph, const model::View& weights,
                                  const hw::Machine& machine) {
  const model::Tensor& tensor = graph.tensors[weights.tensor];
  return machine.array.split != hw::ArraySplit::kNone && tensor.int4 &&
         tensor.kind == model::Tensor::Kind::kConstant &&
         machine.mapper.strategy != hw::MappingStrategy::kGemmini;
}

/// Whether some mapping has a tensor that is no weight reside as pairs of int4.
[[nodiscard]] inline bool may_be_int4(const model::Tensor& tensor, const hw::Machine& machine) {
  return machine.array.split == hw::ArraySplit::kBoth && tensor.int4 &&
         tensor.kind != model::Tensor::Kind::kConstant &&
         machine.mapper.strategy != hw::MappingStrategy::kGemmini;
}

/// By tensor, whether it resides as pairs of int4 (hw/number/int4.h): tensors of int4 that products
/// by int4 weights alone read, as A, and whose pairs no tile of them or of a window parts.
[[nodiscard]] std::vector<bool> int4_tensors(const model::Graph& graph,
                                             const std::vector<Group>& groups,
                                             const hw::Machine& machine);

/// A range of the scratchpad.
struct Span {
  std::uint64_t begin = 0, end = 0;
};

/// What a group may use of the memories for its tiles.
struct Share {
  std::uint64_t stream_begin = 0, stream_end = 0;  ///< bytes of the scratchpad
  /// Sums in each half of the accumulator.
  std::uint64_t sums_begin = 0, sums_end = 0;
  bool in_turns = false;       ///< with the tiles of other groups
  std::uint32_t row_tile = 0;  ///< rows of every tile; 0: free
  /// Rows of a tile that leave at a time, in strips (mapper/place/pipeline.h); 0: all.
  std::uint32_t strip_rows = 0;
};

/// Weights that reside in the scratchpad, whole, and come in before their group runs.
struct AheadWeights {
  std::size_t group = 0;  ///< that multiplies by them
  model::TensorId tensor = model::kNoTensor;
  bool int4 = false;
  bool transposed = false;  ///< stored n x k
};
/// Those that come in between the tiles of a pipeline of so many groups.
struct Ahead {
  std::size_t groups = 0;
  std::vector<AheadWeights> weights;
};

struct Placement {
  std::vector<Location> tensors;  ///< by TensorId
  /// By the first group of a pipeline: weights that come in between its tiles.
  std::map<std::size_t, Ahead> ahead;
  std::uint64_t dram_end = 0;  ///< first free byte after them
  std::vector<Share> shares;   ///< by group: above the tensors that are alive then
};

/// Rows in DRAM begin at multiples of this, so that they split into few requests.
inline constexpr std::uint32_t kDramRowAlignment = 64;

/// Bytes between the rows of an operand in the scratchpad, of `bytes` each, on an array that reads
/// `word` of them at once. An access may begin at any byte (rtl/core/systole_scratchpad.sv), so
/// that rows narrower than the array need no padding to its size.
[[nodiscard]] inline std::uint64_t operand_pitch(std::uint64_t bytes, std::uint32_t word) {
  constexpr std::uint32_t kAlignment = 16;
  return round_up(bytes, std::min(word, kAlignment));
}

/// Bytes of the right-hand side of a product that resides as a whole.
[[nodiscard]] inline std::uint64_t operand_b_bytes(const Group& group, const hw::Machine& machine) {
  return group.matmul()->b_transposed ? group.n() * operand_pitch(group.k(), machine.array.rows)
                                      : group.k() * operand_pitch(group.n(), machine.array.cols);
}

/// What tensors may have of the scratchpad: the rest is for tiles that stream.
struct Residence {
  std::uint32_t eighths = 4;
  /// Rings at the end of that: what is written and read row tile by row tile is less often in a
  /// bank with what is read as a whole.
  bool rings_apart = false;
  /// What stays begins in banks of its own as far as there is room, and what streams in the next
  /// one: loads and results do not meet there.
  bool by_bank = false;
  /// At either end of the scratchpad, rings at the end, so that what an operator reads and writes
  /// at the same time is less often in the same bank.
  bool two_sides = false;
  /// Eighths that tensors and weights may have together: weights of what follows attention come in
  /// while its post-op work leaves the memory idle. 0: weights do not reside.
  std::uint32_t ahead = 0;
  /// Bursts between rows in DRAM that are a multiple of twice as many. Rows of 256 bytes and
  /// multiples have equal columns in one bank group of a channel (hw/memory/dram_mapping.h), where
  /// bursts follow each other at tCCD_L. An odd number of bursts goes round all of them, twice an
  /// odd number round half of them, and opens fewer rows.
  std::uint32_t row_gap = 0;
};

/// Whether gaps between rows in DRAM are weighed. Programs that share tensors have none, so that
/// their rows are equally far apart.
enum class RowGaps : std::uint8_t { kWeighed, kNone };

/// Values of `Residence::row_gap` to try: none where every burst takes as long wherever it is.
[[nodiscard]] std::vector<std::uint32_t> row_gaps(const hw::Machine& machine, RowGaps gaps);
/// Time that a row gap has to save, as it takes memory.
inline constexpr double kWorthRowGap = 1.003;

/// Decides what stays on chip: tensors that only matmuls read stay in the scratchpad, whole, while
/// they live, in a part of it; with mapper.on_chip = 0 none do.
/// Everything else has a place in DRAM. Tensors whose lives do not meet share addresses. Scores of
/// a pipeline stay in a ring of its row tiles. `pipelines` are those of all groups. Throws
/// InputError when the row statistics do not fit, std::invalid_argument when they are no
/// activation.
[[nodiscard]] Placement place_tensors(const model::Graph& graph, const std::vector<Group>& groups,
                                      const std::vector<Pipeline>& pipelines,
                                      const hw::Machine& machine, Residence residence = {});

}  // namespace systole::mapper
