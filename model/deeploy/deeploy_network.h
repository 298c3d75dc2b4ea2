#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// Deeploy's integer networks as `systole convert` writes them: operators on tensors of any rank,
/// computed value by value (hw/function/deeploy.h). No machine runs them.
namespace systole::model {

/// Integers of 32 bits, row-major.
struct IntegerTensor {
  std::vector<std::size_t> shape;
  std::vector<std::int64_t> values;
};
using IntegerTensors = std::map<std::string, IntegerTensor>;

// The move of the library's document asserts what always holds.
// NOLINTNEXTLINE(bugprone-exception-escape)
struct DeeployNode {
  std::string name, op, output;
  std::vector<std::string> inputs;
  nlohmann::json attributes;
  std::vector<std::size_t> shape;  ///< of the output
};

// NOLINTNEXTLINE(bugprone-exception-escape): as above
class DeeployNetwork {
 public:
  /// Reads a network file. Throws InputError that names file and node: of a file of another kind,
  /// an operand that no node before has made, an attribute that is missing or of another kind.
  [[nodiscard]] static DeeployNetwork open(const std::string& path);

  [[nodiscard]] const std::vector<std::string>& outputs() const { return outputs_; }
  [[nodiscard]] const std::vector<DeeployNode>& nodes() const { return nodes_; }

  /// The inputs and every node's result by name. Throws InputError that names the node: shapes that
  /// do not fit together, or a value beyond 32 bits.
  [[nodiscard]] IntegerTensors run(const IntegerTensors& inputs) const;

 private:
  std::string path_;
  IntegerTensors constants_;
  std::map<std::string, std::vector<std::size_t>> inputs_;  ///< shapes
  std::vector<std::string> outputs_;
  std::vector<DeeployNode> nodes_;
};

/// Most elements of a tensor.
inline constexpr std::size_t kMostDeeployElements = std::size_t{1} << 24;

/// Computes one node. `operands` are those of its inputs. Throws InputError without a place.
[[nodiscard]] IntegerTensor compute(const DeeployNode& node,
                                    const std::vector<const IntegerTensor*>& operands);

/// Names of the operators that compute() knows.
[[nodiscard]] const std::vector<std::string>& deeploy_operators();

}  // namespace systole::model
