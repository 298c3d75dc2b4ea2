#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/graph/graph.h"

namespace systole::analysis {

/// How much of the result of an operator `from` each element of another operator needs.
enum class Reach : std::uint8_t {
  kNone,  ///< nothing, or nothing that is certain
  kSome,  ///< an element of its own row
  kRow,   ///< all of its own row
  kKeys,  ///< all of row c, for column c: scores of transposed keys
  kAll,   ///< all of it
};

/// How an operator depends on another.
struct Dependence {
  Reach result = Reach::kNone;  ///< of each element of its result
  Reach work = Reach::kNone;    ///< of each step of its computation: of a product, of each MAC
};

/// How the operators of a graph depend on each other. Each element of a product needs its row of A
/// and its column of B, of a row-wise stage its row, of other stages an element. After a causal
/// mask or through a window nothing is certain.
class DependenceGraph {
 public:
  static constexpr std::size_t kViews = 2;
  /// What a node reads: its input, then B or a tensor operand.
  [[nodiscard]] static model::View view_of(const model::Node& node, std::size_t view);

  /// `graph` must outlive it.
  explicit DependenceGraph(const model::Graph& graph);

  /// Of each node on node `from`, in the order of the graph; of those from `end` on nothing is
  /// said. An element of a row-wise stage exists once its row is known: what needs one needs the
  /// row.
  [[nodiscard]] std::vector<Dependence> on(std::size_t from, std::size_t end) const;
  /// The nodes of which `to` needs every element: all have been computed when `to` is complete.
  /// `to` is one of them.
  [[nodiscard]] std::vector<bool> needed_by(std::size_t to) const;
  /// Earlier nodes that write a part of what `node` reads.
  [[nodiscard]] const std::vector<std::size_t>& writers(std::size_t node, std::size_t view) const {
    return writers_[node][view];
  }

 private:
  class Propagation;

  const model::Graph& graph_;
  std::vector<std::array<std::vector<std::size_t>, kViews>> writers_;  ///< by node
  std::vector<bool> masked_;  ///< some of its elements need nothing
};

}  // namespace systole::analysis
