#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "hw/machine/machine.h"
#include "hw/number/int_exp.h"
#include "model/graph/graph_builder.h"
#include "model/integer/constant_check.h"
#include "model/network/network_document.h"

namespace systole::model {

/// What each operator of a network file is in a graph (model/build/operator_graph.h).
class OperatorRules {
 public:
  /// All outlive this object.
  OperatorRules(const NetworkFile& file, const hw::Machine::Datapath& datapath,
                GraphBuilder& builder, const std::map<std::string, View>& values)
      : file_(file),
        datapath_(datapath),
        check_(file.path(), datapath),
        builder_(builder),
        values_(values) {}

  /// Whether there is a rule for an operator.
  [[nodiscard]] static bool has(std::string_view op) { return rules().count(op) != 0; }

  /// Appends the stages and products of a node, whose operands are in `values`; its result.
  View append(const NetworkNode& node) { return (this->*rules().at(node.op->name))(node); }

 private:
  using Rule = View (OperatorRules::*)(const NetworkNode&);
  static const std::map<std::string_view, Rule>& rules();

  [[nodiscard]] const View& in(const NetworkNode& node, std::size_t index = 0) const;
  [[nodiscard]] hw::DType type(const View& view) { return builder_.tensor(view.tensor).type; }
  [[nodiscard]] hw::DType result_type(const NetworkNode& node) const;
  /// Of the codes of its result: those of the type, unless the node has fewer "bits".
  [[nodiscard]] unsigned result_bits(const NetworkNode& node) const;
  [[nodiscard]] static std::uint32_t number(const NetworkNode& node, const char* name,
                                            std::uint32_t otherwise);
  hw::Dyadic factor(const NetworkNode& node, const char* name, std::int64_t lowest = 0) const;
  /// The layer of a node with weights, whose inputs have codes of that type.
  IntegerLinear layer(const NetworkNode& node);
  View linear(const NetworkNode& node);
  [[nodiscard]] hw::Window window_of(const NetworkNode& node, hw::Gather gather, std::size_t rows,
                                     std::size_t cols) const;
  /// Weights [n, c, rows, cols] with the channels of a pixel next to each other, as a window reads
  /// them.
  static void turn_weights(IntegerLinear& layer, std::size_t pixels);
  View convolution(const NetworkNode& node);
  /// The ReLU that alone reads a node's result, or null.
  [[nodiscard]] const NetworkNode* only_relu(const NetworkNode& node) const;
  View pooling(const NetworkNode& node, hw::Gather gather, const hw::Stage& stage);
  View max_pool(const NetworkNode& node);
  View average_pool(const NetworkNode& node);
  View pad(const NetworkNode& node);
  View clamped(const std::string& name, const View& sum, hw::DType to);
  View add(const NetworkNode& node);
  View add_table(const NetworkNode& node);
  View requantise(const NetworkNode& node);
  using TensorStage = hw::Stage(hw::DType type, unsigned shift, unsigned bits,
                                hw::Rounding rounding);
  /// What a stage makes of a tensor and another one, with a shift.
  View with_tensor(const NetworkNode& node, TensorStage* stage);
  View multiply(const NetworkNode& node);
  View divide(const NetworkNode& node);
  View relu(const NetworkNode& node);
  View gelu(const NetworkNode& node);
  View silu(const NetworkNode& node);
  View tanh(const NetworkNode& node);
  static hw::IntExpConstants exponential(const NetworkNode& node);
  View layer_norm(const NetworkNode& node);
  View attention(const NetworkNode& node);

  const NetworkFile& file_;
  const hw::Machine::Datapath& datapath_;
  const ConstantCheck check_;
  GraphBuilder& builder_;
  const std::map<std::string, View>& values_;
  std::set<std::string> rectified_;  ///< results that their ReLU leaves as they are
};

/// The type of a graph's tensor for that of a network's value: "u8", "s8", "s16" or "s32".
[[nodiscard]] hw::DType value_dtype(const std::string& type);

}  // namespace systole::model
