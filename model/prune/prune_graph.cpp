#include "model/prune/prune_graph.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "model/graph/graph_check.h"

namespace systole::model {
namespace {

/// Which of a tensor's rows and columns are gone.
struct Gone {
  std::vector<bool> rows, cols;
};

std::uint32_t kept_before(const std::vector<bool>& gone, std::uint32_t end) {
  return static_cast<std::uint32_t>(std::count(gone.begin(), gone.begin() + end, false));
}

class ColumnPruner {
 public:
  explicit ColumnPruner(const Graph& graph)
      : graph_(graph), gone_(graph.tensors.size()), dead_(graph.nodes.size(), false) {
    for (std::size_t i = 0; i < gone_.size(); ++i) {
      gone_[i] = {std::vector<bool>(graph.tensors[i].rows, false),
                  std::vector<bool>(graph.tensors[i].cols, false)};
    }
    for (const Node& node : graph.nodes) {
      if (node.product() != nullptr) ++readers_[node.product()->b.tensor];
    }
  }

  Graph run(const std::map<TensorId, GoneColumns>& columns) {
    for (const auto& [id, gone] : columns) {
      if (gone.size() != graph_.tensors.at(id).cols) {
        throw std::invalid_argument("prune: " + graph_.tensors[id].name + " has other columns");
      }
      for (std::size_t c = 0; c < gone.size(); ++c) {
        if (gone[c]) mark(gone_[id].cols, c);
      }
    }
    do {
      changed_ = false;
      for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
        if (!dead_[n]) spread(graph_.nodes[n], n);
      }
      mark_unread();
    } while (changed_);
    return compacted();
  }

 private:
  [[noreturn]] static void fail(const Node& node, const std::string& what) {
    throw std::invalid_argument("prune: node '" + node.name + "': " + what);
  }

  void mark(std::vector<bool>& gone, std::size_t index) {
    if (gone[index]) return;
    gone[index] = true;
    changed_ = true;
  }
  /// Two things that are gone together.
  void tie(std::vector<bool>& a, std::size_t i, std::vector<bool>& b, std::size_t j) {
    if (a[i] == b[j]) return;
    mark(a, i);
    mark(b, j);
  }

  [[nodiscard]] std::uint32_t gone_in(const View& view) const {
    const std::vector<bool>& cols = gone_[view.tensor].cols;
    return static_cast<std::uint32_t>(
        std::count(cols.begin() + view.col, cols.begin() + view.col + view.cols, true));
  }
  [[nodiscard]] bool is_constant(const View& view) const {
    return graph_.tensors[view.tensor].kind == Tensor::Kind::kConstant;
  }

  void spread(const Node& node, std::size_t index) {
    if (gone_in(node.out) == node.out.cols) {
      dead_[index] = changed_ = true;
      return;
    }
    if (node.product() != nullptr) return spread_product(node, *node.product());
    const View second = node.second();
    const bool tensor = second.tensor != kNoTensor;
    const std::uint32_t gone =
        gone_in(node.in) + gone_in(node.out) + (tensor ? gone_in(second) : 0);
    if (gone == 0) return;
    if (node.stage() == nullptr || node.window || node.in.folded || node.out.folded || tensor ||
        node.in.cols != node.out.cols || node.is(hw::StageOp::kTranspose) ||
        hw::stage_info(node.stage()->stage.op).row_wise ||
        node.stage()->stage.side != hw::Reduction::kNone) {
      fail(node, "a part of its row cannot go alone");
    }
    for (std::uint32_t c = 0; c < node.in.cols; ++c) {
      tie(gone_[node.in.tensor].cols, node.in.col + c, gone_[node.out.tensor].cols,
          node.out.col + c);
    }
  }

  void spread_product(const Node& node, const Product& product) {
    Gone& b = gone_[product.b.tensor];
    std::vector<bool>& a = gone_[node.in.tensor].cols;
    std::vector<bool>& c = gone_[node.out.tensor].cols;
    const bool constant = is_constant(product.b);
    if (gone_in(node.in) != 0) {
      if (!constant || product.b_transposed || product.groups != 1 || node.window ||
          readers_.at(product.b.tensor) != 1) {
        fail(node, "a part of what it multiplies cannot go alone");
      }
      for (std::uint32_t k = 0; k < node.in.cols; ++k) {
        if (a[node.in.col + k]) mark(b.rows, product.b.row + k);
      }
    }
    const bool results =
        gone_in(node.out) != 0 || (!product.b_transposed && gone_in(product.b) != 0);
    if (!results) return;
    if (product.b_transposed || product.groups != 1 || node.window ||
        (constant && readers_.at(product.b.tensor) != 1)) {
      fail(node, "a part of its result cannot go alone");
    }
    for (std::uint32_t n = 0; n < node.out.cols; ++n) {
      tie(c, node.out.col + n, b.cols, product.b.col + n);
    }
  }

  /// Columns of activations that no operator reads any more.
  void mark_unread() {
    std::vector<std::vector<bool>> read(gone_.size());
    std::set<TensorId> statistics;
    for (std::size_t i = 0; i < read.size(); ++i) read[i].assign(gone_[i].cols.size(), false);
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (dead_[n]) continue;
      const Node& node = graph_.nodes[n];
      if (node.statistics() != kNoTensor) statistics.insert(node.statistics());
      for (const View& given : {node.in, node.second()}) {
        if (given.tensor == kNoTensor) continue;
        const View view = given.unfolded();
        std::fill_n(read[view.tensor].begin() + view.col, view.cols, true);
      }
    }
    for (TensorId id = 0; id < graph_.tensors.size(); ++id) {
      const Tensor& tensor = graph_.tensors[id];
      if (tensor.kind != Tensor::Kind::kActivation || statistics.count(id) != 0) continue;
      for (std::size_t c = 0; c < read[id].size(); ++c) {
        if (!read[id][c]) mark(gone_[id].cols, c);
      }
    }
  }

  [[nodiscard]] View moved(const View& view) const {
    if (view.tensor == kNoTensor) return view;
    const Gone& gone = gone_[view.tensor];
    View result = view;
    result.tensor = numbers_.at(view.tensor);
    if (view.folded) return result;
    result.row = kept_before(gone.rows, view.row);
    result.rows = kept_before(gone.rows, view.row + view.rows) - result.row;
    result.col = kept_before(gone.cols, view.col);
    result.cols = kept_before(gone.cols, view.col + view.cols) - result.col;
    return result;
  }

  [[nodiscard]] Tensor moved(const Tensor& tensor, const Gone& gone) const {
    Tensor result = tensor;
    result.rows = kept_before(gone.rows, tensor.rows);
    result.cols = kept_before(gone.cols, tensor.cols);
    if (result.rows == tensor.rows && result.cols == tensor.cols) return result;
    if (tensor.grouped()) throw std::invalid_argument("prune: " + tensor.name + " is in groups");
    const bool edge = tensor.kind == Tensor::Kind::kInput || tensor.kind == Tensor::Kind::kOutput;
    if (edge) throw std::invalid_argument("prune: " + tensor.name + " loses columns");
    if (tensor.data.empty()) return result;
    std::vector<std::uint8_t> data;
    const std::size_t element = hw::bytes_of(tensor.type);
    for (std::uint32_t r = 0; r < tensor.rows; ++r) {
      for (std::uint32_t c = 0; c < tensor.cols; ++c) {
        if (gone.rows[r] || gone.cols[c]) continue;
        const auto from = tensor.data.begin() +
                          static_cast<std::ptrdiff_t>((std::size_t{r} * tensor.cols + c) * element);
        data.insert(data.end(), from, from + static_cast<std::ptrdiff_t>(element));
      }
    }
    result.data = std::move(data);
    return result;
  }

  [[nodiscard]] Node moved(const Node& node) const {
    Node result = node;
    result.in = moved(node.in);
    result.out = moved(node.out);
    if (Product* const product = result.product()) product->b = moved(product->b);
    if (StageUse* const use = result.stage()) {
      use->tensor = moved(use->tensor);
      if (use->statistics != kNoTensor) use->statistics = numbers_.at(use->statistics);
      std::vector<std::int32_t> kept;
      const std::vector<bool>& gone = gone_[node.out.tensor].cols;
      for (std::size_t i = 0; i < use->parameters.size(); ++i) {
        if (!gone[node.out.col + i % node.out.cols]) kept.push_back(use->parameters[i]);
      }
      use->parameters = std::move(kept);
    }
    if (HostUse* const use = result.host()) use->tensor = moved(use->tensor);
    return result;
  }

  Graph compacted() {
    Graph result;
    result.name = graph_.name;
    std::set<TensorId> used;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (dead_[n]) continue;
      for (const TensorId id : tensors_of(graph_.nodes[n])) used.insert(id);
    }
    for (const TensorId id : used) {
      numbers_[id] = static_cast<TensorId>(result.tensors.size());
      result.tensors.push_back(moved(graph_.tensors[id], gone_[id]));
    }
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (!dead_[n]) result.nodes.push_back(moved(graph_.nodes[n]));
    }
    check_graph(result);
    return result;
  }

  const Graph& graph_;
  std::vector<Gone> gone_;                ///< by tensor
  std::vector<bool> dead_;                ///< by node
  std::map<TensorId, unsigned> readers_;  ///< products by their B
  std::map<TensorId, TensorId> numbers_;  ///< of the tensors that are left
  bool changed_ = false;
};

}  // namespace

Graph without_columns(const Graph& graph, const std::map<TensorId, GoneColumns>& columns) {
  return ColumnPruner(graph).run(columns);
}

Graph with_fewer_tokens(const Graph& graph, std::size_t first, std::uint32_t tokens,
                        std::uint32_t kept) {
  Graph result = graph;
  std::set<TensorId> scores;  // their columns are tokens
  std::set<TensorId> before;  // tensors that operators before `first` use
  for (std::size_t n = 0; n < first; ++n) {
    for (const TensorId id : tensors_of(graph.nodes[n])) before.insert(id);
  }
  const auto fewer = [&](std::uint32_t& count) {
    if (count == tokens) count = kept;
  };
  for (std::size_t n = first; n < result.nodes.size(); ++n) {
    Node& node = result.nodes[n];
    const bool of_scores = scores.count(node.in.tensor) != 0;
    fewer(node.in.rows);
    fewer(node.out.rows);
    if (of_scores) fewer(node.in.cols);
    if (Product* const product = node.product()) {
      const bool activation = graph.tensors[product->b.tensor].kind != Tensor::Kind::kConstant;
      if (activation) fewer(product->b.rows);
      if (activation && product->b_transposed) {
        scores.insert(node.out.tensor);
        fewer(node.out.cols);
      }
    } else if (of_scores) {
      if (node.second().tensor != kNoTensor) {
        throw std::invalid_argument("prune: node '" + node.name + "' has a mask of tokens");
      }
      scores.insert(node.out.tensor);
      fewer(node.out.cols);
    } else if (StageUse* const use = node.stage();
               use != nullptr && use->tensor.tensor != kNoTensor) {
      fewer(use->tensor.rows);
    }
  }
  for (std::size_t n = first; n < result.nodes.size(); ++n) {
    for (const TensorId id : tensors_of(result.nodes[n])) {
      Tensor& tensor = result.tensors[id];
      const bool made =
          tensor.kind == Tensor::Kind::kActivation || tensor.kind == Tensor::Kind::kOutput;
      if (before.count(id) != 0 || !made) continue;
      if (graph.tensors[id].rows == tokens) tensor.rows = kept;
      if (scores.count(id) != 0 && graph.tensors[id].cols == tokens) tensor.cols = kept;
    }
  }
  check_graph(result);
  return result;
}

}  // namespace systole::model
