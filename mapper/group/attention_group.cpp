#include "mapper/group/attention_group.h"

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "hw/number/softmax_mode.h"
#include "hw/program/attention_check.h"
#include "mapper/group/fusion_rules.h"
#include "mapper/group/mask_table.h"
#include "mapper/group/memory_use.h"
#include "model/mask/global_columns.h"

namespace systole::mapper {
namespace {

using model::Graph;
using model::Node;
using model::View;

/// One head's nodes.
struct Head {
  View query, key, value, out;
  const Node* mask = nullptr;
  hw::Chain softmax, chain;  ///< stages of the scores, then it; after the SpMM
  std::size_t nodes = 0;
};

/// A matmul's result, to which stages may be added.
Group sums_of(const Node& matmul, std::size_t index, model::TensorId statistics) {
  Group sums;
  sums.nodes = {index};
  sums.anchor = MatmulAnchor{};
  sums.statistics = statistics;
  sums.out = matmul.out;
  return sums;
}

/// Walks the nodes of a head: what is asked for must come next, read what came last, and be the
/// only one to do so.
class Walk {
 public:
  Walk(const Graph& graph, std::size_t first, const hw::Machine& machine,
       const std::vector<unsigned>& readers)
      : graph_(graph), machine_(machine), readers_(readers), next_(first), first_(first) {}

  const Node* matmul(bool b_transposed) {
    const Node* const node = peek();
    const bool fits = node != nullptr && node->product() != nullptr && !node->window &&
                      node->product()->b_transposed == b_transposed &&
                      (next_ == first_ || follows(*node, 1));
    return fits ? take(node) : nullptr;
  }
  const Node* stage(hw::StageOp op, hw::Operand operand) {
    const Node* const node = peek();
    const bool fits = node != nullptr && node->is(op) && node->stage()->stage.operand == operand &&
                      node->stage()->stage.side == hw::Reduction::kNone && follows(*node, 1);
    return fits ? take(node) : nullptr;
  }
  /// Adds all stages that come next and that the engines' pipelines can run, up to `most` of them
  /// in the chain. Those after may read the matmul's sums again.
  void stages(Group& group, std::size_t most, bool row_sums) {
    for (const Node* node = peek(); node != nullptr; node = peek()) {
      const bool sums = group.chain.stages.empty();
      if (node->stage() == nullptr || group.chain.stages.size() >= most ||
          !follows(*node, sums ? readers_[last_.tensor] : 1) || !joins(group, *node)) {
        return;
      }
      Group longer = group;
      append(longer, next_, graph_);
      if (!hw::runs_on_engines(longer.chain, row_sums)) return;
      group = std::move(longer);
      take(node);
    }
  }
  /// Whether all that reads the sums of the group's matmul, or the result of a stage but the last,
  /// is in the group.
  [[nodiscard]] bool keeps_sums(const Group& group) const {
    const auto& stages = group.chain.stages;
    const auto saved = std::count_if(stages.begin(), stages.end(), [](const hw::Stage& stage) {
      return stage.operand == hw::Operand::kSaved;
    });
    return readers_[graph_.nodes[group.nodes.front()].out.tensor] ==
           1 + static_cast<unsigned>(saved);
  }
  /// Gives back what came after node `index`.
  void back_to(std::size_t index) {
    next_ = index + 1;
    last_ = graph_.nodes[index].out;
  }
  [[nodiscard]] std::size_t last() const { return next_ - 1; }
  [[nodiscard]] std::size_t taken() const { return next_ - first_; }

 private:
  [[nodiscard]] const Node* peek() const {
    return next_ < graph_.nodes.size() ? &graph_.nodes[next_] : nullptr;
  }
  /// The division belongs to the deferred softmax, whatever else the mapper may fuse.
  [[nodiscard]] bool joins(const Group& group, const Node& node) const {
    const bool divides = node.stage()->stage.op == hw::StageOp::kDivideRowSum;
    return divides ? node.statistics() == group.statistics
                   : obstacle(group, node, graph_, machine_).empty();
  }
  [[nodiscard]] bool follows(const Node& node, unsigned readers) const {
    const model::Tensor& between = graph_.tensors[last_.tensor];
    return !node.window && same(node.in, last_) && readers_[last_.tensor] == readers &&
           between.kind == model::Tensor::Kind::kActivation && between.data.empty();
  }
  const Node* take(const Node* node) {
    last_ = node->out;
    ++next_;
    return node;
  }

  const Graph& graph_;
  const hw::Machine& machine_;
  const std::vector<unsigned>& readers_;
  std::size_t next_;
  const std::size_t first_;
  View last_;
};

/// Takes back stages after the last that gives bytes. Empty if none does.
void cut_after_bytes(const Graph& graph, Walk& walk, Group& group) {
  while (!group.chain.stages.empty() &&
         graph.tensors[graph.nodes[group.nodes.back()].out.tensor].type != hw::DType::kS8) {
    group.nodes.pop_back();
    group.chain.stages.pop_back();
  }
  walk.back_to(group.nodes.back());
}

/// Whether a node but those of first .. last - 1 uses these row sums, which the engines keep for
/// themselves.
bool sums_leave(const Graph& graph, std::size_t first, std::size_t last, model::TensorId sums) {
  for (std::size_t i = 0; sums != model::kNoTensor && i < graph.nodes.size(); ++i) {
    if ((i < first || i >= last) && graph.nodes[i].statistics() == sums) return true;
  }
  return false;
}

/// `most`: stages after the SpMM.
std::optional<Head> match_head(const Graph& graph, std::size_t first, const hw::Machine& machine,
                               const std::vector<unsigned>& readers, std::size_t most) {
  Walk walk(graph, first, machine, readers);
  const Node* const sddmm = walk.matmul(true);
  if (sddmm == nullptr) return std::nullopt;
  Group scores = sums_of(*sddmm, walk.last(), model::kNoTensor);
  walk.stages(scores, machine.postop.max_stages - 1, false);
  const Node* mask = walk.stage(hw::StageOp::kAdd, hw::Operand::kTensor);
  if (mask == nullptr) mask = walk.stage(hw::StageOp::kMask, hw::Operand::kTensor);
  const Node* const softmax = walk.stage(hw::StageOp::kSoftmax, hw::Operand::kImmediate);
  // The engines know masks of fixed cells alone.
  if (softmax == nullptr || softmax->valid_cols() != 0 || !walk.keeps_sums(scores))
    return std::nullopt;
  const Node* const spmm = walk.matmul(false);
  if (spmm == nullptr) return std::nullopt;
  Group sums = sums_of(*spmm, walk.last(), softmax->statistics());
  walk.stages(sums, most, true);
  cut_after_bytes(graph, walk, sums);
  if (sums.chain.stages.empty() || !walk.keeps_sums(sums) ||
      sums_leave(graph, first, walk.last() + 1, softmax->statistics())) {
    return std::nullopt;
  }
  scores.chain.stages.push_back(softmax->stage()->stage);
  scores.chain.out = hw::DType::kU8;
  return Head{
      sddmm->in, sddmm->product()->b,     spmm->product()->b,    graph.nodes[sums.nodes.back()].out,
      mask,      std::move(scores.chain), std::move(sums.chain), walk.taken()};
}

/// The view of the next head, beside that of the head before.
bool beside(const View& front, const View& next) {
  return front.tensor == next.tensor && front.row == next.row && front.rows == next.rows &&
         front.cols == next.cols && front.col + front.cols == next.col;
}

bool continues(const Head& front, const Head& next) {
  return beside(front.query, next.query) && beside(front.key, next.key) &&
         beside(front.value, next.value) && beside(front.out, next.out) &&
         front.softmax == next.softmax && front.chain == next.chain;
}

bool engines_can(const Graph& graph, const Head& head) {
  constexpr std::int64_t kMaxCodeBits = 8;
  // A cache has another number of keys in every step.
  const auto is_fixed_s8 = [&](const View& view) {
    const model::Tensor& tensor = graph.tensors[view.tensor];
    return tensor.type == hw::DType::kS8 && tensor.kind != model::Tensor::Kind::kState;
  };
  const hw::Stage& softmax = head.softmax.stages.back();
  return softmax.imm[0] == static_cast<std::int64_t>(hw::SoftmaxMode::kDeferred) &&
         softmax.imm[6] <= kMaxCodeBits && is_fixed_s8(head.query) && is_fixed_s8(head.key) &&
         is_fixed_s8(head.value) && is_fixed_s8(head.out);
}

/// Whether a node of first .. last - 1 writes any of the views.
bool written_between(const Graph& graph, std::size_t first, std::size_t last,
                     const std::vector<View>& views) {
  for (std::size_t i = first; i < last; ++i) {
    if (meeting(views, memory_use(graph, graph.nodes[i]).writes) != nullptr) return true;
  }
  return false;
}

/// The layer that decodes `operand`, all heads of `group`, for them alone. It runs with the heads,
/// the first node of which is number `first`, so nothing may write its operand until then.
std::optional<HeadMixLayer> decoder_of(const Graph& graph, const View& operand,
                                       const AttentionGroup& group, std::size_t first,
                                       const std::vector<unsigned>& readers) {
  const model::Tensor& tensor = graph.tensors[operand.tensor];
  if (readers[operand.tensor] != group.heads.size() ||
      tensor.kind != model::Tensor::Kind::kActivation || !tensor.data.empty()) {
    return std::nullopt;
  }
  const auto writes = [&](const Node& node) { return node.out.tensor == operand.tensor; };
  const auto writer = std::find_if(graph.nodes.begin(), graph.nodes.end(), writes);
  const auto last = static_cast<std::size_t>(writer - graph.nodes.begin());
  if (last + 1 < HeadMixLayer::kNodes || last >= first || !same(writer->out, operand)) {
    return std::nullopt;
  }
  const auto dim = static_cast<std::uint32_t>(group.dim);
  auto layer = match_head_mix_layer(graph, last + 1 - HeadMixLayer::kNodes, dim, readers);
  const bool changes =
      layer && written_between(graph, last + 1, first + group.nodes, {layer->in, operand});
  return changes ? std::nullopt : std::move(layer);
}

}  // namespace

std::optional<AttentionGroup> match_attention(const Graph& graph, std::size_t first,
                                              const hw::Machine& machine,
                                              const std::vector<unsigned>& readers) {
  if (machine.attention.lines == 0) return std::nullopt;
  std::vector<Head> heads;
  AttentionGroup group;
  std::size_t most = machine.postop.max_stages;
  while (const auto head = match_head(graph, first + group.nodes, machine, readers, most)) {
    if (!engines_can(graph, *head) || (!heads.empty() && !continues(heads.back(), *head))) break;
    const auto mask = kept_cells(graph, {head->mask, head->softmax, head->query, head->key});
    if (!mask) break;
    group.heads.push_back(
        model::split_by_cycles(mask->head(0, 0), head->query.cols, machine.attention));
    heads.push_back(*head);
    group.nodes += head->nodes;
    most = head->chain.stages.size();
  }
  if (heads.empty()) return std::nullopt;
  const auto widened = [&](View view) {
    view.cols *= static_cast<std::uint32_t>(heads.size());
    return view;
  };
  const Head& front = heads.front();
  group.query = widened(front.query);
  group.key = widened(front.key);
  group.value = widened(front.value);
  group.out = widened(front.out);
  group.dim = front.query.cols;
  group.value_dim = front.value.cols;
  group.softmax = front.softmax;
  group.chain = front.chain;
  // The engines write a row of the result while they read others of the operands.
  if (meeting({group.query, group.key, group.value}, {group.out}) != nullptr) return std::nullopt;
  return group;
}

std::optional<AttentionGroup> with_decoders(const Graph& graph, const AttentionGroup& group,
                                            std::size_t first, const hw::Machine& machine,
                                            const std::vector<unsigned>& readers) {
  const std::size_t decoded = group.heads.size() * group.dim;
  if (std::min(machine.attention.query_kib, machine.attention.key_kib) * hw::kKib < decoded) {
    return std::nullopt;
  }
  auto query = decoder_of(graph, group.query, group, first, readers);
  auto key = decoder_of(graph, group.key, group, first, readers);
  if (!query || !key) return std::nullopt;
  AttentionGroup result = group;
  result.query = query->in;
  result.key = key->in;
  result.decoders = {std::move(*query), std::move(*key)};
  return result;
}

}  // namespace systole::mapper
