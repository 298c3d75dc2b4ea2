#include "analysis/lower_bound.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <tuple>

#include "hw/array.h"
#include "hw/host_cycles.h"
#include "hw/units.h"
#include "mapper/tiling.h"

namespace systole::analysis {
namespace {

using model::Graph;
using model::Node;
using model::Tensor;
using model::TensorId;
using model::View;

/// How the nodes of a graph use a tensor.
struct Use {
  bool by_stage = false;  ///< as the tensor operand of a stage
  bool by_matmul = false;
  bool by_pass = false;  ///< as the input of a stage or of the host
};

std::uint64_t bytes_of(const Graph& graph, const View& view) {
  return std::uint64_t{view.rows} * view.cols * hw::bytes_of(graph.tensors[view.tensor].type);
}

class BoundBuilder {
 public:
  BoundBuilder(const Graph& graph, const hw::Machine& machine)
      : graph_(graph),
        machine_(machine),
        operand_bytes_(machine.scratchpad.kib * hw::kKib),
        sums_(machine.accumulator.kib * hw::kKib / 4),
        uses_(graph.tensors.size()) {
    for (const Node& node : graph.nodes) {
      const bool matmul = node.kind == Node::Kind::kMatmul;
      (matmul ? uses_[node.in.tensor].by_matmul : uses_[node.in.tensor].by_pass) = true;
      if (matmul) uses_[node.b.tensor].by_matmul = true;
      if (node.tensor.tensor != model::kNoTensor) uses_[node.tensor.tensor].by_stage = true;
    }
  }

  LowerBound build() {
    for (const Node& node : graph_.nodes) add(node);
    end_operator();
    LowerBound bound;
    bound.operators = std::move(operators_);
    add_up(bound);
    return bound;
  }

 private:
  void add(const Node& node) {
    switch (node.kind) {
      case Node::Kind::kMatmul:
        return add_matmul(node);
      case Node::Kind::kStage:
        return add_stage(node);
      case Node::Kind::kHost:
        break;
    }
    begin(node, false);
    OperatorBound& op = operators_.back();
    op.host += static_cast<double>(machine_.core.clock_mhz) / machine_.host.clock_mhz *
               static_cast<double>(
                   hw::host_cycles(node.host, node.in.rows, node.in.cols, machine_.host).total());
  }

  void begin(const Node& node, bool attention) {
    end_operator();
    operators_.emplace_back();
    operators_.back().name = node.name;
    in_attention_ = attention;
    made_here_.assign(graph_.tensors.size(), false);
  }

  [[nodiscard]] bool is_weight(const View& view) const {
    return graph_.tensors[view.tensor].kind == Tensor::Kind::kConstant;
  }

  /// Bytes of an operand that have to come from memory in this operator: of an activation that may
  /// have stayed on chip, what does not fit there.
  [[nodiscard]] double brought(const View& view, double loads) const {
    const Tensor& tensor = graph_.tensors[view.tensor];
    if (tensor.kind != Tensor::Kind::kActivation || !tensor.data.empty()) return loads;
    const auto whole = static_cast<double>(bytes_of(graph_, view));
    return std::max(0.0, loads - std::min(whole, static_cast<double>(operand_bytes_)));
  }

  void add_matmul(const Node& node) {
    const bool attention = !is_weight(node.b);
    if (!attention || !in_attention_) begin(node, attention);
    end_chain();
    OperatorBound& op = operators_.back();
    const std::uint64_t m = node.in.rows, k = node.in.cols, n = node.out.cols;
    rows_ = m;
    vectors_ = (n + machine_.postop.lanes - 1) / machine_.postop.lanes;
    row_cycles_ = static_cast<double>(vectors_);
    row_wise_ = 0;
    has_chain_ = true;
    op.results += m * n;
    if (attention && machine_.attention.lines != 0)
      return;  // engines skip what the mask leaves out
    op.array += static_cast<double>(hw::array_cycles(machine_.array, m, n, k, true).interval);
    if (attention) {
      add_attention_operands(node, op);
      return;
    }
    const double loads = least_operand_bytes(m, n, k, sums_, operand_bytes_);
    const double a = brought(node.in, loads - static_cast<double>(k) * static_cast<double>(n));
    op.loaded += static_cast<double>(k) * static_cast<double>(n) + a;
  }

  /// The heads share the scratchpad: what no head keeps is counted when all of them are known.
  void add_attention_operands(const Node& node, OperatorBound& op) {
    for (const View& view : {node.in, node.b}) {
      if (made_here_[view.tensor]) continue;  // scores
      if (!brought_.insert({view.tensor, view.row, view.col}).second) continue;
      const Tensor& tensor = graph_.tensors[view.tensor];
      const auto bytes = static_cast<double>(bytes_of(graph_, view));
      if (tensor.kind == Tensor::Kind::kActivation && tensor.data.empty()) {
        attention_bytes_ += bytes;
      } else {
        op.loaded += bytes;
      }
    }
  }

  void add_stage(const Node& node) {
    if (operators_.empty()) {
      begin(node, false);
      has_chain_ = true;
      rows_ = node.in.rows;
      vectors_ = 0;
      row_cycles_ = row_wise_ = 0;
    }
    OperatorBound& op = operators_.back();
    const bool engines = in_attention_ && machine_.attention.lines != 0;
    const hw::Stage& stage = node.stage;
    // With stages before an anchor, all but a softmax may move there.
    const bool stays = machine_.preop.lanes == 0 || stage.op == hw::StageOp::kSoftmax;
    if (has_chain_ && !engines && stays && node.in.rows == rows_) {
      const auto interval = static_cast<double>(hw::stage_interval(stage, vectors_));
      if (hw::stage_info(stage.op).row_wise) {
        row_wise_ += interval;
      } else {
        row_cycles_ = std::max(row_cycles_, interval);
      }
    }
    if (stage.operand == hw::Operand::kTensor && !engines) {
      const Tensor& tensor = graph_.tensors[node.tensor.tensor];
      // Sums of the same chain are the saved accumulator.
      if (tensor.type != hw::DType::kS32) {
        op.operands += static_cast<double>(bytes_of(graph_, node.tensor));
      }
    }
    note_result(node.out, op);
  }

  void note_result(const View& out, OperatorBound& op) {
    made_here_[out.tensor] = true;
    const Tensor& tensor = graph_.tensors[out.tensor];
    const Use& use = uses_[out.tensor];
    const auto bytes = static_cast<double>(bytes_of(graph_, out));
    const bool engines = machine_.attention.lines != 0;
    if (tensor.kind == Tensor::Kind::kOutput || tensor.kind == Tensor::Kind::kState ||
        (use.by_stage && tensor.type != hw::DType::kS32)) {
      op.written += bytes;
    } else if (use.by_matmul && !use.by_pass && !engines && !in_attention_) {
      op.written += std::max(0.0, bytes - static_cast<double>(operand_bytes_));
    }
  }

  void end_operator() {
    end_chain();
    if (operators_.empty()) return;
    operators_.back().loaded +=
        std::max(0.0, attention_bytes_ - static_cast<double>(operand_bytes_));
    attention_bytes_ = 0;
    brought_.clear();
  }

  /// The stages so far share one pass.
  void end_chain() {
    if (!has_chain_) return;
    operators_.back().postop += static_cast<double>(rows_) * std::max(row_cycles_, row_wise_);
    has_chain_ = false;
  }

  void add_up(LowerBound& bound) const {
    const Roofline roofline = roofline_of(machine_);
    // A read port has at most its window in flight for as long as an idle memory takes. An L2 cache
    // may hold everything, and answers sooner.
    const bool cached = machine_.l2.kib != 0;
    const auto request = static_cast<double>(machine_.dma.request_bytes);
    const double port = cached ? request : std::min(roofline.read_bytes, request);
    const auto memory = [&](double loaded, double operands, double written) {
      return std::max({loaded / port, operands / port, (loaded + operands) / roofline.bus_bytes,
                       written / roofline.bus_bytes,
                       cached ? 0.0 : (loaded + operands + written) / roofline.dram_bytes});
    };
    double loaded = 0, operands = 0, written = 0;
    const auto held = static_cast<double>(operand_bytes_ + sums_ * 4);
    for (const OperatorBound& op : bound.operators) {
      bound.total.array += op.array;
      bound.total.postop += op.postop;
      bound.total.host += op.host;
      loaded += op.loaded;
      operands += op.operands;
      written += op.written;
      // What was loaded before it began, and sums that are left when its last product is done.
      const double memory_cycles = memory(std::max(0.0, op.loaded - held), 0, 0);
      const double drained =
          op.results == 0 ? 0.0
                          : op.postop * (1.0 - std::min(1.0, static_cast<double>(sums_) /
                                                                 static_cast<double>(op.results)));
      bound.in_order += std::max({op.array, memory_cycles, drained}) + op.host;
    }
    bound.total.memory = memory(loaded, operands, written);
  }

  const Graph& graph_;
  const hw::Machine& machine_;
  const std::uint64_t operand_bytes_, sums_;
  std::vector<Use> uses_;
  std::vector<OperatorBound> operators_;
  std::vector<bool> made_here_;  ///< by tensor: a result of the current operator
  bool in_attention_ = false;
  double attention_bytes_ = 0;  ///< activations that the heads read
  std::set<std::tuple<TensorId, std::uint32_t, std::uint32_t>> brought_;  ///< by the heads so far
  // The chain in progress.
  bool has_chain_ = false;
  std::uint64_t rows_ = 0, vectors_ = 0;
  double row_cycles_ = 0, row_wise_ = 0;
};

}  // namespace

double LowerBound::cycles() const { return std::max(total.cycles(), in_order); }

double least_operand_bytes(std::uint64_t m, std::uint64_t n, std::uint64_t k, std::uint64_t sums,
                           std::uint64_t operand_bytes) {
  const double rows = static_cast<double>(m), cols = static_cast<double>(n),
               depth = static_cast<double>(k), room = static_cast<double>(operand_bytes);
  double least = 0;
  for (std::uint64_t tile = 1; tile <= m; ++tile) {
    const auto tile_rows = static_cast<double>(tile);
    const double tile_cols = std::min(cols, static_cast<double>(sums) / tile_rows);
    const double a_times = cols / tile_cols, b_times = rows / tile_rows;
    const double streamed = rows * depth * a_times + depth * cols * b_times;
    // Bytes of the operand that the inner loop does not index save (trips - 1) loads in each turn
    // of the outer one; those of the other operand save the outer loop's.
    const auto saved = [&](double panel, double panel_saves, double other, double other_saves) {
      const bool panel_first = panel_saves >= other_saves;
      const double first = std::min(room, panel_first ? panel : other);
      const double second = std::min(room - first, panel_first ? other : panel);
      return first * (panel_first ? panel_saves : other_saves) +
             second * (panel_first ? other_saves : panel_saves);
    };
    const double rows_outside =
        saved(tile_rows * depth, (a_times - 1) * b_times, depth * cols, b_times - 1);
    const double cols_outside =
        saved(tile_cols * depth, (b_times - 1) * a_times, rows * depth, a_times - 1);
    const double bytes = streamed - std::max(rows_outside, cols_outside);
    if (least == 0 || bytes < least) least = bytes;
  }
  return std::max(least, rows * depth + depth * cols);
}

LowerBound lower_bound(const Graph& graph, const hw::Machine& machine) {
  return BoundBuilder(graph, machine).build();
}

}  // namespace systole::analysis
