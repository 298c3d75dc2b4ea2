#include "analysis/bound/lower_bound.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>

#include "analysis/bound/least_path.h"
#include "analysis/bound/memory_floor.h"
#include "base/units.h"
#include "hw/array/accumulator.h"
#include "hw/array/array.h"
#include "hw/host/host_cycles.h"
#include "hw/number/weight_groups.h"
#include "hw/program/program.h"
#include "mapper/place/placement.h"

namespace systole::analysis {
namespace {

using model::Graph;
using model::Node;
using model::Tensor;
using model::TensorId;
using model::View;

class BoundBuilder {
 public:
  BoundBuilder(const Graph& graph, const hw::Machine& machine)
      : graph_(graph),
        machine_(machine),
        operand_bytes_(machine.scratchpad.kib * hw::kKib),
        sums_(machine.accumulator.kib * hw::kKib / 4),
        by_stage_(graph.tensors.size(), false),
        memory_(machine) {
    for (const Node& node : graph.nodes) {
      const View operand = node.second();
      if (node.product() == nullptr && operand.tensor != model::kNoTensor) {
        by_stage_[operand.tensor] = true;
      }
    }
  }

  LowerBound build() {
    for (const Node& node : graph_.nodes) add(node);
    end_chain();
    LowerBound bound;
    bound.operators = std::move(operators_);
    add_up(bound);
    return bound;
  }

 private:
  void add(const Node& node) {
    if (node.product() != nullptr) return add_matmul(node, node.product()->b);
    if (node.stage() != nullptr) return add_stage(node, node.stage()->stage);
    begin(node, false);
    OperatorBound& op = operators_.back();
    op.host += static_cast<double>(machine_.core.clock_mhz) / machine_.host.clock_mhz *
               static_cast<double>(
                   hw::host_cycles(node.host()->function, node.in.rows, node.in.cols, machine_.host)
                       .total());
  }

  void begin(const Node& node, bool attention) {
    end_chain();
    operators_.emplace_back();
    operators_.back().name = node.name;
    in_attention_ = attention;
  }

  [[nodiscard]] bool is_weight(const View& view) const {
    return graph_.tensors[view.tensor].kind == Tensor::Kind::kConstant;
  }

  /// Of a view in memory, at least.
  [[nodiscard]] std::uint64_t bytes_of(const View& view) const {
    const Tensor& tensor = graph_.tensors[view.tensor];
    if (mapper::may_be_int4(tensor, machine_)) {
      return std::uint64_t{view.rows} * view.cols / hw::kInt4Pair;
    }
    return std::uint64_t{view.rows} * view.cols * hw::bytes_of(tensor.type);
  }

  /// Whether the tensor comes from memory, for the first that reads it.
  [[nodiscard]] bool comes_from_memory(const View& view) {
    const Tensor& tensor = graph_.tensors[view.tensor];
    const bool made = tensor.kind == Tensor::Kind::kActivation && tensor.data.empty();
    return !made && brought_.insert({view.tensor, view.row, view.col}).second;
  }

  void add_matmul(const Node& node, const View& b) {
    const bool attention = !is_weight(b);
    if (!attention || !in_attention_) begin(node, attention);
    end_chain();
    OperatorBound& op = operators_.back();
    const std::uint64_t m = node.in_rows(), k = node.in_cols(), n = node.out.cols;
    begin_chain(m, n);
    if (attention && machine_.attention.lines != 0)
      return;  // engines skip what the mask leaves out
    const hw::Int4Operands int4{mapper::may_be_int4(graph_.tensors[node.in.tensor], machine_),
                                mapper::is_int4(graph_, b, machine_)};
    op.array += static_cast<double>(
        hw::array_cycles(machine_.array, m, n, hw::array_steps(k, int4), true).interval);
    if (node.window) {
      // However often pixels are read on chip, they come from memory once.
      for (const View& view : {node.in, b}) {
        if (!comes_from_memory(view)) continue;
        const std::uint64_t bytes = bytes_of(view);
        op.loaded +=
            static_cast<double>(int4.b && view.tensor == b.tensor ? bytes / hw::kInt4Pair : bytes);
      }
      return;
    }
    // One copy on chip serves all products.
    const bool is_new = copied_.insert({node.in.tensor, node.in.row, node.in.col}).second;
    if (is_new && machine_.attention.lines == 0) op.either += read_again(node.in);
    // Else an operand that is made on chip comes there once without memory.
    const double pairs = 1.0 / hw::kInt4Pair, a_element = int4.a ? pairs : 1.0;
    const auto a_bytes = static_cast<double>(m * k) * a_element;
    const auto b_bytes = static_cast<double>(k * n);
    const double made =
        (comes_from_memory(node.in) ? 0.0 : a_bytes) + (comes_from_memory(b) ? 0.0 : b_bytes);
    // Pairs of int4 are pairs on chip, too.
    const double all =
        least_operand_bytes(m, n, k, sums_, operand_bytes_ * (int4.b ? hw::kInt4Pair : 1));
    const bool expands = mapper::may_pack(graph_.tensors[b.tensor], machine_);
    if (expands || int4.b) {
      // However often A or B pass, a byte of either brings no more than its packing allows.
      const auto packed =
          expands ? static_cast<double>(hw::packed_bytes(graph_.tensors[b.tensor].format, k, n))
                  : b_bytes * pairs;
      const double least_element = std::min(packed / b_bytes, a_element);
      op.loaded += std::max(0.0, std::max(packed + a_bytes, least_element * all) - made);
      return;
    }
    const double passes = all - made;
    op.loaded += std::max(0.0, attention ? passes - written_to(b) : passes);
    if (!attention && made == a_bytes) {
      op.loaded += again(static_cast<double>(m), static_cast<double>(n), static_cast<double>(k),
                         passes - b_bytes);
    }
  }

  /// Bytes of a cache of keys and values that an operator of this inference writes.
  [[nodiscard]] double written_to(const View& cache) const {
    if (graph_.tensors[cache.tensor].kind != Tensor::Kind::kState) return 0;
    double bytes = 0;
    for (const Node& node : graph_.nodes) {
      const View out = node.out.unfolded();
      if (!model::overlap(out, cache)) continue;
      const double rows =
          std::min(out.row + out.rows, cache.row + cache.rows) - std::max(out.row, cache.row);
      bytes += rows * (std::min(out.col + out.cols, cache.col + cache.cols) -
                       std::max(out.col, cache.col));
    }
    return bytes;
  }

  /// More bytes that a product loads than B once and `counted`. While B passes, the scratchpad
  /// holds rows of A, or the accumulator rows of sums for A's columns as they come. B passes again,
  /// less what of it stays, for the next rows, or these come back from memory.
  [[nodiscard]] double again(double m, double n, double k, double counted) const {
    const auto room = static_cast<double>(operand_bytes_);
    const double rows = room / k + static_cast<double>(sums_) / n;
    const double of_a_row = std::min(k, std::max(0.0, k * n - room) / rows);
    return std::max(0.0, std::max(0.0, m - rows) * of_a_row - std::max(0.0, counted));
  }

  void begin_chain(std::uint64_t rows, std::uint64_t cols) {
    has_chain_ = true;
    rows_ = rows;
    vectors_ = (cols + machine_.result_lanes() - 1) / machine_.result_lanes();
    elementwise_ = softmax_ = static_cast<double>(vectors_);
    norms_ = 0;
    has_softmax_ = false;
    fill_ = cols == 0 ? 0.0 : hw::kAccumulatorReadCycles;
    commands_ = static_cast<double>(rows * cols) / static_cast<double>(sums_);
    if (!in_attention_) commands_ = std::ceil(commands_);
  }

  void add_stage(const Node& node, const hw::Stage& stage) {
    if (node.window) return add_pooling(node);
    if (operators_.empty()) {
      begin(node, false);
      begin_chain(node.in.rows, 0);
    }
    OperatorBound& op = operators_.back();
    const bool engines = in_attention_ && machine_.attention.lines != 0;
    // With stages before an anchor, all but a softmax may move there.
    const bool stays = machine_.preop.lanes == 0 || stage.op == hw::StageOp::kSoftmax;
    if (has_chain_ && !engines && stays && node.in.rows == rows_) {
      add_to_chain(stage, is_written(node.in));
    } else if (!engines && stays && stage.op == hw::StageOp::kLayerNorm) {
      // Of rows that no product before has, such as those of pictures and their class tokens.
      op.postop += static_cast<double>(node.in.rows) * norm_interval(stage, 0, true);
    }
    if (!engines) {
      const bool is_input = graph_.tensors[node.in.tensor].kind == Tensor::Kind::kInput;
      if (is_input && comes_from_memory(node.in)) {
        op.either += static_cast<double>(bytes_of(node.in));
      } else if (stage.op == hw::StageOp::kLayerNorm) {
        op.either += read_again(node.in);
      }
      const double operand = tensor_operand(node);
      op.operands += operand;
      const double bytes = is_input ? static_cast<double>(bytes_of(node.in)) : once_more(node.in);
      once_more_[node.out.tensor] = {
          node.out, std::min(static_cast<double>(bytes_of(node.out)), bytes + operand)};
    }
    if (is_written(node.out)) op.written += static_cast<double>(bytes_of(node.out));
  }

  /// A stage on what a window gathers, in a separate pass.
  void add_pooling(const Node& node) {
    begin(node, false);
    begin_chain(node.out.rows, node.out.cols);
    OperatorBound& op = operators_.back();
    if (comes_from_memory(node.in)) op.either += static_cast<double>(bytes_of(node.in));
    if (is_written(node.out)) op.written += static_cast<double>(bytes_of(node.out));
  }

  /// Bytes of a stage's tensor operand.
  [[nodiscard]] double tensor_operand(const Node& node) const {
    if (node.stage()->stage.operand != hw::Operand::kTensor) return 0;
    // Sums of the same chain are the saved accumulator.
    if (graph_.tensors[node.second().tensor].type == hw::DType::kS32) return 0;
    return static_cast<double>(bytes_of(node.second()));
  }

  /// Least bytes that a chain reads to give the result of a stage once more: that result, or what
  /// it was made of, from sums that are still there. 0 if nothing, or not known.
  [[nodiscard]] double once_more(const View& view) const {
    const auto found = once_more_.find(view.tensor);
    const bool known = found != once_more_.end() && model::same(found->second.out, view);
    return known ? found->second.bytes : 0;
  }

  /// What a chain or a product reads of a tensor that has left for memory, too.
  [[nodiscard]] double read_again(const View& view) const {
    return is_written(view) ? once_more(view) : 0;
  }

  /// `leaves`: what the stage works on has to leave too, in a separate pass.
  void add_to_chain(const hw::Stage& stage, bool leaves) {
    const auto interval = static_cast<double>(hw::stage_interval(stage, vectors_));
    if (stage.op == hw::StageOp::kLayerNorm) {
      norms_ += norm_interval(stage, vectors_, leaves);
    } else if (stage.op == hw::StageOp::kSoftmax) {
      softmax_ = has_softmax_ ? softmax_ + interval : interval;
      has_softmax_ = true;
    } else {
      elementwise_ = std::max(elementwise_, interval);
    }
    if (vectors_ != 0) fill_ += hw::stage_latency(stage);
  }

  /// Cycles of a row that a norm adds: in the chain before it, or in one of its own after a chain
  /// that leaves the sums of squares.
  [[nodiscard]] static double norm_interval(const hw::Stage& norm, std::uint64_t vectors,
                                            bool leaves) {
    hw::Stage apply = norm;
    apply.op = hw::StageOp::kLayerNormApply;
    const auto interval = static_cast<double>(hw::stage_interval(norm, vectors));
    return std::min(interval - (leaves ? 0.0 : static_cast<double>(vectors)),
                    static_cast<double>(hw::stage_interval(apply, vectors)));
  }

  /// Whether the tensor is needed in memory.
  [[nodiscard]] bool is_written(const View& view) const {
    const Tensor& tensor = graph_.tensors[view.tensor];
    return tensor.kind == Tensor::Kind::kOutput || tensor.kind == Tensor::Kind::kState ||
           (by_stage_[view.tensor] && tensor.type != hw::DType::kS32);
  }

  /// The stages so far share one pass.
  void end_chain() {
    if (!has_chain_) return;
    operators_.back().postop +=
        static_cast<double>(rows_) * std::max(elementwise_, softmax_ + norms_) + commands_ * fill_;
    has_chain_ = false;
  }

  void add_up(LowerBound& bound) const {
    double loaded = 0, operands = 0, either = 0, written = 0;
    for (const OperatorBound& op : bound.operators) {
      bound.total.array += op.array;
      bound.total.postop += op.postop;
      bound.total.host += op.host;
      loaded += op.loaded;
      operands += op.operands;
      either += op.either;
      written += op.written;
    }
    bound.total.memory = memory_.move(loaded, operands, written, either);
    bound.latency = least_path(graph_, machine_, memory_);
    // The first commands come from memory, and an operand before the array has work.
    const double fetched = memory_.read_trip(hw::kCommandBytes);
    bound.total.memory += bound.total.memory == 0 ? 0 : fetched;
    for (double* cycles : {&bound.total.array, &bound.total.postop}) {
      if (*cycles != 0) *cycles += fetched + memory_.read_trip(1);
    }
  }

  const Graph& graph_;
  const hw::Machine& machine_;
  const std::uint64_t operand_bytes_, sums_;
  std::vector<bool> by_stage_;  ///< by tensor: the tensor operand of a stage
  const MemoryFloor memory_;
  std::vector<OperatorBound> operators_;
  bool in_attention_ = false;
  using Place = std::tuple<TensorId, std::uint32_t, std::uint32_t>;
  std::set<Place> brought_, copied_;  ///< what is counted
  struct Result {
    View out;
    double bytes = 0;
  };
  std::map<TensorId, Result> once_more_;  ///< of stages
  // The chain in progress.
  bool has_chain_ = false;
  std::uint64_t rows_ = 0, vectors_ = 0;
  double elementwise_ = 0, softmax_ = 0, norms_ = 0;  ///< cycles of a row
  bool has_softmax_ = false;
  double fill_ = 0, commands_ = 0;
};

}  // namespace

double LowerBound::cycles() const {
  return std::max({total.array, total.memory, total.postop, latency}) + total.host;
}

std::string_view LowerBound::bound_by() const {
  const double core = cycles() - total.host;
  if (total.host > core) return name_of(Resource::kHost);
  if (core == latency && latency > total.array) return "latency";
  return name_of(Bound{total.array, total.memory, total.postop, 0}.resource());
}

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
