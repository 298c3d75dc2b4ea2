#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "model/graph/graph.h"
#include "testbench/cores/column_parts.h"

namespace systole::testbench {

using ColumnRanges = std::vector<Columns>;

[[nodiscard]] inline Columns columns_of(const model::View& view) {
  return {view.col, view.col + view.cols};
}

/// Divides the nodes of a graph among cores: which core computes what, and between which nodes they
/// exchange columns.
class ColumnDivision {
 public:
  /// What cores have of a tensor.
  struct Spread {
    bool split = false;  ///< cores have columns of it; else each has it all
    bool written = false;
    bool crosses = false;           ///< it is read in a later segment than that of its first write
    std::size_t segment = 0;        ///< of its first write
    std::vector<ColumnRanges> own;  ///< by core, of a split tensor
  };

  /// The graph must outlive it. Throws InputError for one that cannot be divided.
  ColumnDivision(const model::Graph& graph, std::size_t cores);

  [[nodiscard]] const model::Graph& graph() const { return graph_; }
  [[nodiscard]] std::size_t segments() const { return segment_.back() + 1; }
  [[nodiscard]] std::size_t segment_of(std::size_t node) const { return segment_[node]; }
  [[nodiscard]] const Spread& spread_of(model::TensorId tensor) const { return tensors_[tensor]; }
  /// Whether each core computes some columns of the node's result.
  [[nodiscard]] bool by_column(std::size_t node) const { return kinds_[node] == Kind::kColumns; }
  /// What a core computes of a node: columns of its result.
  [[nodiscard]] ColumnRanges work(std::size_t node, std::size_t core) const;
  /// Calls visit(tensor, columns) for what a core reads to compute `columns` of a node's result.
  void visit_reads(
      std::size_t index, const Columns& columns,
      const std::function<void(model::TensorId tensor, const Columns& read)>& visit) const;
  [[nodiscard]] bool is_constant(model::TensorId tensor) const {
    return graph_.tensors[tensor].kind == model::Tensor::Kind::kConstant;
  }

 private:
  enum class Kind {
    kColumns,  ///< each core computes some columns of the result
    kHead,     ///< one core does it
    kRows,     ///< every core does it
  };
  void check() const;
  /// Nodes from the product of two activations to what is written next to other heads.
  void find_heads();
  [[nodiscard]] static Kind kind_of(const model::Node& node);
  /// Which core has which columns of a split tensor: those that its heads read, else equal parts.
  void find_columns();
  /// A node that needs columns of another core, written since the last exchange, follows the next.
  void find_segments();
  void note_writes(std::size_t node, std::size_t segment);

  const model::Graph& graph_;
  const std::size_t cores_;
  std::vector<Kind> kinds_;          ///< by node
  std::vector<std::size_t> owners_;  ///< by node of a head: its core
  std::vector<Spread> tensors_;
  std::vector<bool> of_one_head_;     ///< by tensor: one head alone writes it
  std::vector<std::size_t> segment_;  ///< by node
};

}  // namespace systole::testbench
