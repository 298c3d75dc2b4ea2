#include "testbench/rtl/engine/postop_engine.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "hw/postop/stage_constants.h"
#include "testbench/rtl/engine/engines.h"
#include "testbench/rtl/engine/own_block.h"

namespace systole::testbench {
namespace {

bool scales_tensor(const hw::Stage& stage) {
  return stage.operand == hw::Operand::kTensor && hw::scales_operand(stage);
}

/// The stage that a block does: without its side output, and the tensor operand of a sum goes
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

}  // namespace

PostopRtlEngine::PostopRtlEngine(std::uint32_t lanes, std::vector<std::unique_ptr<ChainRtl>> stages,
                                 RtlReport& report, std::unique_ptr<ChainRtl> pipeline,
                                 std::shared_ptr<SystemTime> time)
    : TimedRtl(std::move(time)), lanes_(lanes) {
  const auto checked = [&](std::unique_ptr<ChainRtl> rtl) {
    // The block itself shows its operations.
    const RtlCheck check(report[rtl->block()], {});
    return Block{std::move(rtl), check};
  };
  for (auto& rtl : stages) stages_.push_back(checked(std::move(rtl)));
  if (pipeline) pipeline_ = checked(std::move(pipeline));
}

bool PostopRtlEngine::runs_as_pipeline(const hw::Chain& chain) const {
  return pipeline_ && !chain.stages.empty() && pipeline_->rtl->serves(chain);
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
  if (runs_as_pipeline(chain)) {
    std::vector<std::int32_t> expected(values_.size());
    hw::ChainOperands model = operands;
    model.out = expected.data();
    model.out_pitch = operands.cols * sizeof(std::int32_t);
    hw::apply_chain({chain.stages, hw::DType::kS32}, model);
    run(*pipeline_, chain, operands, expected);
  }
  hw::ChainOperands out = operands;
  out.accumulator = values_.data();
  out.accumulator_pitch = operands.cols;
  hw::Chain end{{}, chain.out};
  if (hw::transposes(chain)) end.stages.push_back(chain.stages.back());
  hw::apply_chain(end, out);
}

// The blocks leave row sums of a softmax; other side outputs are the model's.
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
  std::vector<std::int32_t> input = values_;
  bool is_served = false;
  for (Block& block : stages_) {
    if (!block.rtl->serves(lone(stage))) continue;
    run(block, lone(stage), on_words(operands, input, values_), expected);
    if (!statistics.empty()) {
      block.check.values(operands.row_statistics, statistics.data(), statistics.size());
    }
    is_served = true;
  }
  if (is_served) return;
  values_ = std::move(expected);
  std::copy(statistics.begin(), statistics.end(), operands.row_statistics);
}

/// Runs a block and leaves its results in `values_`.
void PostopRtlEngine::run(Block& block, const hw::Chain& chain, const hw::ChainOperands& operands,
                          const std::vector<std::int32_t>& expected) {
  block.check.operation();
  block.check.begin(block.rtl->contract(chain, operands.rows, operands.cols));
  block.check.end(
      block.check
          .run([&] { return block.rtl->run(chain, operands, values_.data(), expected.data()); })
          .cycles);
  block.check.values(values_.data(), expected.data(), expected.size());
  block.check.assertions(block.rtl->failed());
}

hw::ChainCycles PostopRtlEngine::cycles(const hw::Chain& chain, std::uint64_t rows,
                                        std::uint64_t cols) {
  hw::ChainCycles cycles = hw::chain_cycles(chain, rows, cols, lanes_);
  std::int64_t fill = static_cast<std::int64_t>(cycles.fill);
  for (const hw::Stage& stage : chain.stages) {
    const hw::Chain alone = lone(served(stage));
    for (const Block& block : stages_) {
      if (block.rtl->serves(alone)) fill += excess(block, alone, rows, cols);
    }
  }
  if (runs_as_pipeline(chain)) fill += excess(*pipeline_, chain, rows, cols);
  cycles.fill = static_cast<std::uint64_t>(std::max<std::int64_t>(fill, 0));
  return cycles;
}

// How long a block takes depends on the shape, and for softmax on its mode, but not on values.
std::int64_t PostopRtlEngine::excess(const Block& block, const hw::Chain& chain, std::size_t rows,
                                     std::size_t cols) {
  ChainRtl& rtl = *block.rtl;
  std::vector<std::uint64_t> shape{rows, cols};
  for (const hw::Stage& stage : chain.stages) {
    shape.insert(shape.end(), {hw::stage_latency(stage), hw::statistics_passes(stage)});
  }
  const auto [entry, is_new] = excess_.try_emplace({&rtl, std::move(shape)}, 0);
  if (is_new) {
    const std::vector<std::int32_t> zeros(
        std::max<std::size_t>(rows, hw::parameter_words(chain)) * cols, 0);
    std::vector<std::uint32_t> statistics(
        rows * std::max<std::size_t>(hw::statistics_words(chain), 1), 1);
    std::vector<std::int32_t> words(rows * cols);
    hw::ChainOperands operands;
    operands.accumulator = operands.parameters = zeros.data();
    operands.accumulator_pitch = operands.cols = cols;
    operands.tensors.fill({zeros.data(), cols * sizeof(std::int32_t)});
    operands.row_statistics = statistics.data();
    operands.rows = rows;
    // No operation of the system.
    const std::uint64_t begins = time_ ? time_->cycle() : SystemTime::kNone;
    if (time_) time_->begin_at(SystemTime::kNone);
    const RtlCycles taken = block.check.run([&] { return rtl.run(chain, operands, words.data()); });
    entry->second = static_cast<std::int64_t>(taken.cycles) -
                    static_cast<std::int64_t>(rtl.contract(chain, rows, cols));
    if (time_) time_->begin_at(begins);
  }
  return entry->second;
}

std::unique_ptr<hw::PostopEngine> make_postop_engine(const hw::Machine::Backends& backends,
                                                     std::uint32_t lanes, const RtlOptions& options,
                                                     RtlReport& report) {
  const auto add = [&](auto& to, hw::Backend backend, const char* block, auto make) {
    if (backend != hw::Backend::kRtl) return;
    const bool has_lanes = std::string_view(block) != "i_sqrt";
    const RtlOptions its = options.for_block(block, has_lanes ? lanes : 1);
    const OwnSize size{"lanes", "postop.lanes", lanes};
    const OwnBlock* const own = has_lanes ? find_own(options, block, block, {size}, report[block])
                                          : find_own(options, block, block, {}, report[block]);
    to(own == nullptr ? std::unique_ptr<ChainRtl>(make(lanes, its))
                      : make_own<ChainRtl>(*own, {}, its));
  };
  std::vector<std::unique_ptr<ChainRtl>> stages;
  std::unique_ptr<ChainRtl> pipeline;
  const auto to_stages = [&](std::unique_ptr<ChainRtl> rtl) { stages.push_back(std::move(rtl)); };
  const auto to_pipeline = [&](std::unique_ptr<ChainRtl> rtl) { pipeline = std::move(rtl); };
  add(to_stages, backends.requantizer, "requantizer", make_requantizer);
  add(to_stages, backends.divider, "divider", make_divider);
  add(to_stages, backends.i_gelu, "i_gelu", make_i_gelu);
  add(to_stages, backends.i_exp, "i_exp", make_i_exp);
  add(to_stages, backends.softmax_unit, "softmax_unit", make_softmax_unit);
  add(to_stages, backends.i_sqrt, "i_sqrt",
      [](std::uint32_t, const RtlOptions& its) { return make_i_sqrt(its); });
  add(to_stages, backends.layernorm_unit, "layernorm_unit", make_layernorm_unit);
  add(to_pipeline, backends.postop_pipeline, "postop_pipeline", make_postop_pipeline);
  if (stages.empty() && !pipeline) return nullptr;
  return std::make_unique<PostopRtlEngine>(lanes, std::move(stages), report, std::move(pipeline),
                                           options.time);
}

}  // namespace systole::testbench
