#include "testbench/rtl/engine/postop_engine.h"

#include <gtest/gtest.h>

#include <utility>

#include "base/error.h"
#include "tests/rtl/drive/unit_test.h"
#include "tests/rtl/engine/chain_run.h"

namespace systole::testbench {
namespace {

TEST(PostopRtlEngine, ComputesAnyChainLikeTheModel) {
  std::mt19937_64 random(7);
  for (const std::uint32_t lanes : kLaneBuilds) {
    RtlReport report;
    RtlOptions options;
    options.checked = true;
    PostopRtlEngine rtl(lanes, make_stage_twins(postop_blocks(), lanes, options), report,
                        make_chain_twin(postop_blocks(), lanes, options));
    hw::PostopModel model(lanes);
    for (int i = 0; i < 400; ++i) {
      hw::test::Random chain_random(static_cast<unsigned>(i));
      const ChainRun run(hw::test::random_chain(chain_random, 6), 1 + random() % 6,
                         1 + random() % 70, random);
      const ChainRun::Result expected = run.on(model);
      const ChainRun::Result actual = run.on(rtl);
      ASSERT_EQ(actual.out, expected.out) << i;
      ASSERT_EQ(actual.statistics, expected.statistics) << i;
      ASSERT_EQ(actual.cycles, expected.cycles) << i;
    }
    EXPECT_EQ(report.size(), 7U);
    for (const auto& [block, counts] : report) {
      EXPECT_GT(counts.operations, 0U) << block;
      EXPECT_GT(counts.cycles, counts.operations) << block;
      EXPECT_EQ(counts.mismatches, 0U) << block;
    }
  }
}

/// A block that is wrong in one way.
class Faulty final : public StageTwin {
 public:
  enum class Fault { kNone, kValue, kCycle, kAssertion };
  explicit Faulty(Fault fault) : fault_(fault) {}
  [[nodiscard]] const char* block() const override { return "faulty"; }
  [[nodiscard]] bool serves(const hw::Stage& stage) const override {
    return stage.op == hw::StageOp::kRelu;
  }
  RtlCycles run(const hw::Stage& stage, const StageRows& rows, const std::int32_t*) override {
    for (std::size_t i = 0; i < rows.rows * rows.cols; ++i) rows.x[i] = std::max(rows.x[i], 0);
    if (fault_ == Fault::kValue) rows.x[rows.rows * rows.cols - 1] ^= 1;
    failed_ = fault_ == Fault::kAssertion;
    return {contract(stage, rows.rows, rows.cols) + (fault_ == Fault::kCycle ? 3 : 0), 0};
  }
  [[nodiscard]] std::uint64_t contract(const hw::Stage&, std::size_t rows,
                                       std::size_t cols) const override {
    return 1 + rows * ((cols + 3) / 4);
  }
  [[nodiscard]] bool failed() const override { return failed_; }

 private:
  Fault fault_;
  bool failed_ = false;
};

struct FaultyRun {
  RtlCounts counts;
  ChainRun::Result expected, actual;
};

FaultyRun run_faulty(Faulty::Fault fault) {
  std::mt19937_64 random(1);
  hw::Stage relu;
  relu.op = hw::StageOp::kRelu;
  const ChainRun run({{relu}, hw::DType::kS32}, 3, 10, random);
  RtlReport report;
  std::vector<std::unique_ptr<StageTwin>> twins;
  twins.push_back(std::make_unique<Faulty>(fault));
  PostopRtlEngine rtl(4, std::move(twins), report);
  hw::PostopModel model(4);
  FaultyRun result{{}, run.on(model), run.on(rtl)};
  result.counts = report.at("faulty");
  return result;
}

TEST(PostopRtlEngine, CountsWhatDiffersAndPassesItOn) {
  const FaultyRun none = run_faulty(Faulty::Fault::kNone);
  EXPECT_EQ(none.counts.mismatches, 0U);
  EXPECT_EQ(none.actual.out, none.expected.out);

  const FaultyRun value = run_faulty(Faulty::Fault::kValue);
  EXPECT_EQ(value.counts.mismatches, 1U);
  EXPECT_NE(value.actual.out, value.expected.out) << "the machine works with what the RTL says";

  const FaultyRun cycle = run_faulty(Faulty::Fault::kCycle);
  EXPECT_EQ(cycle.counts.mismatches, 1U);
  EXPECT_EQ(cycle.actual.cycles, cycle.expected.cycles + 3);

  EXPECT_EQ(run_faulty(Faulty::Fault::kAssertion).counts.mismatches, 1U);
}

TEST(PostopRtlEngine, RefusesLanesThatAreNotBuilt) {
  EXPECT_THROW((void)make_stage_twins(postop_blocks(), 8, {}), hw::InputError);
}

}  // namespace
}  // namespace systole::testbench
