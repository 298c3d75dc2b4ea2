#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "hw/function/softmax.h"
#include "model/checkpoint/keep_mask.h"
#include "model/graph/graph_builder.h"
#include "model/graph/stages.h"

/// Graphs of one attention layer with stages anywhere.
namespace systole::test {

/// Sums, or a head's scores, that a stage reads a second time are its tensor operand.
struct AttentionSketch {
  std::uint32_t heads = 1, queries = 1, keys = 1, dim = 1;
  std::array<std::vector<hw::Stage>, 3> operands;  ///< of Q, K and V, the last gives s8
  std::vector<hw::Stage> scores;                   ///< before mask and softmax
  std::vector<hw::Stage> outputs;                  ///< after the SpMM, the last gives s8
  enum class Mask : std::uint8_t { kNone, kAdded, kSelects } mask = Mask::kNone;
  hw::Stage masking;               ///< if there is one
  std::vector<std::uint8_t> keep;  ///< [heads][queries][keys], bytes of 0 or 1
};

class AttentionGraph {
 public:
  explicit AttentionGraph(AttentionSketch sketch) : sketch_(std::move(sketch)) {}

  [[nodiscard]] model::Graph build() && {
    const std::uint32_t width = sketch_.heads * sketch_.dim;
    const std::uint32_t rows = std::max(sketch_.queries, sketch_.keys);
    const model::TensorId x =
        builder_.add_tensor({"x", rows, 3 * width, hw::DType::kS8, Kind::kInput, {}, 0.0});
    std::array<model::View, 3> all;
    for (std::uint32_t i = 0; i < 3; ++i) {
      all[i] = {x, 0, i * width, i == 0 ? sketch_.queries : sketch_.keys, width};
      all[i] = staged("operand" + std::to_string(i), all[i], sketch_.operands[i], model::kNoTensor);
    }
    out_ = builder_.whole(builder_.add_tensor(
        {"out", sketch_.queries, width, hw::DType::kS8, Kind::kOutput, {}, 0.0}));
    for (std::uint32_t head = 0; head < sketch_.heads; ++head) {
      const auto part = [&](const model::View& view) {
        return model::View{view.tensor, view.row, view.col + head * sketch_.dim, view.rows,
                           sketch_.dim};
      };
      add_head(head, part(all[0]), part(all[1]), part(all[2]), part(out_));
    }
    return std::move(builder_).take();
  }

 private:
  using Kind = model::Tensor::Kind;

  /// The last of the stages writes `to`, or a separate tensor if that is none: s8 of operands.
  model::View staged(const std::string& name, model::View in, const std::vector<hw::Stage>& stages,
                     model::TensorId statistics, const model::View* to = nullptr) {
    const model::View saved = in;
    model::StageOperands operands;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      const std::string own = name + "." + std::to_string(i);
      const bool last = i + 1 == stages.size();
      operands.tensor = stages[i].operand == hw::Operand::kTensor ? saved : model::View{};
      operands.statistics = hw::statistics_read(stages[i]) != 0 ? statistics : model::kNoTensor;
      if (last && to != nullptr) {
        builder_.stage_to(own, in, stages[i], *to, operands);
        return *to;
      }
      const bool byte = last && name.front() == 'o';
      in = builder_.stage(own, in, stages[i], byte ? hw::DType::kS8 : hw::DType::kS32, operands);
    }
    return in;
  }

  model::View masked(const std::string& name, std::uint32_t head, model::View scores) {
    if (sketch_.mask == AttentionSketch::Mask::kNone) return scores;
    const std::size_t cells = std::size_t{sketch_.queries} * sketch_.keys;
    const bool selects = sketch_.mask == AttentionSketch::Mask::kSelects;
    std::vector<std::uint8_t> table;
    for (std::size_t cell = 0; cell < cells; ++cell) {
      const bool kept = sketch_.keep[head * cells + cell] != 0;
      table.push_back(selects ? (kept ? 1 : 0)
                              : (kept ? 0 : static_cast<std::uint8_t>(model::kPrunedCode)));
    }
    model::StageOperands operands;
    operands.tensor = builder_.whole(
        builder_.add_tensor({name + ".table", sketch_.queries, sketch_.keys, hw::DType::kS8,
                             Kind::kConstant, std::move(table), 0.0}));
    return builder_.stage(name + ".mask", scores, sketch_.masking, hw::DType::kS32, operands);
  }

  void add_head(std::uint32_t head, model::View query, model::View key, model::View value,
                const model::View& out) {
    const std::string name = "head" + std::to_string(head);
    hw::Machine::Datapath datapath;
    const hw::SoftmaxConstants constants = hw::make_softmax_constants(kScoreScale);
    model::StageOperands operands;
    operands.statistics = builder_.add_tensor(
        {name + ".row_sum", sketch_.queries, 1, hw::DType::kS32, Kind::kActivation, {}, 0.0});
    model::View scores = builder_.matmul(name + ".scores", query, key, true);
    scores = masked(name, head, staged(name + ".score", scores, sketch_.scores, model::kNoTensor));
    const hw::Stage softmax = model::softmax_stage(
        datapath, constants.score, hw::kDefaultExpFractionBits, constants.exp_to_code);
    const model::View codes =
        builder_.stage(name + ".softmax", scores, softmax, hw::DType::kU8, operands);
    const model::View sums = builder_.matmul(name + ".sums", codes, value, false);
    staged(name + ".out", sums, sketch_.outputs, operands.statistics, &out);
  }

 public:
  /// Of a step of a score.
  static constexpr double kScoreScale = 0.002;

 private:
  AttentionSketch sketch_;
  model::GraphBuilder builder_{"attention"};
  model::View out_;
};

/// An added mask for scores in [-largest, largest].
[[nodiscard]] inline hw::Stage added_mask(std::int64_t largest) {
  const hw::SoftmaxConstants constants = hw::make_softmax_constants(AttentionGraph::kScoreScale);
  const std::int64_t depth =
      2 * largest + model::vanishing_distance(constants.score, hw::kDefaultExpFractionBits);
  const auto multiplier =
      static_cast<std::int32_t>((depth - model::kPrunedCode - 1) / -model::kPrunedCode);
  return model::add_tensor_stage(hw::DType::kS8, {multiplier, 0}, 31, hw::Rounding::kHalfUp);
}

/// Of scores of any size, which must be above it by the distance.
[[nodiscard]] inline hw::Stage selecting_mask(std::int64_t fill) {
  hw::Stage stage;
  stage.op = hw::StageOp::kMask;
  stage.operand = hw::Operand::kTensor;
  stage.tensor = hw::DType::kS8;
  stage.imm = {fill};
  return stage;
}

}  // namespace systole::test
