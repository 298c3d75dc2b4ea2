#include "analysis/bound/dependence.h"

#include <algorithm>

namespace systole::analysis {
namespace {

using model::Graph;
using model::Node;
using model::View;

bool is_row_wise(const Node& node) {
  if (node.host() != nullptr) {
    return node.host()->function.op == hw::HostOp::kSoftmax ||
           node.host()->function.op == hw::HostOp::kLayerNorm ||
           node.host()->function.op == hw::HostOp::kRoute;
  }
  return hw::stage_info(node.stage()->stage.op).row_wise;
}

bool transposes(const Node& node) { return node.is(hw::StageOp::kTranspose); }

/// Elements that both views have.
std::uint64_t shared_elements(const View& first, const View& second) {
  const View a = first.unfolded(), b = second.unfolded();
  if (!model::overlap(a, b)) return 0;
  const std::uint32_t rows = std::min(a.row + a.rows, b.row + b.rows) - std::max(a.row, b.row);
  const std::uint32_t cols = std::min(a.col + a.cols, b.col + b.cols) - std::max(a.col, b.col);
  return std::uint64_t{rows} * cols;
}

bool has_all_rows(const View& first, const View& second) {
  const View whole = first.unfolded(), part = second.unfolded();
  return part.row <= whole.row && whole.row + whole.rows <= part.row + part.rows;
}

}  // namespace

View DependenceGraph::view_of(const Node& node, std::size_t view) {
  return view == 0 ? node.in : node.second();
}

DependenceGraph::DependenceGraph(const Graph& graph)
    : graph_(graph), writers_(graph.nodes.size()), masked_(graph.nodes.size()) {
  std::vector<std::vector<std::size_t>> of_tensor(graph.tensors.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    for (std::size_t view = 0; view < kViews; ++view) {
      const View read = view_of(node, view);
      if (read.tensor == model::kNoTensor) continue;
      for (const std::size_t writer : of_tensor[read.tensor]) {
        if (model::overlap(graph.nodes[writer].out, read)) writers_[i][view].push_back(writer);
      }
    }
    masked_[i] = node.valid_cols() != 0 || node.window;
    if (node.product() == nullptr) {
      for (const std::size_t writer : writers_[i][0]) masked_[i] = masked_[i] || masked_[writer];
    }
    of_tensor[node.out.tensor].push_back(i);
  }
}

/// Passes on what is known of the nodes so far.
class DependenceGraph::Propagation {
 public:
  Propagation(const DependenceGraph& dependence, std::size_t from)
      : graph_(dependence.graph_),
        dependence_(dependence),
        from_(from),
        source_(graph_.nodes[from].out),
        known_(graph_.nodes.size()) {}

  std::vector<Dependence> run(std::size_t end) {
    const Node& source = graph_.nodes[from_];
    const bool whole_rows = source.stage() != nullptr && is_row_wise(source);
    known_[from_] = {whole_rows ? row() : Reach::kSome, Reach::kNone};
    for (std::size_t i = from_ + 1; i < end; ++i) {
      const Node& node = graph_.nodes[i];
      if (dependence_.masked_[i]) continue;
      known_[i] = node.product() != nullptr ? of_product(i) : of_stage(i);
      if (node.out.folded && known_[i].result != Reach::kAll) known_[i].result = Reach::kNone;
    }
    return std::move(known_);
  }

 private:
  [[nodiscard]] Reach row() const { return source_.rows == 1 ? Reach::kAll : Reach::kRow; }

  /// Without the same rows, an own row means nothing. Folded ones are not those of the tensor.
  [[nodiscard]] Reach aligned(Reach reach, const View& view) const {
    const bool has_own = view.rows == source_.rows && !view.folded && !source_.folded;
    return reach == Reach::kAll || has_own ? reach : Reach::kNone;
  }

  /// Of each element of what a node reads.
  [[nodiscard]] Reach of_element(std::size_t node, std::size_t view) const {
    const View read = view_of(graph_.nodes[node], view);
    Reach least = Reach::kAll, most = Reach::kNone;
    std::uint64_t written = 0;
    for (const std::size_t writer : dependence_.writers(node, view)) {
      least = std::min(least, known_[writer].result);
      most = std::max(most, known_[writer].result);
      written += shared_elements(read, graph_.nodes[writer].out);
    }
    if (written == 0 || written != std::uint64_t{read.rows} * read.cols) return Reach::kNone;
    if (most == Reach::kKeys && least != most) return Reach::kNone;
    return aligned(least, read);
  }

  /// Of each row of it: what one of its elements needs, or all of them together.
  [[nodiscard]] Reach of_row(std::size_t node, std::size_t view) const {
    const View read = view_of(graph_.nodes[node], view);
    const std::vector<std::size_t>& writers = dependence_.writers(node, view);
    Reach most = Reach::kNone;
    for (const std::size_t writer : writers) {
      if (!has_all_rows(read, graph_.nodes[writer].out)) continue;
      most = std::max(most, known_[writer].result);
    }
    most = aligned(most, read);
    if (most == Reach::kRow || most == Reach::kAll || writers.size() != 1) {
      return most == Reach::kRow || most == Reach::kAll ? most : Reach::kNone;
    }
    if (most == Reach::kSome && read.cols == source_.cols) return row();
    return most == Reach::kKeys && read.cols == source_.rows ? Reach::kAll : Reach::kNone;
  }

  [[nodiscard]] Dependence of_stage(std::size_t i) const {
    const Node& node = graph_.nodes[i];
    const Reach in = is_row_wise(node) ? of_row(i, 0) : of_element(i, 0);
    const Reach reach = std::max(in, of_element(i, 1));
    if (transposes(node) && reach != Reach::kAll) return {};
    return {reach, reach};
  }

  [[nodiscard]] Dependence of_product(std::size_t i) const {
    const Node& node = graph_.nodes[i];
    Dependence a{of_row(i, 0), of_element(i, 0)};
    const std::vector<std::size_t>& writers = dependence_.writers(i, 0);
    const bool masked = std::any_of(writers.begin(), writers.end(), [this](std::size_t writer) {
      return dependence_.masked_[writer];
    });
    if (masked) return a;  // zeros of A leave out what B has for them
    const Reach b = of_element(i, 1);
    if (b == Reach::kAll) return {Reach::kAll, Reach::kAll};
    if (b == Reach::kRow) {
      a.result = std::max(a.result, node.product()->b_transposed ? Reach::kKeys : Reach::kAll);
    }
    return a;
  }

  const Graph& graph_;
  const DependenceGraph& dependence_;
  const std::size_t from_;
  const View source_;
  std::vector<Dependence> known_;
};

std::vector<Dependence> DependenceGraph::on(std::size_t from, std::size_t end) const {
  return Propagation(*this, from).run(end);
}

std::vector<bool> DependenceGraph::needed_by(std::size_t to) const {
  /// What needed nodes read of a node's result, a list for each node.
  struct Read {
    View view;
    std::size_t next;
  };
  constexpr std::size_t kEnd = ~std::size_t{0};
  std::vector<Read> reads;
  std::vector<std::size_t> first(to + 1, kEnd);
  const auto is_read = [&](std::size_t node) {
    const View& out = graph_.nodes[node].out;
    const std::uint64_t all = std::uint64_t{out.rows} * out.cols;
    std::uint64_t elements = 0;
    bool apart = true;
    for (std::size_t i = first[node]; i != kEnd; i = reads[i].next) {
      const std::uint64_t shared = shared_elements(reads[i].view, out);
      if (shared == all) return true;
      elements += shared;
      for (std::size_t j = first[node]; j != i; j = reads[j].next) {
        apart = apart && !model::overlap(reads[i].view, reads[j].view);
      }
    }
    return apart && elements == all;
  };
  const auto add = [&](std::size_t writer, const View& view) {
    for (std::size_t i = first[writer]; i != kEnd; i = reads[i].next) {
      if (model::same(reads[i].view, view)) return;
    }
    reads.push_back({view, first[writer]});
    first[writer] = reads.size() - 1;
  };
  std::vector<bool> needed(graph_.nodes.size(), false);
  for (std::size_t i = to + 1; i-- > 0;) {
    needed[i] = i == to || is_read(i);
    if (!needed[i]) continue;
    for (std::size_t view = 0; view < kViews; ++view) {
      if (view == 0 && graph_.nodes[i].window) continue;  // it may leave pixels out
      const View read = view_of(graph_.nodes[i], view);
      for (const std::size_t writer : writers_[i][view]) add(writer, read);
    }
  }
  return needed;
}

}  // namespace systole::analysis
