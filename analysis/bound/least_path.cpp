#include "analysis/bound/least_path.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <vector>

#include "analysis/bound/dependence.h"
#include "base/units.h"
#include "hw/array/accumulator.h"
#include "hw/array/array.h"
#include "hw/number/weight_groups.h"
#include "hw/program/program.h"
#include "mapper/place/placement.h"

namespace systole::analysis {
namespace {

using model::Graph;
using model::Node;

/// Products with weights after a product to which a path from it may lead at once: a layer and a
/// half.
constexpr std::size_t kStepsAhead = 6;

class PathBuilder {
 public:
  PathBuilder(const Graph& graph, const hw::Machine& machine, const MemoryFloor& memory)
      : graph_(graph),
        machine_(machine),
        memory_(memory),
        dependence_(graph),
        lanes_(std::max(machine.postop.lanes, machine.preop.lanes)),
        more_than_a_pass_(graph.nodes.size(), 0.0),
        held_(static_cast<double>((machine.scratchpad.kib + machine.accumulator.kib) * hw::kKib)) {
    const hw::ArrayCycles one = hw::array_cycles(machine.array, 1, 1, 1, true);
    product_latency_ = static_cast<double>(one.latency + hw::kAccumulatorWriteCycles);
    product_tail_ = product_latency_ - static_cast<double>(one.interval);
    const bool shifts_in = machine.array.dataflow == hw::Dataflow::kWeightStationary &&
                           machine.array.overlap != hw::ArrayOverlap::kNone;
    preload_ = shifts_in ? machine.array.rows : 0;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& node = graph.nodes[i];
      const bool weights =
          node.product() != nullptr &&
          graph.tensors[node.product()->b.tensor].kind == model::Tensor::Kind::kConstant;
      if (weights) steps_.push_back(i);
    }
    add_stages();
  }

  double cycles() {
    // The first commands and an operand of the first product come from memory.
    const double start =
        memory_.read_trip(hw::kCommandBytes) + memory_.read_trip(1) + product_latency_;
    std::vector<double> complete(steps_.size(), start);
    double longest = 0;
    for (std::size_t b = 0; b < steps_.size(); ++b) {
      const double work_done = std::max(complete[b], start - product_latency_ + before(b));
      const std::size_t last = std::min(steps_.size(), b + 1 + kStepsAhead);
      for (std::size_t c = b + 1; c < last; ++c) {
        if (on(steps_[b])[steps_[c]].result != Reach::kAll) continue;
        complete[c] = std::max(complete[c], work_done + between(b, c));
      }
      longest = std::max(longest, complete[b] + after(b, last));
    }
    return longest;
  }

 private:
  /// Who depends on what: elements on all of a node, or on a row of it.
  struct Span {
    std::size_t from, to;
    Reach strong;   ///< what a step of work needs that is counted
    bool all_rows;  ///< of such work, else one row
  };

  /// Of the nodes to which a path from here may lead at once.
  const std::vector<Dependence>& on(std::size_t from) {
    const auto [at, is_new] = on_.try_emplace(from);
    if (!is_new) return at->second;
    const auto next = std::upper_bound(steps_.begin(), steps_.end(), from);
    const bool near_end = static_cast<std::size_t>(steps_.end() - next) <= kStepsAhead;
    const std::size_t end = near_end ? graph_.nodes.size() : next[kStepsAhead];
    return at->second = dependence_.on(from, end);
  }
  const std::vector<bool>& needed_by(std::size_t to) {
    const auto [at, is_new] = needed_.try_emplace(to);
    if (is_new) at->second = dependence_.needed_by(to);
    return at->second;
  }

  /// What the last row of b still needs, where nothing needs all of b any more; the sums are read.
  double after(std::size_t b, std::size_t last) {
    double longest = 0;
    for (std::size_t c = b + 1; c < last; ++c) {
      const std::size_t from = steps_[b], to = steps_[c];
      if (on(from)[to].result < Reach::kRow || !needed_by(to)[from]) continue;
      longest = std::max(longest, time_of({from, to, Reach::kRow, false}));
    }
    return longest + hw::kAccumulatorReadCycles + 1.0;
  }

  /// What has been computed completely with all of b, from the first operand on.
  double before(std::size_t b) {
    const std::size_t to = steps_[b];
    const std::vector<bool>& needed = needed_by(to);
    double array = product_tail_, postop = 0;
    for (std::size_t i = 0; i <= to; ++i) {
      if (!needed[i]) continue;
      const Node& node = graph_.nodes[i];
      postop += more_than_a_pass_[i];
      if (node.product() == nullptr) continue;
      array += array_time(node, node.in_rows());
      if (i != to) postop += static_cast<double>(node.out.rows * vectors(node.out.cols));
    }
    return std::max(array, postop);
  }

  double between(std::size_t b, std::size_t c) {
    const std::size_t from = steps_[b], to = steps_[c];
    double least = time_of({from, to, Reach::kAll, true});
    for (std::size_t via = from + 1; via < to; ++via) {
      if (!is_step(via) && !is_norm(graph_.nodes[via])) continue;
      if (on(from)[via].result != Reach::kAll || on(via)[to].result < Reach::kRow ||
          !needed_by(to)[via]) {
        continue;
      }
      // A norm's last row goes out as its last work for it.
      const double last_row = time_of({from, via, Reach::kAll, true}) - norm_of_a_row(via) +
                              time_of({via, to, Reach::kRow, false});
      const double first_row =
          time_of({from, via, Reach::kAll, false}) + time_of({via, to, Reach::kRow, true});
      least = std::max({least, last_row, first_row});
    }
    return least;
  }

  /// What the last row of a norm itself takes.
  [[nodiscard]] double norm_of_a_row(std::size_t i) const {
    const Node& node = graph_.nodes[i];
    return is_norm(node) ? more_than_a_pass_[i] / node.in.rows : 0.0;
  }

  /// From the completion of span.from, or a row of it, to that of span.to. Of a norm it is the
  /// begin of a row's last pass that counts.
  double time_of(const Span& span) {
    const std::vector<Dependence>& depend = on(span.from);
    const std::vector<bool>& needed = needed_by(span.to);
    const std::vector<double> ready = latencies(span, depend);
    double array = 0, postop = 0, weights = 0;
    double begin = std::numeric_limits<double>::infinity();
    for (std::size_t i = span.from + 1; i <= span.to; ++i) {
      if (!needed[i] || depend[i].work < Reach::kRow) continue;
      const Node& node = graph_.nodes[i];
      const bool whole = span.all_rows && depend[i].work >= span.strong;
      const std::uint64_t rows = whole ? node.in_rows() : 1;
      if (node.product() == nullptr) {
        if (whole) postop += more_than_a_pass_[i];
        continue;
      }
      if (!whole && !has_own_row(span, i, depend)) continue;
      array += array_time(node, rows);
      begin = std::min(begin, ready[i]);
      if (i != span.to) postop += static_cast<double>(rows * vectors(node.out.cols));
      const model::Tensor& b = graph_.tensors[node.product()->b.tensor];
      if (b.kind == model::Tensor::Kind::kConstant) {
        const std::uint64_t k = node.in_cols(), n = node.out.cols;
        weights += mapper::may_pack(b, machine_)
                       ? static_cast<double>(hw::packed_bytes(b.format, k, n))
                       : static_cast<double>(k * n) / pair_of(node);
      }
    }
    if (array != 0) array += begin + product_tail_;
    const double load = memory_.move(std::max(0.0, weights - held_), 0, 0);
    const bool to_sums = graph_.nodes[span.to].product() != nullptr;
    return std::max({array, postop, load, ready[span.to] + (to_sums ? product_latency_ : 0.0)});
  }

  [[nodiscard]] double array_time(const Node& product, std::uint64_t rows) const {
    const std::uint64_t n = product.out.cols;
    const hw::Int4Operands int4{mapper::may_be_int4(graph_.tensors[product.in.tensor], machine_),
                                pair_of(product) != 1};
    const std::uint64_t steps = hw::array_steps(product.in_cols(), int4);
    return static_cast<double>(hw::array_cycles(machine_.array, rows, n, steps, true).interval);
  }
  /// Weights of a byte.
  [[nodiscard]] std::uint32_t pair_of(const Node& product) const {
    return mapper::is_int4(graph_, product.product()->b, machine_) ? hw::kInt4Pair : 1;
  }

  [[nodiscard]] bool is_step(std::size_t i) const {
    return std::binary_search(steps_.begin(), steps_.end(), i);
  }
  [[nodiscard]] static bool is_norm(const Node& node) { return node.is(hw::StageOp::kLayerNorm); }

  /// Whether a whole row of product i has to be computed after the row or the end of span.from.
  bool has_own_row(const Span& span, std::size_t i, const std::vector<Dependence>& depend) {
    if (depend[i].work == Reach::kKeys) return false;
    if (span.all_rows || span.strong == Reach::kRow) return true;
    // Until the first row of span.to: only where each of its rows needs a row of i.
    if (depend[i].work != Reach::kAll) return false;
    if (i == span.to) return true;
    return is_step(i) && on(i)[span.to].result >= Reach::kRow;
  }

  /// A LayerNorm after a chain that has left the sums of squares.
  [[nodiscard]] static hw::Stage applied(hw::Stage norm) {
    norm.op = hw::StageOp::kLayerNormApply;
    return norm;
  }

  [[nodiscard]] std::uint64_t vectors(std::uint64_t cols) const {
    return (cols + lanes_ - 1) / lanes_;
  }

  /// Cycles of the post-op unit by stage beside one pass over the sums.
  void add_stages() {
    std::vector<std::size_t> product(graph_.nodes.size(), graph_.nodes.size());
    // The last: of no product.
    std::vector<bool> row_wise(graph_.nodes.size() + 1, false), softmaxes = row_wise;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.product() != nullptr) product[i] = i;
      if (node.stage() == nullptr || dependence_.writers(i, 0).size() != 1) continue;
      product[i] = product[dependence_.writers(i, 0).front()];
      if (hw::stage_info(node.stage()->stage.op).row_wise) row_wise[product[i]] = true;
      if (node.stage()->stage.op == hw::StageOp::kSoftmax) softmaxes[product[i]] = true;
    }
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.stage() == nullptr) continue;
      const std::uint64_t pass = vectors(node.in.cols);
      const std::uint64_t interval = hw::stage_interval(node.stage()->stage, pass);
      const bool softmax = node.stage()->stage.op == hw::StageOp::kSoftmax;
      // Serial units of other stages, where no statistics hide them; with stages before an anchor
      // they may be there.
      const bool follows =
          dependence_.writers(i, 0).size() == 1 && dependence_.writers(i, 0).front() == product[i];
      const bool alone = node.stage()->stage.op == hw::StageOp::kDivideRowSum && follows &&
                         !row_wise[product[i]] && machine_.preop.lanes == 0;
      if (softmax || alone) {
        more_than_a_pass_[i] = static_cast<double>(node.in.rows * (interval - pass));
      }
      // In the chain of the sums, or as a stage after one that has left the sums of squares.
      if (is_norm(node) && !softmaxes[product[i]] && machine_.preop.lanes == 0) {
        const std::uint64_t apply = hw::stage_interval(applied(node.stage()->stage), pass);
        more_than_a_pass_[i] = static_cast<double>(node.in.rows * std::min(interval - pass, apply));
      }
    }
  }

  /// By node, from the completion of span.from on: earliest result that depends on the element of
  /// it that came last; of a product the earliest begin.
  [[nodiscard]] std::vector<double> latencies(const Span& span,
                                              const std::vector<Dependence>& depend) const {
    std::vector<double> at(span.to + 1, 0.0), begun(span.to + 1, 0.0);
    for (std::size_t i = span.from + 1; i <= span.to; ++i) {
      if (depend[i].result == Reach::kNone) continue;
      const Node& node = graph_.nodes[i];
      double certain = 0, shortest = std::numeric_limits<double>::infinity();
      double begin = std::numeric_limits<double>::infinity();
      for (std::size_t view = 0; view < DependenceGraph::kViews; ++view) {
        for (const std::size_t writer : dependence_.writers(i, view)) {
          if (writer < span.from || depend[writer].result == Reach::kNone) continue;
          const bool product = graph_.nodes[writer].product() != nullptr;
          double there = at[writer];
          if (product && writer != span.from) there += product_latency_;
          if (view == 0) begin = std::min(begin, product ? there : begun[writer]);
          // Sums are read, and take a cycle of the chain.
          if (product) there += hw::kAccumulatorReadCycles + 1.0;
          if (view == 1 && node.product() != nullptr) there += preload_;
          shortest = std::min(shortest, there);
          if (writer != span.from && depend[writer].result >= span.strong) {
            certain = std::max(certain, there);
          }
        }
      }
      begun[i] = begin;
      at[i] = std::max(certain, shortest);
      if (node.stage() != nullptr) at[i] = after_stage(node, at[i], begin);
    }
    return at;
  }

  [[nodiscard]] double after_stage(const Node& node, double ready, double begin) const {
    const hw::Stage& stage = node.stage()->stage;
    double done = ready + hw::stage_latency(stage);
    if (stage.op == hw::StageOp::kLayerNorm) {
      const hw::Stage apply = applied(stage);
      const auto fill = [&](const hw::Stage& alone, std::uint64_t cols) {
        return hw::chain_cycles({{alone}, node_type(node)}, 1, cols, lanes_).fill;
      };
      done = ready + static_cast<double>(std::min(fill(stage, node.in.cols), fill(apply, 1)));
    }
    const bool from_memory = stage.operand == hw::Operand::kTensor &&
                             graph_.tensors[node.second().tensor].type != hw::DType::kS32;
    // The command that reads the sums asks for the operand.
    const bool begun = begin != std::numeric_limits<double>::infinity();
    return from_memory && begun ? std::max(done, begin + memory_.read_trip(1)) : done;
  }

  [[nodiscard]] hw::DType node_type(const Node& node) const {
    return graph_.tensors[node.out.tensor].type;
  }

  const Graph& graph_;
  const hw::Machine& machine_;
  const MemoryFloor& memory_;
  const DependenceGraph dependence_;
  const std::uint32_t lanes_;
  std::vector<double> more_than_a_pass_;  ///< by stage
  const double held_;
  double product_latency_ = 0;      ///< of one row through one fold, into the accumulator
  double product_tail_ = 0;         ///< from when the array is free again
  double preload_ = 0;              ///< of a B that has just come
  std::vector<std::size_t> steps_;  ///< products with weights
  std::map<std::size_t, std::vector<Dependence>> on_;
  std::map<std::size_t, std::vector<bool>> needed_;
};

}  // namespace

double least_path(const Graph& graph, const hw::Machine& machine, const MemoryFloor& memory) {
  const bool host = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                [](const Node& node) { return node.host() != nullptr; });
  if (host || machine.attention.lines != 0) return 0;
  return PathBuilder(graph, machine, memory).cycles();
}

}  // namespace systole::analysis
