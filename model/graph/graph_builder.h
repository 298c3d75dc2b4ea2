#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/graph/graph.h"

namespace systole::model {

/// The tensor of that name; throws std::out_of_range that names the graph and the tensor.
[[nodiscard]] TensorId find_tensor(const Graph& graph, std::string_view name);

/// Multiply-accumulates of one execution of the graph.
[[nodiscard]] std::uint64_t count_macs(const Graph& graph);

/// What a stage works on besides its input.
struct StageOperands {
  std::vector<std::int32_t> parameters;
  View tensor;                      ///< of a tensor operand
  TensorId statistics = kNoTensor;  ///< read or written
  std::uint32_t valid_cols = 0;     ///< of a softmax or a causal mask
};

/// Appends tensors and nodes to a graph. Every node writes its own tensor, named like the
/// node, unless the call says where to write.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name) { graph_.name = std::move(name); }

  TensorId add_tensor(Tensor tensor);
  [[nodiscard]] Tensor& tensor(TensorId id) { return graph_.tensors[id]; }
  [[nodiscard]] View whole(TensorId id) const;

  /// C = A B, or A B^T; to an own s32 tensor.
  View matmul(const std::string& name, View a, View b, bool b_transposed);

  /// The product of the patches under a window with B; to an own s32 tensor.
  View convolution(const std::string& name, View picture, const hw::Window& window, View b,
                   std::uint32_t groups = 1);
  /// A stage on the maxima or the sums under a window; it writes an own tensor of `type`.
  View pooling(const std::string& name, View picture, const hw::Window& window,
               const hw::Stage& stage, hw::DType type);

  /// A stage that writes an own tensor of `type`.
  View stage(const std::string& name, View in, const hw::Stage& stage, hw::DType type,
             StageOperands operands = {});
  /// A stage that writes to `out`.
  void stage_to(const std::string& name, View in, const hw::Stage& stage, View out,
                StageOperands operands = {});

  /// A function of the host that writes an own tensor.
  View host(const std::string& name, View in, hw::HostFunction function);

  [[nodiscard]] Graph take() && { return std::move(graph_); }

 private:
  Graph graph_;
};

}  // namespace systole::model
