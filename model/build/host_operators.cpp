#include "model/build/host_operators.h"

#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "hw/function/softmax.h"
#include "hw/postop/stage_constants.h"

namespace systole::model {
namespace {

double value_of(hw::Dyadic factor) {
  return std::ldexp(static_cast<double>(factor.multiplier), -factor.shift);
}

class HostSplit {
 public:
  explicit HostSplit(Graph graph) : graph_(std::move(graph)), readers_(graph_.tensors.size(), 0) {
    for (const Node& node : graph_.nodes) {
      for (const View& view : {node.in, node.second()}) {
        if (view.tensor != kNoTensor) ++readers_[view.tensor];
      }
    }
  }

  Graph run() {
    std::vector<Node> nodes;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      Node& node = graph_.nodes[i];
      if (const auto moved = renamed_.find(node.in.tensor); moved != renamed_.end()) {
        require(same(node.in, moved->second.first), node, "reads a part of a quotient");
        node.in = moved->second.second;
      }
      require(renamed_.count(node.second().tensor) == 0, node,
              "has a quotient as its second operand");
      if (node.stage() == nullptr || !is_host_stage(node.stage()->stage)) {
        nodes.push_back(std::move(node));
      } else if (node.stage()->stage.op == hw::StageOp::kDivideRowSum) {
        renamed_[node.out.tensor] = {node.out, node.in};
      } else {
        nodes.push_back(host_node(node, i));
        if (takes_clamp(node, i)) ++i;
      }
    }
    graph_.nodes = std::move(nodes);
    return std::move(graph_);
  }

 private:
  void require(bool holds, const Node& node, const char* what) const {
    if (holds) return;
    throw std::invalid_argument("graph '" + graph_.name + "': node '" + node.name + "': " + what);
  }

  [[nodiscard]] double scale(const View& view) const { return graph_.tensors[view.tensor].scale; }
  /// 1 where a tensor has no scale.
  [[nodiscard]] double step(const View& view) const { return scale(view) > 0 ? scale(view) : 1.0; }
  [[nodiscard]] hw::DType type(const View& view) const { return graph_.tensors[view.tensor].type; }

  /// Whether the node after an addition is a clamp that alone reads the sum. The host leaves no
  /// statistics of rows.
  [[nodiscard]] bool takes_clamp(const Node& node, std::size_t index) const {
    if (!hw::is_residual(node.stage()->stage) || index + 1 == graph_.nodes.size()) return false;
    const Node& next = graph_.nodes[index + 1];
    return next.is(hw::StageOp::kClamp) && same(next.in, node.out) &&
           next.stage()->stage.side == hw::Reduction::kNone && readers_[node.out.tensor] == 1 &&
           graph_.tensors[node.out.tensor].kind == Tensor::Kind::kActivation;
  }

  Node host_node(const Node& node, std::size_t index) const {
    Node result;
    result.name = node.name;
    result.in = node.in;
    result.out = node.out;
    HostUse& use = result.op.emplace<HostUse>();
    use.valid_cols = node.valid_cols();
    switch (node.stage()->stage.op) {
      case hw::StageOp::kSoftmax:
        softmax(node, use.function);
        break;
      case hw::StageOp::kGelu:
        gelu(node, use.function);
        break;
      case hw::StageOp::kLayerNorm:
        layer_norm(node, use.function);
        break;
      default:
        add(node, index, result);
        break;
    }
    use.function.in = type(result.in);
    use.function.out = type(result.out);
    return result;
  }

  static void softmax(const Node& node, hw::HostFunction& host) {
    const hw::SoftmaxConstants constants = hw::softmax_constants(node.stage()->stage);
    const auto fraction_bits = static_cast<int>(node.stage()->stage.imm[3]);
    // The product with the codes has the scale that the late division would have left.
    const unsigned bits = constants.mode == hw::SoftmaxMode::kDeferred ? hw::kDeferredFractionBits
                                                                       : constants.output_bits;
    host.op = hw::HostOp::kSoftmax;
    host.in_scale = static_cast<float>(std::ldexp(value_of(constants.score), -fraction_bits));
    host.out_scale = std::ldexp(1.0F, -static_cast<int>(bits));
    host.lo = 0;
    host.hi = (std::int32_t{1} << bits) - 1;
  }

  void gelu(const Node& node, hw::HostFunction& host) const {
    require(scale(node.in) > 0 && scale(node.out) > 0, node, "GELU of tensors without scales");
    host.op = hw::HostOp::kGelu;
    host.in_scale = static_cast<float>(scale(node.in));
    host.out_scale = static_cast<float>(scale(node.out));
    host.lo = hw::imm32(node.stage()->stage, 5);
    host.hi = hw::imm32(node.stage()->stage, 6);
  }

  /// The inverse of hw::make_layernorm_constants().
  void layer_norm(const Node& node, hw::HostFunction& host) const {
    const std::size_t cols = node.in.cols;
    const auto fraction_bits = static_cast<int>(node.stage()->stage.imm[0]);
    const auto shift = static_cast<int>(node.stage()->stage.imm[1]);
    const double unit = step(node.out);
    const double gamma =
        unit * std::ldexp(1.0, fraction_bits - shift) / std::sqrt(static_cast<double>(cols));
    const double beta = unit * std::ldexp(1.0, -shift);
    host.op = hw::HostOp::kLayerNorm;
    host.in_scale = static_cast<float>(step(node.in));
    host.out_scale = static_cast<float>(unit);
    host.lo = hw::imm32(node.stage()->stage, 2);
    host.hi = hw::imm32(node.stage()->stage, 3);
    const std::vector<std::int32_t>& parameters = node.stage()->parameters;
    for (std::size_t i = 0; i < cols; ++i) {
      host.gamma.push_back(static_cast<float>(gamma * parameters.at(i)));
      host.beta.push_back(static_cast<float>(beta * parameters.at(cols + i)));
    }
  }

  void add(const Node& node, std::size_t index, Node& result) const {
    hw::HostFunction& host = result.host()->function;
    host.lo = std::numeric_limits<std::int32_t>::min();
    host.hi = std::numeric_limits<std::int32_t>::max();
    if (takes_clamp(node, index)) {
      const Node& clamp = graph_.nodes[index + 1];
      result.out = clamp.out;
      host.lo = hw::imm32(clamp.stage()->stage, 0);
      host.hi = hw::imm32(clamp.stage()->stage, 1);
    }
    // Input and sum are on one grid, the second operand on another.
    const double unit = step(result.out);
    const double factor =
        node.stage()->stage.imm[0] == 0 ? 1.0 : value_of(hw::dyadic_at(node.stage()->stage, 0));
    result.host()->tensor = node.second();
    host.op = hw::HostOp::kAdd;
    host.tensor = node.stage()->stage.tensor;
    host.in_scale = static_cast<float>(unit);
    host.tensor_scale = static_cast<float>(unit * factor);
    host.out_scale = static_cast<float>(unit);
  }

  Graph graph_;
  std::vector<unsigned> readers_;
  std::map<TensorId, std::pair<View, View>> renamed_;  ///< quotients: what they were, what is read
};

}  // namespace

bool is_host_stage(const hw::Stage& stage) {
  return stage.op == hw::StageOp::kSoftmax || stage.op == hw::StageOp::kDivideRowSum ||
         stage.op == hw::StageOp::kGelu || stage.op == hw::StageOp::kLayerNorm ||
         hw::is_residual(stage);
}

Graph with_host_operators(Graph graph) { return HostSplit(std::move(graph)).run(); }

Graph for_machine(Graph graph, const hw::Machine& machine) {
  if (machine.host.operators != hw::HostOperators::kFloat) return graph;
  return with_host_operators(std::move(graph));
}

}  // namespace systole::model
