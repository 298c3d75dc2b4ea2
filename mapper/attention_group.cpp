#include "mapper/attention_group.h"

#include <algorithm>
#include <utility>

#include "hw/softmax_mode.h"
#include "hw/stage_constants.h"
#include "hw/units.h"
#include "mapper/view.h"
#include "model/attention_mask.h"
#include "model/global_columns.h"
#include "model/keep_mask.h"

namespace systole::mapper {
namespace {

using model::Graph;
using model::Node;
using model::View;

/// One head's nodes.
struct Head {
  View query, key, value, out;
  const Node* mask = nullptr;
  hw::Stage softmax, divide, requantise;
  std::size_t nodes = 0;
};

/// Walks the nodes of a head: what is asked for must come next and read what came last.
class Walk {
 public:
  Walk(const Graph& graph, std::size_t first) : graph_(graph), next_(first), first_(first) {}

  const Node* matmul(bool b_transposed) {
    const Node* const node = peek();
    if (node == nullptr || node->kind != Node::Kind::kMatmul ||
        node->b_transposed != b_transposed || (next_ != first_ && !same(node->in, last_))) {
      return nullptr;
    }
    return take(node);
  }
  const Node* stage(hw::StageOp op, hw::Operand operand) {
    const Node* const node = peek();
    if (node == nullptr || node->kind != Node::Kind::kStage || node->stage.op != op ||
        node->stage.operand != operand || !same(node->in, last_)) {
      return nullptr;
    }
    return take(node);
  }
  [[nodiscard]] std::size_t taken() const { return next_ - first_; }

 private:
  [[nodiscard]] const Node* peek() const {
    return next_ < graph_.nodes.size() ? &graph_.nodes[next_] : nullptr;
  }
  const Node* take(const Node* node) {
    last_ = node->out;
    ++next_;
    return node;
  }

  const Graph& graph_;
  std::size_t next_;
  const std::size_t first_;
  View last_;
};

std::optional<Head> match_head(const Graph& graph, std::size_t first) {
  Walk walk(graph, first);
  const Node* const scores = walk.matmul(true);
  if (scores == nullptr) return std::nullopt;
  const Node* const mask = walk.stage(hw::StageOp::kAdd, hw::Operand::kTensor);
  const Node* const softmax = walk.stage(hw::StageOp::kSoftmax, hw::Operand::kImmediate);
  // The engines know masks of fixed cells alone.
  const bool masks_by_position = softmax != nullptr && softmax->kept != 0;
  const Node* const context =
      softmax == nullptr || masks_by_position ? nullptr : walk.matmul(false);
  const Node* const divide =
      context == nullptr ? nullptr : walk.stage(hw::StageOp::kDivideRowSum, hw::Operand::kRow);
  const Node* const requantise =
      divide == nullptr ? nullptr : walk.stage(hw::StageOp::kRequantise, hw::Operand::kImmediate);
  if (requantise == nullptr || divide->statistics != softmax->statistics) return std::nullopt;
  return Head{scores->in,     scores->b,     context->b,        requantise->out, mask,
              softmax->stage, divide->stage, requantise->stage, walk.taken()};
}

/// The view of the next head, beside that of the head in front.
bool beside(const View& front, const View& next) {
  return front.tensor == next.tensor && front.row == next.row && front.rows == next.rows &&
         front.cols == next.cols && front.col + front.cols == next.col;
}

bool continues(const Head& front, const Head& next) {
  return beside(front.query, next.query) && beside(front.key, next.key) &&
         beside(front.value, next.value) && beside(front.out, next.out) &&
         front.softmax == next.softmax && front.requantise == next.requantise;
}

bool engines_can(const Graph& graph, const Head& head) {
  constexpr std::int64_t kMaxCodeBits = 8;
  // A cache has another number of keys in every step.
  const auto is_fixed_s8 = [&](const View& view) {
    const model::Tensor& tensor = graph.tensors[view.tensor];
    return tensor.type == hw::DType::kS8 && tensor.kind != model::Tensor::Kind::kState;
  };
  return head.softmax.imm[0] == static_cast<std::int64_t>(hw::SoftmaxMode::kDeferred) &&
         head.softmax.imm[6] <= kMaxCodeBits && is_fixed_s8(head.query) && is_fixed_s8(head.key) &&
         is_fixed_s8(head.value) && is_fixed_s8(head.out);
}

/// Whether the added table is a mask, whose pruned cells vanish in the softmax.
bool is_mask(const Graph& graph, const Head& head, const hw::Machine& machine) {
  const model::Tensor& table = graph.tensors[head.mask->tensor.tensor];
  const hw::Dyadic factor = model::prune_factor(hw::dyadic_at(head.softmax, 1), head.query.cols,
                                                machine.datapath.multiplier_bits);
  const auto is_code = [](std::uint8_t byte) {
    return byte == 0 || static_cast<std::int8_t>(byte) == model::kPrunedCode;
  };
  return table.kind == model::Tensor::Kind::kConstant && table.type == hw::DType::kS8 &&
         table.data.size() == std::size_t{head.query.rows} * head.key.rows &&
         hw::dyadic_at(head.mask->stage, 0) == factor &&
         std::all_of(table.data.begin(), table.data.end(), is_code);
}

hw::SparseHead sparse_head(const Graph& graph, const Head& head, const hw::Machine& machine) {
  model::AttentionMask mask({1, 1, head.query.rows, head.key.rows});
  for (std::size_t cell = 0; cell < mask.shape().cells(); ++cell) {
    if (head.mask == nullptr || graph.tensors[head.mask->tensor.tensor].data[cell] == 0) {
      mask.keep(cell);
    }
  }
  return model::split_by_cycles(mask.head(0, 0), head.query.cols, machine.attention);
}

/// The layer that decodes `operand`, all heads of `group`, for them alone.
std::optional<MixLayer> decoder_of(const Graph& graph, const View& operand,
                                   const AttentionGroup& group,
                                   const std::vector<unsigned>& readers) {
  const model::Tensor& tensor = graph.tensors[operand.tensor];
  if (readers[operand.tensor] != group.heads.size() ||
      tensor.kind != model::Tensor::Kind::kActivation) {
    return std::nullopt;
  }
  const auto writes = [&](const Node& node) { return node.out.tensor == operand.tensor; };
  const auto writer = std::find_if(graph.nodes.begin(), graph.nodes.end(), writes);
  const auto last = static_cast<std::size_t>(writer - graph.nodes.begin());
  if (last + 1 < MixLayer::kNodes || !same(writer->out, operand)) return std::nullopt;
  const auto dim = static_cast<std::uint32_t>(group.dim);
  return match_mix_layer(graph, last + 1 - MixLayer::kNodes, dim, readers);
}

void take_decoders(const Graph& graph, const hw::Machine& machine,
                   const std::vector<unsigned>& readers, AttentionGroup& group) {
  const std::size_t decoded = group.heads.size() * group.dim;
  if (std::min(machine.attention.query_kib, machine.attention.key_kib) * hw::kKib < decoded) return;
  auto query = decoder_of(graph, group.query, group, readers);
  auto key = decoder_of(graph, group.key, group, readers);
  if (!query || !key) return;
  group.query = query->in;
  group.key = key->in;
  group.decoders = {std::move(*query), std::move(*key)};
}

}  // namespace

std::optional<AttentionGroup> match_attention(const Graph& graph, std::size_t first,
                                              const hw::Machine& machine,
                                              const std::vector<unsigned>& readers) {
  if (machine.attention.lines == 0) return std::nullopt;
  std::vector<Head> heads;
  AttentionGroup group;
  while (const auto head = match_head(graph, first + group.nodes)) {
    if (!engines_can(graph, *head) || (!heads.empty() && !continues(heads.back(), *head))) break;
    if (head->mask != nullptr && !is_mask(graph, *head, machine)) break;
    heads.push_back(*head);
    group.nodes += head->nodes;
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
  group.softmax = {{front.softmax}, hw::DType::kU8};
  group.chain = {{front.divide, front.requantise}, hw::DType::kS8};
  for (const Head& head : heads) group.heads.push_back(sparse_head(graph, head, machine));
  take_decoders(graph, machine, readers, group);
  return group;
}

}  // namespace systole::mapper
