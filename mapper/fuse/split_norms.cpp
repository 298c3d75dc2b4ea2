#include "mapper/fuse/split_norms.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "hw/postop/postop.h"
#include "mapper/group/fusion_rules.h"

namespace systole::mapper {
namespace {

using model::Graph;
using model::Node;
using model::Tensor;

/// Words of a row's statistics.
constexpr std::uint32_t kWords = 4;

/// The operator that writes the whole input of node `norm`, if its result can leave statistics.
std::optional<std::size_t> producer_of(const Graph& graph, std::size_t norm) {
  const Node& node = graph.nodes[norm];
  for (std::size_t i = norm; i-- > 0;) {
    const Node& candidate = graph.nodes[i];
    if (candidate.out.tensor != node.in.tensor) continue;
    const bool stage = candidate.stage() != nullptr && same(candidate.out, node.in);
    const bool fits = stage && !candidate.window && candidate.statistics() == model::kNoTensor &&
                      candidate.stage()->stage.side == hw::Reduction::kNone &&
                      candidate.stage()->stage.op != hw::StageOp::kTranspose &&
                      hw::statistics_written(candidate.stage()->stage) == 0;
    if (!fits) return std::nullopt;
    return i;
  }
  return std::nullopt;
}

/// Whether nothing but the A operand of one matmul is made of the node's result.
bool feeds_one_matmul(const Graph& graph, const Node& norm, const std::vector<unsigned>& readers) {
  if (readers[norm.out.tensor] != 1) return false;
  for (const Node& node : graph.nodes) {
    if (node.product() != nullptr && same(node.in, norm.out)) return true;
  }
  return false;
}

/// Words of row statistics that the machine has left, by node, as long as they are wanted there.
class StatisticsRoom {
 public:
  StatisticsRoom(const Graph& graph, const hw::Machine& machine)
      : left_(graph.nodes.size(), machine.postop.row_statistics) {
    std::map<model::TensorId, std::pair<std::size_t, std::size_t>> lives;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const model::TensorId id = graph.nodes[i].statistics();
      if (id != model::kNoTensor) lives.try_emplace(id, i, i).first->second.second = i;
    }
    for (const auto& [id, life] : lives) {
      const Tensor& tensor = graph.tensors[id];
      const std::uint64_t words = std::uint64_t{tensor.rows} * tensor.cols;
      for (std::size_t i = life.first; i <= life.second; ++i) left_[i] -= std::min(words, left_[i]);
    }
  }
  /// Whether there are so many words from node `first` to node `last`, which are taken then.
  bool take(std::size_t first, std::size_t last, std::uint64_t words) {
    const auto begin = left_.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = left_.begin() + static_cast<std::ptrdiff_t>(last) + 1;
    if (*std::min_element(begin, end) < words) return false;
    std::for_each(begin, end, [&](std::uint64_t& left) { left -= words; });
    return true;
  }

 private:
  std::vector<std::uint64_t> left_;
};

}  // namespace

Graph split_norms(Graph graph, const hw::Machine& machine) {
  const bool can = machine.mapper.fusion == hw::FusionLevel::kAll &&
                   machine.mapper.strategy != hw::MappingStrategy::kGemmini;
  if (!can) return graph;
  const std::vector<unsigned> readers = count_readers(graph);
  StatisticsRoom room(graph, machine);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    Node& norm = graph.nodes[i];
    if (!norm.is(hw::StageOp::kLayerNorm)) continue;
    const std::optional<std::size_t> producer = producer_of(graph, i);
    if (!producer || !feeds_one_matmul(graph, norm, readers)) continue;
    if (!room.take(*producer, i, std::uint64_t{norm.in.rows} * kWords)) continue;
    Tensor sums;
    sums.name = norm.name + ".sum_squares";
    sums.rows = norm.in.rows;
    sums.cols = kWords;
    sums.type = hw::DType::kS32;
    const auto id = static_cast<model::TensorId>(graph.tensors.size());
    graph.tensors.push_back(std::move(sums));
    Node& before = graph.nodes[*producer];
    before.stage()->stage.side = hw::Reduction::kSumSquares;
    before.stage()->statistics = norm.stage()->statistics = id;
    norm.stage()->stage.op = hw::StageOp::kLayerNormApply;
    norm.stage()->stage.imm[4] = norm.in.cols;
  }
  return graph;
}

}  // namespace systole::mapper
