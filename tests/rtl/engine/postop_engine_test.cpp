#include "testbench/rtl/engine/postop_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "base/error.h"
#include "testbench/rtl/engine/engines.h"
#include "tests/rtl/drive/unit_test.h"
#include "tests/rtl/engine/chain_run.h"
#include "tests/rtl/postop/pipeline_case.h"

namespace systole::testbench {
namespace {

TEST(PostopRtlEngine, ComputesAnyChainLikeTheModel) {
  std::mt19937_64 random(7);
  for (const std::uint32_t lanes : {4U, 16U, 64U}) {
    RtlReport report;
    RtlOptions options;
    options.checked = true;
    hw::Machine::Backends blocks = postop_blocks();
    if (lanes == 64) {
      for (hw::Backend* block :
           {&blocks.postop_pipeline, &blocks.softmax_unit, &blocks.i_exp, &blocks.divider}) {
        *block = hw::Backend::kModel;
      }
    }
    const auto rtl = make_postop_engine(blocks, lanes, options, report);
    hw::PostopModel model(lanes);
    for (int i = 0; i < 400; ++i) {
      hw::test::Random chain_random(static_cast<unsigned>(i));
      const ChainRun run(hw::test::random_chain(chain_random, 6), 1 + random() % 6,
                         1 + random() % (lanes == 64 ? 200 : 70), random);
      const ChainRun::Result expected = run.on(model);
      const ChainRun::Result actual = run.on(*rtl);
      ASSERT_EQ(actual.out, expected.out) << i;
      ASSERT_EQ(actual.statistics, expected.statistics) << i;
      ASSERT_EQ(actual.cycles, expected.cycles) << i;
    }
    EXPECT_EQ(report.size(), lanes == 64 ? 4U : 8U);
    for (const auto& [block, counts] : report) {
      EXPECT_GT(counts.operations, 0U) << block;
      EXPECT_GT(counts.cycles, counts.operations) << block;
      EXPECT_EQ(counts.mismatches, 0U) << block;
    }
  }
}

enum class Fault : std::uint8_t { kNone, kValue, kCycle, kAssertion };

/// A block that does the stage relu, and is wrong in one way.
class Faulty final : public ChainRtl {
 public:
  explicit Faulty(Fault fault) : fault_(fault) {}
  [[nodiscard]] const char* block() const override { return "faulty"; }
  [[nodiscard]] bool serves(const hw::Chain& chain) const override {
    return chain.stages.size() == 1 && chain.stages[0].op == hw::StageOp::kRelu;
  }
  RtlCycles run(const hw::Chain& chain, const hw::ChainOperands& operands, std::int32_t* out,
                const std::int32_t*, const BackPressure&) override {
    const std::size_t count = operands.rows * operands.cols;
    for (std::size_t i = 0; i < count; ++i) out[i] = std::max(operands.accumulator[i], 0);
    if (fault_ == Fault::kValue) out[count - 1] ^= 1;
    return {contract(chain, operands.rows, operands.cols) + (fault_ == Fault::kCycle ? 3 : 0), 0};
  }
  [[nodiscard]] std::uint64_t contract(const hw::Chain&, std::size_t rows,
                                       std::size_t cols) const override {
    return 1 + rows * ((cols + 3) / 4);
  }
  [[nodiscard]] bool failed() const override { return fault_ == Fault::kAssertion; }

 private:
  Fault fault_;
};

struct FaultyRun {
  std::uint64_t mismatches;
  ChainRun::Result expected, actual;
};

/// Two operations of an engine with the block as a stage, or as the pipeline.
FaultyRun run_faulty(Fault fault, bool as_pipeline) {
  std::mt19937_64 random(1);
  hw::Stage relu;
  relu.op = hw::StageOp::kRelu;
  const ChainRun run({{relu}, hw::DType::kS32}, 3, 10, random);
  RtlReport report;
  std::vector<std::unique_ptr<ChainRtl>> stages;
  std::unique_ptr<ChainRtl> faulty = std::make_unique<Faulty>(fault), pipeline;
  (as_pipeline ? pipeline : stages.emplace_back()) = std::move(faulty);
  PostopRtlEngine rtl(4, std::move(stages), report, std::move(pipeline));
  hw::PostopModel model(4);
  (void)run.on(rtl);
  FaultyRun result{0, run.on(model), run.on(rtl)};
  result.mismatches = report.at("faulty").mismatches;
  return result;
}

TEST(PostopRtlEngine, CountsWhatDiffersAndPassesItOn) {
  for (const bool as_pipeline : {false, true}) {
    const FaultyRun none = run_faulty(Fault::kNone, as_pipeline);
    EXPECT_EQ(none.mismatches, 0U);
    EXPECT_EQ(none.actual.out, none.expected.out);
    EXPECT_EQ(none.actual.cycles, none.expected.cycles);

    const FaultyRun value = run_faulty(Fault::kValue, as_pipeline);
    EXPECT_EQ(value.mismatches, 2U) << "one in each of two operations";
    EXPECT_NE(value.actual.out, value.expected.out) << "the machine works with what the RTL says";

    const FaultyRun cycle = run_faulty(Fault::kCycle, as_pipeline);
    EXPECT_EQ(cycle.mismatches, 2U);
    EXPECT_EQ(cycle.actual.cycles, cycle.expected.cycles + 3);

    EXPECT_EQ(run_faulty(Fault::kAssertion, as_pipeline).mismatches, 1U) << "once for all";
  }
}

TEST(PostopRtlEngine, RefusesLanesThatAreNotBuilt) {
  RtlReport report;
  EXPECT_THROW((void)make_postop_engine(postop_blocks(), 8, {}, report), hw::InputError);
}

hw::Machine::Backends pipeline_in_rtl() {
  hw::Machine::Backends backends;
  backends.postop_pipeline = hw::Backend::kRtl;
  return backends;
}

std::vector<std::int8_t> bytes_of(hw::PostopEngine& engine, hw::Chain chain,
                                  const PipelineTile& tile) {
  chain.out = hw::DType::kS8;
  std::vector<std::int8_t> bytes(tile.elements());
  hw::ChainOperands operands = tile.operands();
  operands.out = bytes.data();
  operands.out_pitch = operands.cols;
  engine.apply(chain, operands);
  return bytes;
}

TEST(PipelineRtlEngine, RunsTheChainsThatThePipelineServes) {
  std::mt19937_64 random(31);
  for (const std::uint32_t lanes : kLaneBuilds) {
    RtlReport report;
    RtlOptions options;
    options.checked = true;
    const auto rtl = make_postop_engine(pipeline_in_rtl(), lanes, options, report);
    hw::PostopModel model(lanes);
    std::uint64_t served = 0;
    for (int i = 0; i < 60; ++i) {
      hw::Chain chain = pipeline_chain(random, random() % 9);
      if (i % 4 == 0) {  // one stage that it does not know
        hw::Stage divide;
        divide.op = hw::StageOp::kDivideRowSum;
        divide.operand = hw::Operand::kRow;
        chain.stages.resize(std::min<std::size_t>(chain.stages.size(), 7));
        chain.stages.push_back(divide);
      }
      served += i % 4 != 0 && !chain.stages.empty() ? 1 : 0;
      const PipelineTile tile(chain, 1 + random() % 4, 1 + random() % 70, random);
      ASSERT_EQ(bytes_of(*rtl, chain, tile), bytes_of(model, chain, tile)) << i;
      const std::size_t rows = tile.operands().rows;
      const std::size_t cols = tile.operands().cols;
      ASSERT_EQ(rtl->cycles(chain, rows, cols).total(rows),
                model.cycles(chain, rows, cols).total(rows))
          << i;
    }
    const RtlCounts& counts = report.at("postop_pipeline");
    EXPECT_EQ(counts.operations, served);
    EXPECT_GT(counts.cycles, counts.operations);
    EXPECT_EQ(counts.mismatches, 0U);
  }
}

TEST(PipelineRtlEngine, IsThereOnRequestInTheSizesThatAreBuilt) {
  RtlReport report;
  EXPECT_EQ(make_postop_engine({}, 8, {}, report), nullptr);
  EXPECT_THROW((void)make_postop_engine(pipeline_in_rtl(), 8, {}, report), hw::InputError);
}

}  // namespace
}  // namespace systole::testbench
