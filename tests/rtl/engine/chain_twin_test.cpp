#include "testbench/rtl/engine/chain_twin.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "base/error.h"
#include "testbench/rtl/engine/postop_engine.h"
#include "tests/rtl/drive/unit_test.h"
#include "tests/rtl/postop/pipeline_case.h"

namespace systole::testbench {
namespace {

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

TEST(ChainTwin, RunsTheChainsThatThePipelineServes) {
  std::mt19937_64 random(31);
  for (const std::uint32_t lanes : kLaneBuilds) {
    RtlReport report;
    RtlOptions options;
    options.checked = true;
    PostopRtlEngine rtl(lanes, {}, report, make_chain_twin(pipeline_in_rtl(), lanes, options));
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
      ASSERT_EQ(bytes_of(rtl, chain, tile), bytes_of(model, chain, tile)) << i;
      const std::size_t rows = tile.operands().rows;
      const std::size_t cols = tile.operands().cols;
      ASSERT_EQ(rtl.cycles(chain, rows, cols).total(rows),
                model.cycles(chain, rows, cols).total(rows))
          << i;
    }
    const RtlCounts& counts = report.at("postop_pipeline");
    EXPECT_EQ(counts.operations, served);
    EXPECT_GT(counts.cycles, counts.operations);
    EXPECT_EQ(counts.mismatches, 0U);
  }
}

/// A pipeline of the one stage relu that is wrong in one way.
class FaultyChain final : public ChainTwin {
 public:
  enum class Fault { kNone, kValue, kCycle, kAssertion };
  explicit FaultyChain(Fault fault) : fault_(fault) {}
  [[nodiscard]] const char* block() const override { return "faulty"; }
  [[nodiscard]] bool serves(const hw::Chain&) const override { return true; }
  RtlCycles run(const hw::Chain& chain, const hw::ChainOperands& operands,
                std::vector<std::int32_t>& words, const std::int32_t*) override {
    words.assign(operands.rows * operands.cols, 0);
    for (std::size_t i = 0; i < words.size(); ++i) {
      words[i] = std::max(operands.accumulator[i], 0);
    }
    if (fault_ == Fault::kValue) words.back() ^= 1;
    return {contract(chain, operands.rows, operands.cols) + (fault_ == Fault::kCycle ? 3 : 0), 0};
  }
  [[nodiscard]] std::uint64_t contract(const hw::Chain& chain, std::size_t rows,
                                       std::size_t cols) const override {
    return hw::chain_cycles(chain, rows, cols, 4).total(rows);
  }
  [[nodiscard]] bool failed() const override { return fault_ == Fault::kAssertion; }

 private:
  Fault fault_;
};

struct Outcome {
  std::uint64_t mismatches;
  bool same_values;
  std::uint64_t more_cycles;
};

Outcome with_fault(FaultyChain::Fault fault) {
  std::mt19937_64 random(32);
  hw::Stage relu;
  relu.op = hw::StageOp::kRelu;
  const hw::Chain chain{{relu}, hw::DType::kS8};
  // Small values: the last bit of a byte.
  std::vector<std::int32_t> x(30);
  for (std::int32_t& value : x) value = static_cast<std::int32_t>(random() % 200) - 100;
  std::vector<std::int8_t> expected(x.size()), actual(x.size());
  hw::ChainOperands operands;
  operands.accumulator = x.data();
  operands.accumulator_pitch = operands.out_pitch = operands.cols = 10;
  operands.rows = 3;
  RtlReport report;
  PostopRtlEngine rtl(4, {}, report, std::make_unique<FaultyChain>(fault));
  hw::PostopModel model(4);
  for (int i = 0; i < 2; ++i) {
    operands.out = actual.data();
    rtl.apply(chain, operands);
  }
  operands.out = expected.data();
  model.apply(chain, operands);
  return {report.at("faulty").mismatches, actual == expected,
          rtl.cycles(chain, 3, 10).total(3) - model.cycles(chain, 3, 10).total(3)};
}

TEST(ChainTwin, CountsWhatDiffersAndPassesItOn) {
  const Outcome none = with_fault(FaultyChain::Fault::kNone);
  EXPECT_EQ(none.mismatches, 0U);
  EXPECT_TRUE(none.same_values);
  EXPECT_EQ(none.more_cycles, 0U);

  const Outcome value = with_fault(FaultyChain::Fault::kValue);
  EXPECT_EQ(value.mismatches, 2U) << "one in each of two operations";
  EXPECT_FALSE(value.same_values) << "the machine works with what the RTL says";

  const Outcome cycle = with_fault(FaultyChain::Fault::kCycle);
  EXPECT_EQ(cycle.mismatches, 2U);
  EXPECT_EQ(cycle.more_cycles, 3U);

  EXPECT_EQ(with_fault(FaultyChain::Fault::kAssertion).mismatches, 1U) << "once for all";
}

TEST(ChainTwin, IsThereOnRequestInTheSizesThatAreBuilt) {
  EXPECT_EQ(make_chain_twin({}, 8, {}), nullptr);
  EXPECT_THROW((void)make_chain_twin(pipeline_in_rtl(), 8, {}), hw::InputError);
}

}  // namespace
}  // namespace systole::testbench
