#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hw/number/integer.h"
#include "model/graph/graph_builder.h"
#include "support/random/random_graph.h"
#include "support/random/random_stage.h"

/// Random chains of stages before and after random anchors, for what fusion may do with them.
namespace systole::test {

enum class Anchor : std::uint8_t { kGemm, kGemv, kLoad };
inline constexpr std::size_t kAnchors = 3;

inline bool fits(hw::IntRange inner, hw::IntRange outer) {
  return inner.lo >= outer.lo && inner.hi <= outer.hi;
}

/// Whether two nodes write the same elements, or row statistics.
inline bool writes_twice(const model::Graph& graph) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const model::Node& node = graph.nodes[i];
    for (std::size_t j = 0; j < i; ++j) {
      const model::Node& before = graph.nodes[j];
      if (overlap(before.out, node.out)) return true;
      if (node.statistics() != model::kNoTensor && node.statistics() == before.statistics() &&
          hw::statistics_written(node.stage()->stage) != 0 &&
          hw::statistics_written(before.stage()->stage) != 0) {
        return true;
      }
    }
  }
  return false;
}

/// A graph with one input "x" in three parts: 1 to 8 stages before the anchor, the anchor, 1
/// to 8 after it; then, at random, another anchor with stages around it, which may read what side
/// outputs of the first left. What the stages before it read may be written again before the anchor
/// runs, and results may be written over others.
class RandomFusion {
 public:
  RandomFusion(std::uint64_t seed, Anchor anchor) : random_(seed), builder_("random fusion") {
    x_ = input(anchor == Anchor::kGemv ? 1 : between(random_, 2, 20));
    saved_ = {x_};
    part(anchor);
    if (random_() % 2 != 0) part(anchor);
    builder_.tensor(x_.tensor).kind = model::Tensor::Kind::kOutput;
  }

  [[nodiscard]] model::Graph take() && { return std::move(builder_).take(); }

 private:
  /// Row statistics that an operator has left.
  struct Left {
    model::TensorId tensor;
    std::uint32_t words;
    std::uint32_t rows;
  };

  [[nodiscard]] std::uint32_t some_cols() {
    return random_() % 4 == 0 ? between(random_, 1, 40) : 2 * between(random_, 1, 20);
  }
  hw::DType some_type(hw::IntRange values) {
    std::vector<hw::DType> types;
    for (std::uint8_t i = 0; i < hw::kDTypes; ++i) {
      const auto type = static_cast<hw::DType>(i);
      if (fits(values, hw::range_of(type))) types.push_back(type);
    }
    return one_of<hw::DType>(random_, types);
  }
  [[nodiscard]] std::string name(const char* what) { return what + std::to_string(names_++); }

  model::View input(std::uint32_t rows) {
    const hw::DType type = some_type({0, 0});
    range_ = hw::range_of(type);
    return builder_.whole(
        builder_.add_tensor({"x", rows, some_cols(), type, model::Tensor::Kind::kInput, {}, 0.0}));
  }
  model::View constant(std::uint32_t rows, std::uint32_t cols, hw::DType type) {
    std::vector<std::uint8_t> bytes =
        random_bytes(random_, std::size_t{rows} * cols * hw::bytes_of(type));
    return builder_.whole(
        builder_.add_tensor({name("constant"), rows, cols, type, model::Tensor::Kind::kConstant,
                             std::move(bytes), 0.0}));
  }

  void part(Anchor anchor) {
    const model::View begin = x_;
    if (random_() % 3 == 0) variable_ = variable();
    chain(true);
    if (variable_.tensor != model::kNoTensor) write(variable_);
    if (!left_.empty() && random_() % 4 == 0) leave_again(left_[random_() % left_.size()]);
    const bool is_result = builder_.tensor(begin.tensor).kind == model::Tensor::Kind::kActivation;
    if (is_result && random_() % 4 == 0) write(begin);
    variable_ = {};
    if (anchor != Anchor::kLoad) {
      multiply();
      if (random_() % 2 == 0) add_channels();
    }
    chain(false);
  }

  /// A tensor like x, which an operator has written and another will write again.
  model::View variable() {
    const model::TensorId id = builder_.add_tensor(
        {name("variable"),
         x_.rows,
         x_.cols,
         some_type(kWritten),
         random_() % 2 == 0 ? model::Tensor::Kind::kActivation : model::Tensor::Kind::kState,
         {},
         0.0});
    write(builder_.whole(id));
    return builder_.whole(id);
  }

  /// Other values, in some of the rows.
  void write(model::View view) {
    const hw::Stage stage = written_stage();
    if (written_.count(view.tensor) != 0) {
      view.rows = between(random_, 1, view.rows);
      view.row += between(random_, 0, x_.rows - view.rows);
    }
    written_.insert(view.tensor);
    builder_.stage_to(name("write"), constant(view.rows, view.cols, hw::DType::kS8), stage, view);
  }
  [[nodiscard]] static hw::Stage written_stage() {
    hw::Stage stage = hw::default_stage(hw::StageOp::kClamp);
    stage.imm = {kWritten.lo, kWritten.hi};
    return stage;
  }

  /// Other row statistics, where some are.
  void leave_again(const Left& left) {
    hw::Stage stage = written_stage();
    stage.side = left.words == 1 ? hw::Reduction::kRowMax : hw::Reduction::kSumSquares;
    model::StageOperands operands;
    operands.statistics = left.tensor;
    builder_.stage(name("leave"), constant(left.rows, some_cols(), hw::DType::kS8), stage,
                   hw::DType::kS8, operands);
  }

  /// A bias and what looks like one: scaled, with a side output, or with words that saturate.
  void add_channels() {
    hw::Stage stage = random_stage(random_, hw::StageOp::kAdd, hw::Operand::kChannel);
    model::StageOperands operands;
    if (random_() % 4 == 0) {
      stage.side = static_cast<hw::Reduction>(between(random_, 1, hw::kReductions - 1));
    }
    static_cast<void>(statistics(stage, operands));  // it reads none
    if (random_() % 4 == 0) {
      operands.parameters.resize(x_.cols);
      for (std::int32_t& word : operands.parameters) {
        word = static_cast<std::int32_t>(between(random_, 0x7fffff00, 0x80000100));
      }
    }
    append(stage, std::move(operands));
  }

  void multiply() {
    const auto is_signed = [&] { return fits(range_, hw::range_of(hw::DType::kS8)); };
    if (!is_signed() && !fits(range_, hw::range_of(hw::DType::kU8))) narrow();
    hw::DType& type = builder_.tensor(x_.tensor).type;
    // An input keeps the type that it was made with.
    if (hw::bytes_of(type) != 1) type = is_signed() ? hw::DType::kS8 : hw::DType::kU8;
    const bool transposed = random_() % 2 != 0;
    const std::uint32_t n = some_cols();
    const model::View b =
        constant(transposed ? n : x_.cols, transposed ? x_.cols : n, hw::DType::kS8);
    x_ = builder_.matmul(name("product"), x_, b, transposed);
    range_ = kAnyResult;
    saved_ = {x_};
  }

  /// A requantisation to 8 bits.
  void narrow() { append(GraphSketch::to_bits(8, between(random_, 0, 12)), {}); }

  void chain(bool in_front) {
    in_place_ = !in_front;
    const std::uint32_t length = between(random_, 1, in_front ? 7 : 8);
    for (std::uint32_t i = 0; i < length; ++i) {
      while (!try_stage(in_front, i + 1 == length)) continue;
    }
  }

  bool try_stage(bool in_front, bool last) {
    const auto op = static_cast<hw::StageOp>(random_() % hw::kStageOps);
    const auto operand = static_cast<hw::Operand>(random_() % hw::kOperandKinds);
    const bool is_saved = operand == hw::Operand::kSaved;
    // A graph says it with a tensor.
    const auto kind = is_saved ? hw::Operand::kTensor : operand;
    if (!hw::stage_info(op).takes(kind)) return false;
    hw::Stage stage = random_stage(random_, op, kind);
    if (op == hw::StageOp::kRope && x_.cols % 2 != 0) return false;
    if (op == hw::StageOp::kTranspose && (!last || in_front)) return false;
    const bool seldom = random_() % 16 == 0;
    if (in_front && hw::stage_info(op).row_wise && !seldom) return false;
    if (op == hw::StageOp::kDivideRowSum && !fits(range_, hw::full_range(22))) return false;
    if (op == hw::StageOp::kLayerNormApply) stage.imm[4] = x_.cols;
    const bool aside = hw::statistics_written(stage) == 0 && op != hw::StageOp::kTranspose;
    if (aside && (!in_front || seldom) && random_() % 6 == 0) {
      stage.side = static_cast<hw::Reduction>(between(random_, 1, hw::kReductions - 1));
    }
    model::StageOperands operands;
    if (kind == hw::Operand::kTensor && !tensor(stage, is_saved, operands)) return false;
    // Last: what it notes as left has to be left.
    if (!statistics(stage, operands)) return false;
    const bool keeps = op == hw::StageOp::kSoftmax ||
                       (op == hw::StageOp::kMask && kind == hw::Operand::kImmediate);
    if (keeps && !in_front && random_() % 2 != 0)
      operands.valid_cols = between(random_, 1, x_.cols);
    append(stage, std::move(operands));
    return true;
  }

  /// False if the stage reads statistics and there are none for it.
  bool statistics(const hw::Stage& stage, model::StageOperands& operands) {
    const std::uint32_t reads = hw::statistics_read(stage);
    const std::uint32_t writes = hw::statistics_written(stage);
    if (reads != 0 && writes != 0) return false;
    if (reads != 0) {
      const auto found = std::find_if(left_.rbegin(), left_.rend(), [&](const Left& left) {
        return left.words == reads && left.rows == x_.rows;
      });
      if (found == left_.rend()) return false;
      operands.statistics = found->tensor;
    }
    if (writes != 0) {
      operands.statistics = builder_.add_tensor({name("statistics"),
                                                 x_.rows,
                                                 writes,
                                                 hw::DType::kS32,
                                                 model::Tensor::Kind::kActivation,
                                                 {},
                                                 0.0});
      left_.push_back({operands.statistics, writes, x_.rows});
    }
    return true;
  }

  bool tensor(hw::Stage& stage, bool is_saved, model::StageOperands& operands) {
    if (is_saved) {
      if (saved_.empty()) return false;
      operands.tensor = saved_[random_() % saved_.size()];
      const model::View& view = operands.tensor;
      if (view.rows != x_.rows || view.cols != x_.cols) return false;
    } else if (variable_.tensor != model::kNoTensor && variable_.cols == x_.cols) {
      operands.tensor = variable_;
    } else {
      operands.tensor = constant(x_.rows, x_.cols, some_type({0, 0}));
    }
    stage.tensor = builder_.tensor(operands.tensor.tensor).type;
    return true;
  }

  /// Whether a result may take the place of x.
  bool may_write_over() {
    const model::Tensor& x = builder_.tensor(x_.tensor);
    return x.kind == model::Tensor::Kind::kActivation && fits(range_, hw::range_of(x.type)) &&
           std::none_of(saved_.begin(), saved_.end(),
                        [&](const model::View& view) { return view.tensor == x_.tensor; });
  }

  void append(const hw::Stage& stage, model::StageOperands operands) {
    if (operands.parameters.empty()) {
      operands.parameters = random_parameters(random_, stage, x_.cols);
    }
    range_ = results_of(stage, range_);
    const bool turns = stage.op == hw::StageOp::kTranspose;
    if (in_place_ && !turns && may_write_over() && random_() % 16 == 0) {
      builder_.stage_to(name("in_place"), x_, stage, x_, std::move(operands));
      return;
    }
    const model::View out =
        builder_.whole(builder_.add_tensor({name(hw::stage_info(stage.op).name.data()),
                                            turns ? x_.cols : x_.rows,
                                            turns ? x_.rows : x_.cols,
                                            some_type(range_),
                                            model::Tensor::Kind::kActivation,
                                            {},
                                            0.0}));
    builder_.stage_to(builder_.tensor(out.tensor).name, x_, stage, out, std::move(operands));
    x_ = out;
  }

  static constexpr hw::IntRange kWritten{0, 100};  ///< of what is written again: fits every type

  Random random_;
  model::GraphBuilder builder_;
  model::View x_;                      ///< the result so far
  hw::IntRange range_{};               ///< of its values
  std::vector<model::View> saved_;     ///< a tensor operand may be one of these
  model::View variable_;               ///< another, if there is one
  bool in_place_ = false;              ///< a result may be written over what it is made of
  std::set<model::TensorId> written_;  ///< variables
  std::vector<Left> left_;
  std::uint32_t names_ = 0;
};

}  // namespace systole::test
