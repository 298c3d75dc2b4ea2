#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "hw/function/gelu.h"
#include "hw/function/softmax.h"
#include "hw/machine/machine.h"
#include "model/graph/graph_builder.h"
#include "model/graph/stages.h"
#include "support/random/random_machine.h"

/// Small graphs with random values, for every way in which operators can follow each other.
namespace systole::test {

inline std::vector<std::uint8_t> random_bytes(Random& random, std::size_t count) {
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}
inline std::vector<std::int32_t> random_values(Random& random, std::size_t count,
                                               std::int32_t largest) {
  std::vector<std::int32_t> values(count);
  for (std::int32_t& value : values) {
    value = static_cast<std::int32_t>(between(random, 0, static_cast<std::uint32_t>(2 * largest))) -
            largest;
  }
  return values;
}

/// Tensors and nodes with as little text as a test deserves.
class GraphSketch {
 public:
  GraphSketch(std::string name, std::uint64_t seed) : builder_(std::move(name)), random_(seed) {}

  model::View input(const std::string& name, std::uint32_t rows, std::uint32_t cols,
                    hw::DType type = hw::DType::kS8) {
    return builder_.whole(
        builder_.add_tensor({name, rows, cols, type, model::Tensor::Kind::kInput, {}, 0.0}));
  }
  model::View weight(const std::string& name, std::uint32_t rows, std::uint32_t cols) {
    return builder_.whole(
        builder_.add_tensor({name, rows, cols, hw::DType::kS8, model::Tensor::Kind::kConstant,
                             random_bytes(random_, std::size_t{rows} * cols), 0.0}));
  }
  model::View matmul(const std::string& name, model::View a, model::View b,
                     bool transposed = false) {
    return builder_.matmul(name, a, b, transposed);
  }
  model::View stage(const std::string& name, model::View in, const hw::Stage& stage, hw::DType type,
                    model::View tensor = {}, model::TensorId statistics = model::kNoTensor) {
    return builder_.stage(name, in, stage, type, operands(stage, in.cols, tensor, statistics));
  }
  void stage_to(const std::string& name, model::View in, const hw::Stage& stage, model::View out,
                model::TensorId statistics = model::kNoTensor) {
    builder_.stage_to(name, in, stage, out, operands(stage, in.cols, {}, statistics));
  }
  /// A tensor that several nodes write a part of, or row sums.
  model::TensorId tensor(const std::string& name, std::uint32_t rows, std::uint32_t cols,
                         hw::DType type) {
    return builder_.add_tensor({name, rows, cols, type, model::Tensor::Kind::kActivation, {}, 0.0});
  }
  [[nodiscard]] model::View whole(model::TensorId id) const { return builder_.whole(id); }

  /// The last tensor becomes the output.
  model::Graph take(model::View out) {
    builder_.tensor(out.tensor).kind = model::Tensor::Kind::kOutput;
    return std::move(builder_).take();
  }
  Random& random() { return random_; }

  // Stages whose results use their type well, whatever the width of the sums.
  static hw::Stage to_bits(unsigned bits, unsigned shift) {
    return model::requantise_stage({1 << 14, static_cast<std::int8_t>(shift + 14)}, bits,
                                   hw::Rounding::kHalfUp);
  }
  static hw::Stage relu() {
    hw::Stage stage;
    stage.op = hw::StageOp::kRelu;
    return stage;
  }
  static hw::Stage gelu() { return model::gelu_stage(hw::make_gelu_constants(0.04, 0.03), 8); }
  static hw::Stage softmax(hw::SoftmaxMode mode) {
    hw::Machine::Datapath datapath;
    datapath.softmax = mode;
    hw::SoftmaxOptions options;
    options.mode = mode;
    const hw::SoftmaxConstants constants = hw::make_softmax_constants(0.002, options);
    return model::softmax_stage(datapath, constants.score, options.fraction_bits,
                                constants.exp_to_code);
  }
  static hw::Stage layer_norm() { return model::layer_norm_stage(8, 12, 8); }

 private:
  model::StageOperands operands(const hw::Stage& stage, std::uint32_t cols, model::View tensor,
                                model::TensorId statistics) {
    model::StageOperands result;
    result.tensor = tensor;
    result.statistics = statistics;
    if (hw::parameter_words(stage) == 1) {
      result.parameters = random_values(random_, cols, 5000);
    } else if (hw::parameter_words(stage) == 2) {
      // Multipliers, then the shifts of a requantisation or the addends of a LayerNorm.
      result.parameters = random_values(random_, cols, 30000);
      for (std::uint32_t i = 0; i < cols; ++i) {
        result.parameters.push_back(stage.op == hw::StageOp::kRequantise
                                        ? static_cast<std::int32_t>(between(random_, 18, 26))
                                        : random_values(random_, 1, 40000).front());
      }
    }
    return result;
  }

  model::GraphBuilder builder_;
  Random random_;
};

/// C[m x n] = A[m x k] B, where B is a weight or an activation, stored either way round, A signed
/// or unsigned, with one of the tails that networks have.
inline model::Graph random_matmul_graph(std::uint64_t seed, std::uint32_t m, std::uint32_t n,
                                        std::uint32_t k) {
  GraphSketch g("random matmul", seed);
  Random& random = g.random();
  const bool transposed = random() % 2 != 0;
  const bool is_weight = random() % 2 != 0;
  const std::uint32_t b_rows = transposed ? n : k;
  const std::uint32_t b_cols = transposed ? k : n;
  model::View a = g.input("a", m, k, random() % 2 != 0 ? hw::DType::kS8 : hw::DType::kU8);
  const model::View b = is_weight ? g.weight("b", b_rows, b_cols) : g.input("b", b_rows, b_cols);
  // An activation instead of an input: it may stay on chip.
  if (random() % 2 != 0) a = g.stage("a.clamp", a, model::clamp_stage(7), hw::DType::kS8);
  model::View x = g.matmul("c", a, b, transposed);
  const auto tail = random() % 7;
  if (tail == 0) return g.take(x);
  x = g.stage("bias", x, model::bias_stage(), hw::DType::kS32);
  if (tail == 1) return g.take(x);
  if (tail == 2) {
    x = g.stage("channels", x, model::channel_requantise_stage(8, hw::Rounding::kHalfEven),
                hw::DType::kS8);
    return g.take(g.stage("gelu", x, GraphSketch::gelu(), hw::DType::kS8));
  }
  x = g.stage("sixteen", x, GraphSketch::to_bits(15, 5), hw::DType::kS16);
  if (tail == 3) {
    const model::View residual = g.input("residual", m, n, hw::DType::kS16);
    x = g.stage("add", x,
                model::add_tensor_stage(hw::DType::kS16, {3, 3}, 14, hw::Rounding::kHalfUp),
                hw::DType::kS32, residual);
    return g.take(g.stage("norm", x, GraphSketch::layer_norm(), hw::DType::kS8));
  }
  if (tail == 4) {
    const model::TensorId sums = g.tensor("sums", m, 1, hw::DType::kS32);
    return g.take(g.stage("softmax", x, GraphSketch::softmax(hw::SoftmaxMode::kDeferred),
                          hw::DType::kU8, {}, sums));
  }
  if (tail == 5) {
    x = g.stage("softmax", x, GraphSketch::softmax(hw::SoftmaxMode::kNormalisedRound),
                hw::DType::kU8);
    return g.take(g.stage("halve", x, GraphSketch::to_bits(8, 1), hw::DType::kS8));
  }
  return g.take(g.stage("relu", x, GraphSketch::relu(), hw::DType::kS16));
}

}  // namespace systole::test
