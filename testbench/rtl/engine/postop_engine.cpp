#include "testbench/rtl/engine/postop_engine.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "hw/postop/stage_constants.h"

namespace systole::testbench {
namespace {

bool scales_tensor(const hw::Stage& stage) {
  return stage.operand == hw::Operand::kTensor && hw::scales_operand(stage);
}

/// The stage that a twin serves: without its side output, and the tensor operand of a sum goes
/// through the requantiser.
hw::Stage served(hw::Stage stage) {
  stage.side = hw::Reduction::kNone;
  if (!scales_tensor(stage)) return stage;
  stage.op = hw::StageOp::kRequantise;
  stage.operand = hw::Operand::kImmediate;
  return stage;
}

/// A stage by itself, s32 in and out.
hw::Chain lone(const hw::Stage& stage) { return {{stage}, hw::DType::kS32}; }

hw::ChainOperands on_words(hw::ChainOperands operands, std::vector<std::int32_t>& from,
                           std::vector<std::int32_t>& to) {
  operands.accumulator = from.data();
  operands.accumulator_pitch = operands.cols;
  operands.out = to.data();
  operands.out_pitch = operands.cols * sizeof(std::int32_t);
  return operands;
}

template <typename T>
std::uint64_t differences(const std::vector<T>& a, const std::vector<T>& b) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i] ? 1 : 0;
  return count;
}

}  // namespace

PostopRtlEngine::PostopRtlEngine(std::uint32_t lanes, std::vector<std::unique_ptr<StageTwin>> twins,
                                 RtlReport& report, std::unique_ptr<ChainTwin> pipeline)
    : lanes_(lanes), twins_(std::move(twins)), pipeline_(std::move(pipeline)), report_(report) {
  for (const auto& twin : twins_) report_[twin->block()];
  if (pipeline_) report_[pipeline_->block()];
}

// One stage after the other over the whole tile: RTL that is a stage of a pipeline delivers the
// same values as RTL that runs alone.
void PostopRtlEngine::apply(const hw::Chain& chain, const hw::ChainOperands& operands) {
  if (operands.rows == 0 || operands.cols == 0) return;
  values_.resize(operands.rows * operands.cols);
  hw::ChainOperands in = operands;
  in.out = values_.data();
  in.out_pitch = operands.cols * sizeof(std::int32_t);
  hw::apply_chain({{}, hw::DType::kS32}, in);
  saved_ = values_;
  std::size_t word = 0;
  std::size_t port = 0;
  for (hw::Stage stage : chain.stages) {
    hw::ChainOperands its = operands;
    its.parameters = operands.parameters + word * operands.cols;
    word += hw::parameter_words(stage);
    if (stage.operand == hw::Operand::kTensor) {
      its.tensors[0] = operands.tensors.at(port++);
    } else if (stage.operand == hw::Operand::kSaved) {
      stage.operand = hw::Operand::kTensor;
      stage.tensor = hw::DType::kS32;
      its.tensors[0] = {saved_.data(), operands.cols * sizeof(std::int32_t)};
    }
    if (stage.op == hw::StageOp::kTranspose) continue;
    hw::Stage bare = stage;
    bare.side = hw::Reduction::kNone;
    apply_stage(bare, its);
    if (stage.side != hw::Reduction::kNone) side_output(stage, its);
  }
  if (pipeline_ && pipeline_->serves(chain)) run_pipeline(chain, operands);
  hw::ChainOperands out = operands;
  out.accumulator = values_.data();
  out.accumulator_pitch = operands.cols;
  hw::Chain end{{}, chain.out};
  if (hw::transposes(chain)) end.stages.push_back(chain.stages.back());
  hw::apply_chain(end, out);
}

/// The twins leave row sums of a softmax; other side outputs are the model's.
void PostopRtlEngine::side_output(const hw::Stage& stage, const hw::ChainOperands& operands) {
  hw::Stage clamp;
  clamp.op = hw::StageOp::kClamp;
  clamp.side = stage.side;
  clamp.imm = {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};
  std::vector<std::int32_t> same(values_.size());
  hw::apply_chain(lone(clamp), on_words(operands, values_, same));
}

void PostopRtlEngine::apply_stage(const hw::Stage& stage, const hw::ChainOperands& operands) {
  hw::ChainOperands model = operands;
  if (scales_tensor(stage)) {
    std::vector<std::int32_t> tensor(values_.size());
    for (std::size_t row = 0; row < operands.rows; ++row) {
      hw::row::widen(static_cast<const unsigned char*>(operands.tensors[0].data) +
                         row * operands.tensors[0].pitch,
                     stage.tensor, tensor.data() + row * operands.cols, operands.cols);
    }
    values_.swap(tensor);
    apply_stage(served(stage), operands);
    values_.swap(tensor);
    hw::Stage add = stage;
    add.imm = {};
    add.tensor = hw::DType::kS32;
    model.tensors[0] = {tensor.data(), operands.cols * sizeof(std::int32_t)};
    std::vector<std::int32_t> sums(values_.size());
    hw::apply_chain(lone(add), on_words(model, values_, sums));
    values_.swap(sums);
    return;
  }
  std::vector<std::int32_t> expected(values_.size());
  std::vector<std::uint32_t> statistics;
  if (operands.row_statistics != nullptr) {
    const std::uint32_t words = hw::statistics_words(lone(stage));
    statistics.assign(operands.row_statistics, operands.row_statistics + operands.rows * words);
    model.row_statistics = statistics.data();
  }
  hw::apply_chain(lone(stage), on_words(model, values_, expected));
  const std::vector<std::int32_t> input = values_;
  bool is_served = false;
  for (const auto& twin : twins_) {
    if (!twin->serves(stage)) continue;
    if (is_served) values_ = input;
    run_twin(*twin, stage,
             {values_.data(), operands.rows, operands.cols, model.parameters,
              operands.row_statistics, operands.valid_cols},
             expected, statistics);
    is_served = true;
  }
  if (is_served) return;
  values_ = std::move(expected);
  std::copy(statistics.begin(), statistics.end(), operands.row_statistics);
}

void PostopRtlEngine::run_twin(StageTwin& twin, const hw::Stage& stage, const StageRows& rows,
                               const std::vector<std::int32_t>& expected,
                               const std::vector<std::uint32_t>& expected_statistics) {
  const RtlCycles taken = twin.run(stage, rows, expected.data());
  count(twin, taken, twin.contract(stage, rows.rows, rows.cols), expected);
  if (!expected_statistics.empty()) {
    report_[twin.block()].mismatches +=
        differences(expected_statistics, {rows.row_statistics, rows.row_statistics + rows.rows});
  }
}

/// Counts an operation that has left its results in `values_`.
template <typename Twin>
void PostopRtlEngine::count(const Twin& twin, const RtlCycles& taken, std::uint64_t contract,
                            const std::vector<std::int32_t>& expected) {
  RtlCounts& counts = report_[twin.block()];
  ++counts.operations;
  counts.cycles += taken.cycles;
  counts.mismatches += differences(expected, values_);
  if (taken.cycles != contract) ++counts.mismatches;
  if (twin.failed() && failed_.insert(&twin).second) ++counts.mismatches;
}

void PostopRtlEngine::run_pipeline(const hw::Chain& chain, const hw::ChainOperands& operands) {
  std::vector<std::int32_t> expected(values_.size());
  hw::ChainOperands model = operands;
  model.out = expected.data();
  model.out_pitch = operands.cols * sizeof(std::int32_t);
  hw::apply_chain({chain.stages, hw::DType::kS32}, model);
  const RtlCycles taken = pipeline_->run(chain, operands, values_, expected.data());
  count(*pipeline_, taken, pipeline_->contract(chain, operands.rows, operands.cols), expected);
}

hw::ChainCycles PostopRtlEngine::cycles(const hw::Chain& chain, std::uint64_t rows,
                                        std::uint64_t cols) {
  hw::ChainCycles cycles = hw::chain_cycles(chain, rows, cols, lanes_);
  std::int64_t fill = static_cast<std::int64_t>(cycles.fill);
  for (const hw::Stage& any : chain.stages) {
    hw::Stage stage = served(any);
    stage.side = hw::Reduction::kNone;
    for (const auto& twin : twins_) {
      if (twin->serves(stage)) fill += excess(*twin, stage, rows, cols);
    }
  }
  if (pipeline_ && pipeline_->serves(chain)) fill += pipeline_excess(chain, rows, cols);
  cycles.fill = static_cast<std::uint64_t>(std::max<std::int64_t>(fill, 0));
  return cycles;
}

// How long a block takes depends on the shape, and for softmax on its mode, but not on values.
std::int64_t PostopRtlEngine::excess(StageTwin& twin, const hw::Stage& stage, std::size_t rows,
                                     std::size_t cols) {
  const auto [entry, is_new] =
      excess_.try_emplace(Shape{&twin, stage.op, stage.imm[0], rows, cols}, 0);
  if (is_new) {
    std::vector<std::int32_t> zeros(rows * cols, 0);
    std::vector<std::int32_t> expected(zeros.size());
    const std::vector<std::int32_t> parameters(hw::parameter_words(stage) * cols, 0);
    std::vector<std::uint32_t> statistics(rows, 1);
    hw::ChainOperands model;
    model.parameters = parameters.data();
    model.row_statistics = statistics.data();
    model.rows = rows;
    model.cols = cols;
    hw::apply_chain(lone(stage), on_words(model, zeros, expected));
    const RtlCycles taken =
        twin.run(stage, {zeros.data(), rows, cols, parameters.data(), statistics.data(), 0},
                 expected.data());
    entry->second = static_cast<std::int64_t>(taken.cycles) -
                    static_cast<std::int64_t>(twin.contract(stage, rows, cols));
  }
  return entry->second;
}

std::int64_t PostopRtlEngine::pipeline_excess(const hw::Chain& chain, std::size_t rows,
                                              std::size_t cols) {
  std::vector<std::uint64_t> shape;
  for (const hw::Stage& stage : chain.stages) shape.push_back(hw::stage_latency(stage));
  shape.insert(shape.end(), {rows, cols});
  const auto [entry, is_new] = pipeline_excess_.try_emplace(std::move(shape), 0);
  if (is_new) {
    const std::vector<std::int32_t> zeros(
        std::max<std::size_t>(rows, hw::parameter_words(chain)) * cols, 0);
    std::vector<std::uint32_t> statistics(rows * hw::statistics_words(chain), 0);
    hw::ChainOperands operands;
    operands.accumulator = zeros.data();
    operands.accumulator_pitch = cols;
    operands.parameters = zeros.data();
    operands.tensors.fill({zeros.data(), cols * sizeof(std::int32_t)});
    operands.row_statistics = statistics.data();
    operands.rows = rows;
    operands.cols = cols;
    std::vector<std::int32_t> words;
    const RtlCycles taken = pipeline_->run(chain, operands, words, nullptr);
    entry->second = static_cast<std::int64_t>(taken.cycles) -
                    static_cast<std::int64_t>(pipeline_->contract(chain, rows, cols));
  }
  return entry->second;
}

}  // namespace systole::testbench
