#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "model/graph/graph.h"

namespace systole::model {

struct ReferenceOptions {
  /// Products by the fast kernels of hw/kernel/gemm.h instead of plain loops, for networks of
  /// millions of weights. The values do not differ.
  bool fast = false;
  /// Drop every activation after its last reader, except outputs.
  bool free_activations = false;
};

/// Executes an operator graph node by node in plain memory, products in plain loops and stages by
/// hw/postop/plain_stage.h: the meaning of a graph, against which everything faster or more
/// detailed is checked.
class Reference {
 public:
  /// The graph must outlive this object. Throws std::invalid_argument if a node reads or writes
  /// outside its tensors, if shapes do not fit together, or if a constant has no data.
  explicit Reference(const Graph& graph, ReferenceOptions options = {});

  /// Sets an input tensor; throws std::invalid_argument if the name is not that of an input or the
  /// number of elements differs, std::out_of_range if a value does not fit its type.
  void set_input(std::string_view name, const std::vector<std::int32_t>& values);

  /// Executes all nodes; after each, `progress` is given how many are done. Throws
  /// std::overflow_error if a result does not fit its tensor's type, which a graph made by
  /// model/build/encoder_graph.h never does.
  void run(const std::function<void(std::size_t nodes)>& progress = {});

  /// The bytes of a tensor: rows x cols elements, little endian. Empty if freed.
  [[nodiscard]] const std::vector<std::uint8_t>& bytes(TensorId id) const { return memory_[id]; }
  [[nodiscard]] const std::vector<std::uint8_t>& bytes(std::string_view name) const;
  /// The same as numbers.
  [[nodiscard]] std::vector<std::int32_t> values(std::string_view name) const;

 private:
  void allocate(TensorId id);
  void run_stage(const Node& node);
  /// By the host's own function: float32 has no second, simpler form.
  void run_host(const Node& node);
  /// The elements of a view, row by row.
  [[nodiscard]] std::vector<std::int32_t> load(const View& view) const;
  /// What a node works on, row by row: its input, or what its window gathers.
  [[nodiscard]] std::vector<std::int32_t> load_input(const Node& node) const;
  void store(const Node& node, const View& view, const std::vector<std::int32_t>& values);
  [[nodiscard]] std::vector<std::int32_t> multiply(const Node& node) const;
  [[nodiscard]] std::vector<std::int32_t> multiply_fast(const Node& node) const;

  const Graph& graph_;
  ReferenceOptions options_;
  std::vector<hw::SharedVector<std::uint8_t>> memory_;  ///< per tensor
  std::vector<std::vector<TensorId>> last_use_;  ///< per node: tensors that it is the last to use
};

}  // namespace systole::model
