#include "mapper/placement.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "hw/error.h"
#include "hw/program.h"
#include "mapper/live_allocator.h"
#include "mapper/round.h"

namespace systole::mapper {
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
  bool aligned = true;  ///< every view starts at a scratchpad word
  bool is_statistics = false;
};

class Lives {
 public:
  Lives(const Graph& graph, const std::vector<Group>& groups, std::uint32_t word)
      : graph_(graph), word_(word), lives_(graph.tensors.size()) {
    std::size_t writer = 0;  // of what an encoder group gives
    for (std::size_t step = 0; step < groups.size(); ++step) {
      const Group& group = groups[step];
      if (group.encoder) {
        // An encoded row leaves by a store, never for the scratchpad.
        touch(group.out, writer).only_matmul_reads = false;
        continue;
      }
      writer = step;
      if (group.attention) {
        for (const View& view : {group.attention->query, group.attention->key,
                                 group.attention->value, group.attention->out}) {
          touch(view, step);
        }
        attention_.push_back(step);
        continue;
      }
      touch(group.a, step).only_matmul_reads &= group.has_matmul;
      if (group.has_matmul) {
        touch(group.b, step).is_weight =
            graph.tensors[group.b.tensor].kind == Tensor::Kind::kConstant;
      }
      touch_operands(group, step);
      if (group.pre) {
        // Stages are on the way in from DRAM alone.
        touch(group.a, step).only_matmul_reads = false;
        touch_operands(*group.pre, step);
      }
      // The host reads and writes DRAM.
      touch(group.out, step).only_matmul_reads &= !group.host;
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

  [[nodiscard]] const Life& operator[](std::size_t id) const { return lives_[id]; }

 private:
  Life& touch(const View& view, std::size_t step) {
    Life& life = lives_[view.tensor];
    if (!life.used) life.first = step;
    life.used = true;
    life.last = std::max(life.last, step);
    const std::size_t offset = view.col * hw::bytes_of(graph_.tensors[view.tensor].type);
    life.aligned &= offset % word_ == 0;
    return life;
  }

  void touch_operands(const BoundChain& chain, std::size_t step) {
    for (const View& view : chain.tensors) touch(view, step).only_matmul_reads = false;
    if (chain.statistics != model::kNoTensor) {
      touch({chain.statistics, 0, 0, 0, 0}, step).is_statistics = true;
    }
  }

  const Graph& graph_;
  std::uint32_t word_;
  std::vector<Life> lives_;
  std::vector<std::size_t> attention_;  ///< steps
};

}  // namespace

Placement place_tensors(const Graph& graph, const std::vector<Group>& groups,
                        const hw::Machine& machine) {
  const std::uint32_t word = machine.array.rows;
  const Lives lives(graph, groups, word);
  LiveAllocator dram(0, kUnlimited, 4096);
  LiveAllocator scratchpad(0, std::uint64_t{machine.scratchpad.kib} * 1024 / 2, word);
  LiveAllocator statistics(0, machine.postop.row_statistics, 1);
  // Gemmini's library leaves every result in memory.
  const bool keeps_on_chip =
      machine.mapper.on_chip != 0 && machine.mapper.strategy != hw::MappingStrategy::kGemmini;
  Placement result;
  result.tensors.resize(graph.tensors.size());
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    const Tensor& tensor = graph.tensors[id];
    const Life& life = lives[id];
    Location& location = result.tensors[id];
    if (!life.used || life.is_weight) continue;
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
      location = {Location::Place::kStatistics, *row, 0};
      continue;
    }
    const auto row_bytes = static_cast<std::uint32_t>(tensor.cols * hw::bytes_of(tensor.type));
    const bool may_stay = keeps_on_chip && tensor.kind == Tensor::Kind::kActivation &&
                          tensor.data.empty() && life.only_matmul_reads &&
                          !lives.meets_attention(life) && life.aligned &&
                          hw::bytes_of(tensor.type) == 1;
    if (may_stay) {
      const auto pitch = static_cast<std::uint32_t>(round_up(row_bytes, word));
      if (const auto at =
              scratchpad.allocate(std::uint64_t{pitch} * tensor.rows, life.first, life.last)) {
        location = {Location::Place::kScratchpad, *at, pitch};
        continue;
      }
    }
    const auto pitch = static_cast<std::uint32_t>(round_up(row_bytes, kDramRowAlignment));
    const auto at = dram.allocate(std::uint64_t{pitch} * tensor.rows, life.first, life.last);
    location = {Location::Place::kDram, *at, pitch};
  }
  result.dram_end = round_up(dram.high_water(), 4096);
  const std::uint64_t aligned =
      std::max<std::uint64_t>({machine.array.rows, machine.array.cols, hw::kParameterAlignment});
  for (std::size_t step = 0; step < groups.size(); ++step) {
    result.stream_begins.push_back(round_up(scratchpad.end_at(step), aligned));
  }
  return result;
}

}  // namespace systole::mapper
