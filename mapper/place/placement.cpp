#include "mapper/place/placement.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

#include "base/error.h"
#include "base/round.h"
#include "base/units.h"
#include "hw/number/weight_groups.h"
#include "hw/program/program.h"
#include "mapper/group/memory_use.h"
#include "mapper/place/live_allocator.h"
#include "mapper/place/sharing.h"
#include "mapper/place/sides.h"

namespace systole::mapper {

bool is_packed(const model::Graph& graph, const model::View& weights, const hw::Machine& machine) {
  return may_pack(graph.tensors[weights.tensor], machine) &&
         machine.mapper.strategy != hw::MappingStrategy::kGemmini &&
         weights.row % hw::kGroupWeights == 0 && weights.rows % hw::kGroupWeights == 0;
}

namespace {

using model::Graph;
using model::Tensor;
using model::TensorId;
using model::View;

/// Far beyond any real memory; the size of the machine's DRAM is checked at the end.
constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 50;

struct Life {
  std::size_t first = 0, last = 0;
  bool used = false;
  bool is_weight = false;  ///< a constant that is a matmul's B
  bool only_matmul_reads = true;
  bool is_statistics = false;
  bool is_picture = false;  ///< a window reads it
};

/// By group, the last one that may have begun before it has ended.
std::vector<std::size_t> last_beside(const std::vector<Pipeline>& pipelines) {
  std::vector<std::size_t> last;
  for (const Pipeline& pipeline : pipelines) {
    for (std::size_t step = pipeline.first; step < pipeline.end(); ++step)
      last.push_back(pipeline.last_beside(step));
  }
  return last;
}

class Lives {
 public:
  Lives(const Graph& graph, const std::vector<Group>& groups,
        const std::vector<Pipeline>& pipelines)
      : lives_(graph.tensors.size()) {
    std::size_t writer = 0;  // of what an encoder group gives
    for (std::size_t step = 0; step < groups.size(); ++step) {
      const Group& group = groups[step];
      if (group.encoder()) {
        // An encoded row leaves by a store, never for the scratchpad.
        touch(group.out, writer).only_matmul_reads = false;
        continue;
      }
      writer = step;
      if (group.attention()) {
        for (const View& view : {group.attention()->query, group.attention()->key,
                                 group.attention()->value, group.attention()->out}) {
          touch(view, step);
        }
        attention_.push_back(step);
        continue;
      }
      // Windows gather from memory alone.
      touch(group.a, step).only_matmul_reads &= group.matmul() != nullptr && !group.window;
      if (group.window) touch(group.a, step).is_picture = true;
      if (group.matmul() != nullptr) {
        touch(group.matmul()->b, step).is_weight =
            graph.tensors[group.matmul()->b.tensor].kind == Tensor::Kind::kConstant;
      }
      touch_operands(group, step);
      if (group.pre) {
        // Stages are on the way in from DRAM alone.
        touch(group.a, step).only_matmul_reads = false;
        touch_operands(*group.pre, step);
      }
      // The host reads and writes DRAM.
      touch(group.out, step).only_matmul_reads &= !group.host();
    }
    // Groups that run in turns with the last reader may write before it has ended.
    const std::vector<std::size_t> last = last_beside(pipelines);
    for (Life& life : lives_) {
      if (life.used) life.last = last.at(life.last);
    }
    for (std::size_t id = 0; id < lives_.size(); ++id) {
      const Tensor& tensor = graph.tensors[id];
      const bool permanent = tensor.kind != Tensor::Kind::kActivation || !tensor.data.empty();
      if (permanent) {
        lives_[id].first = 0;
        lives_[id].last = groups.size();
        lives_[id].only_matmul_reads = false;
      }
    }
  }

  /// The attention engines have the whole scratchpad for themselves.
  [[nodiscard]] bool meets_attention(const Life& life) const {
    return std::any_of(attention_.begin(), attention_.end(),
                       [&](std::size_t step) { return life.first <= step && step <= life.last; });
  }

  [[nodiscard]] bool has_attention() const { return !attention_.empty(); }

  [[nodiscard]] const Life& operator[](std::size_t id) const { return lives_[id]; }

 private:
  Life& touch(const View& view, std::size_t step) {
    Life& life = lives_[view.tensor];
    if (!life.used) life.first = step;
    life.used = true;
    life.last = std::max(life.last, step);
    return life;
  }

  void touch_operands(const BoundChain& chain, std::size_t step) {
    for (const View& view : chain.tensors) touch(view, step).only_matmul_reads = false;
    if (chain.statistics != model::kNoTensor) {
      touch({chain.statistics, 0, 0, 0, 0}, step).is_statistics = true;
    }
  }

  std::vector<Life> lives_;
  std::vector<std::size_t> attention_;  ///< steps
};

/// Tensors that pass from scores to context of a pipeline, tile by tile.
class Rings {
 public:
  Rings(const std::vector<Group>& groups, const std::vector<Pipeline>& pipelines,
        std::size_t tensors, std::uint32_t word)
      : rings_(tensors), passing_(tensors) {
    for (const Pipeline& pipeline : pipelines) {
      if (pipeline.slots == 0) continue;
      for (const TensorId id : pipeline.passing) {
        passing_[id] = {pipeline.row_tile, pipeline.slots, 0, 1};
      }
      const std::size_t first_head = pipeline.first + pipeline.scores_level();
      const Group& scores = groups[first_head];
      const auto pitch = static_cast<std::uint32_t>(operand_pitch(scores.out.cols, word));
      const std::uint32_t words = hw::statistics_words(scores.chain);
      const auto all = static_cast<std::size_t>(all_.size());
      all_.push_back({&pipeline, pitch, words, 0, 0});
      std::uint32_t first = 0;
      for (std::uint32_t head = 0; head < pipeline.heads; ++head) {
        const Group& group = groups[first_head + 2 * std::size_t{head}];
        for (const TensorId id : {group.out.tensor, group.statistics}) {
          if (id != model::kNoTensor) rings_[id] = {all + 1, first};
        }
        first += pipeline.by_rows
                     ? 1
                     : static_cast<std::uint32_t>(ceil_div(scores.m(), pipeline.row_tile));
      }
    }
  }

  /// Takes the room of all rings, at the end of what there is if `at_end`.
  void place(LiveAllocator& scratchpad, LiveAllocator& statistics, bool at_end) {
    for (Ring& ring : all_) {
      const std::uint64_t rows = std::uint64_t{ring.pipeline->slots} * ring.pipeline->row_tile;
      const std::size_t first = ring.pipeline->first + ring.pipeline->scores_level();
      const std::size_t last = ring.pipeline->end() - 1;
      const std::uint64_t bytes = rows * ring.pitch;
      ring.scores = (at_end ? scratchpad.allocate_high(bytes, first, last)
                            : scratchpad.allocate(bytes, first, last))
                        .value();
      if (ring.words != 0) {
        ring.statistics = statistics.allocate(rows * ring.words, first, last).value();
      }
    }
  }

  /// How the rows of a tensor take turns, if they do, wherever it is.
  [[nodiscard]] Location::Ring passing(TensorId id) const { return passing_[id]; }
  /// Where a tensor of a ring is; nothing for others.
  [[nodiscard]] std::optional<Location> location(TensorId id, bool is_statistics) const {
    const auto& [number, first] = rings_[id];
    if (number == 0) return std::nullopt;
    const Ring& ring = all_[number - 1];
    Location location;
    location.place = is_statistics ? Location::Place::kStatistics : Location::Place::kScratchpad;
    location.address = is_statistics ? ring.statistics : ring.scores;
    location.pitch = is_statistics ? 0 : ring.pitch;
    location.ring = {ring.pipeline->row_tile, ring.pipeline->slots, first,
                     ring.pipeline->by_rows ? ring.pipeline->heads : 1};
    return location;
  }

 private:
  struct Ring {
    const Pipeline* pipeline;
    std::uint32_t pitch, words;
    std::uint64_t scores, statistics;
  };
  struct Member {
    std::size_t number = 0;   ///< 1 + index of its ring; 0: none
    std::uint32_t first = 0;  ///< number of its first tile
  };
  std::vector<Ring> all_;
  std::vector<Member> rings_;            ///< by tensor
  std::vector<Location::Ring> passing_;  ///< by tensor
};

/// Places weights of the groups after `heads`, attention, that may come in while it runs: in the
/// order of their use, until one does not fit. None after the next attention or routing.
void place_ahead(const Graph& graph, const std::vector<Group>& groups, const Pipeline& heads,
                 const std::vector<std::size_t>& last, const std::vector<bool>& may_come,
                 const hw::Machine& machine, LiveAllocator& scratchpad, Placement& result) {
  for (std::size_t step = heads.end(); step < groups.size(); ++step) {
    const MatmulAnchor* const product = groups[step].matmul();
    // Which weights come next is not known before.
    if (groups[step].host() != nullptr && groups[step].host()->op == hw::HostOp::kRoute) return;
    if (product == nullptr) continue;
    if (graph.tensors[product->b.tensor].kind != Tensor::Kind::kConstant) return;
    if (!may_come[product->b.tensor]) continue;
    const Tensor& weights = graph.tensors[product->b.tensor];
    const bool int4 = is_int4(graph, product->b, machine);
    const hw::StoredShape stored =
        hw::stored_shape(weights.rows, weights.cols, product->b_transposed, int4);
    const auto pitch = static_cast<std::uint32_t>(
        operand_pitch(stored.cols, std::max(machine.array.rows, machine.array.cols)));
    const auto at =
        scratchpad.allocate(std::uint64_t{stored.rows} * pitch, heads.first, last[step]);
    if (!at) return;
    result.tensors[product->b.tensor] = {Location::Place::kScratchpad, *at, pitch, false, 0, 0, {}};
    Ahead& ahead = result.ahead[heads.first];
    ahead.groups = heads.levels.size();
    ahead.weights.push_back({step, product->b.tensor, int4, product->b_transposed});
  }
}

/// Bytes between the rows of a tensor in DRAM.
std::uint32_t dram_pitch(std::uint32_t row_bytes, std::uint32_t rows, std::uint32_t row_gap,
                         const hw::Machine& machine) {
  const auto pitch = static_cast<std::uint32_t>(round_up(row_bytes, kDramRowAlignment));
  const std::uint32_t burst = machine.dram.bus_bytes * machine.dram.burst_length;
  const std::uint32_t unit = std::max(burst, kDramRowAlignment);
  const bool repeats = rows > 1 && row_gap != 0 && pitch % (2 * row_gap * unit) == 0;
  return repeats ? pitch + row_gap * unit : pitch;
}

/// By tensor, whether it is the whole of one group's weights, as bytes, and nothing else.
std::vector<bool> whole_weights(const Graph& graph, const std::vector<Group>& groups,
                                const hw::Machine& machine) {
  std::vector<unsigned> reads(graph.tensors.size(), 0);
  std::vector<bool> whole(graph.tensors.size(), false);
  for (const Group& group : groups) {
    for (const View& view : memory_use(graph, group).reads) ++reads[view.tensor];
    if (group.matmul() == nullptr) continue;
    const View& b = group.matmul()->b;
    const Tensor& tensor = graph.tensors[b.tensor];
    whole[b.tensor] = tensor.kind == Tensor::Kind::kConstant && b.rows == tensor.rows &&
                      b.cols == tensor.cols && !b.folded && group.is_tiled() &&
                      hw::bytes_of(tensor.type) == 1 && !is_packed(graph, b, machine);
  }
  for (std::size_t id = 0; id < whole.size(); ++id) whole[id] = whole[id] && reads[id] == 1;
  return whole;
}

}  // namespace

std::vector<std::uint32_t> row_gaps(const hw::Machine& machine, RowGaps gaps) {
  if (gaps == RowGaps::kNone) return {};
  const bool goes_round = machine.dram.channels * machine.dram.bank_groups > 1;
  if (!goes_round || machine.memory.model != hw::MemoryModel::kDram) return {};
  return {1, 2};
}

Placement place_tensors(const Graph& graph, const std::vector<Group>& groups,
                        const std::vector<Pipeline>& pipelines, const hw::Machine& machine,
                        Residence residence) {
  const std::uint32_t word = machine.array.rows;
  const Lives lives(graph, groups, pipelines);
  LiveAllocator dram(0, kUnlimited, 4096);
  const std::uint64_t scratchpad_bytes = machine.scratchpad.kib * hw::kKib;
  const std::uint64_t resident_bytes = scratchpad_bytes * residence.eighths / 8;
  LiveAllocator scratchpad(0, residence.two_sides ? scratchpad_bytes : resident_bytes, word,
                           residence.two_sides ? scratchpad_bytes - resident_bytes : 0);
  const std::uint64_t bank = scratchpad_bytes / machine.scratchpad.banks;
  LiveAllocator statistics(0, machine.postop.row_statistics, 1);
  // Gemmini's library leaves every result in memory.
  const bool keeps_on_chip =
      machine.mapper.on_chip != 0 && machine.mapper.strategy != hw::MappingStrategy::kGemmini;
  Placement result;
  result.tensors.resize(graph.tensors.size());
  const std::vector<bool> int4 = int4_tensors(graph, groups, machine);
  Rings rings(groups, pipelines, graph.tensors.size(), word);
  rings.place(scratchpad, statistics, residence.two_sides || residence.rings_apart);
  const auto may_stay = [&](std::size_t id) {
    const Tensor& tensor = graph.tensors[id];
    const Life& life = lives[id];
    return keeps_on_chip && tensor.kind == Tensor::Kind::kActivation && tensor.data.empty() &&
           life.only_matmul_reads && !lives.meets_attention(life) && hw::bytes_of(tensor.type) == 1;
  };
  std::vector<std::uint32_t> sections(graph.tensors.size(), 0);
  for (const Pipeline& pipeline : pipelines) {
    if (pipeline.section != 0) sections[groups[pipeline.first].out.tensor] = pipeline.section;
  }
  Sides sides(graph, groups, machine);
  for (std::size_t id = 0; residence.two_sides && id < graph.tensors.size(); ++id) {
    if (!lives[id].used || lives[id].is_weight || lives[id].is_statistics) continue;
    if (rings.location(static_cast<TensorId>(id), false)) {
      sides.fix_at_end(static_cast<TensorId>(id));
    } else if (may_stay(id)) {
      sides.add(static_cast<TensorId>(id));
    }
  }
  sides.settle();
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    const Tensor& tensor = graph.tensors[id];
    const Life& life = lives[id];
    Location& location = result.tensors[id];
    if (!life.used || life.is_weight) continue;
    if (const auto ring = rings.location(static_cast<TensorId>(id), life.is_statistics)) {
      location = *ring;
      continue;
    }
    if (life.is_statistics) {
      if (tensor.kind != Tensor::Kind::kActivation || !tensor.data.empty()) {
        throw std::invalid_argument("graph '" + graph.name + "': row statistics '" + tensor.name +
                                    "' are wanted in memory");
      }
      const std::uint64_t words = std::uint64_t{tensor.rows} * tensor.cols;
      const auto row = statistics.allocate(words, life.first, life.last);
      if (!row) {
        throw hw::InputError(
            "postop.row_statistics = " + std::to_string(machine.postop.row_statistics) + ": " +
            tensor.name + " needs " + std::to_string(words) + " words more");
      }
      location = {Location::Place::kStatistics, *row, 0, false, 0, 0, {}};
      continue;
    }
    const std::uint32_t section = sections[id];
    const std::uint32_t cols = section == 0 ? tensor.cols : section, parts = tensor.cols / cols;
    const auto row_bytes = static_cast<std::uint32_t>(
        hw::stored_bytes<std::size_t>(cols, int4[id], hw::bytes_of(tensor.type)));
    const Location::Ring ring = rings.passing(static_cast<TensorId>(id));
    if (may_stay(id)) {
      const std::uint32_t pitch = narrow(operand_pitch(row_bytes, word));
      const std::uint64_t rows = ring.slots == 0 ? std::uint64_t{parts} * tensor.rows
                                                 : std::uint64_t{ring.slots} * ring.rows;
      std::optional<std::uint64_t> at;
      if (sides.at_end(static_cast<TensorId>(id)) || (ring.slots != 0 && residence.rings_apart)) {
        at = scratchpad.allocate_high(pitch * rows, life.first, life.last);
      } else if (residence.by_bank) {
        at = scratchpad.allocate(pitch * rows, life.first, life.last, bank);
      }
      if (!at) at = scratchpad.allocate(pitch * rows, life.first, life.last);
      if (at) {
        location = {Location::Place::kScratchpad,       *at, pitch, int4[id], section,
                    pitch * std::uint64_t{tensor.rows}, ring};
        continue;
      }
    }
    // What a host prepared for its library has no gaps between rows, nor has a picture between
    // its pixels.
    const std::uint32_t pitch =
        machine.unroller.loops != 0 || life.is_picture
            ? row_bytes
            : dram_pitch(row_bytes, tensor.rows, residence.row_gap, machine);
    const std::uint64_t part_bytes = std::uint64_t{pitch} * tensor.rows;
    const auto at = dram.allocate(parts * part_bytes, life.first, life.last);
    location = {Location::Place::kDram, *at, pitch, int4[id], section, part_bytes, {}};
  }
  result.dram_end = round_up(dram.high_water(), 4096);
  if (residence.ahead != 0 && keeps_on_chip && !lives.has_attention()) {
    scratchpad.grow(scratchpad_bytes * residence.ahead / 8);
    const std::vector<std::size_t> last = last_beside(pipelines);
    const std::vector<bool> may_come = whole_weights(graph, groups, machine);
    for (const Pipeline& pipeline : pipelines) {
      if (!pipeline.is_heads_alone()) continue;
      place_ahead(graph, groups, pipeline, last, may_come, machine, scratchpad, result);
    }
  }
  const std::uint64_t aligned = slot_alignment(machine);
  for (const Pipeline& pipeline : pipelines) {
    std::uint64_t begin = 0, end = scratchpad_bytes;
    for (std::size_t step = pipeline.first; step < pipeline.end(); ++step) {
      if (residence.two_sides) {
        begin = std::max(begin, scratchpad.end_at(step));
        end = std::min(end, scratchpad.begin_at(step));
      } else {
        begin = std::max(begin, scratchpad.top_at(step));
      }
    }
    if (residence.by_bank) begin = round_up(begin, bank);
    const std::vector<Share> shares =
        share_memories(groups, pipeline, machine, result.tensors,
                       {round_up(begin, aligned), end / aligned * aligned});
    result.shares.insert(result.shares.end(), shares.begin(), shares.end());
  }
  return result;
}

}  // namespace systole::mapper
