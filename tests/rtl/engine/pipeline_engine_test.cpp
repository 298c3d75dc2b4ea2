#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "base/error.h"
#include "testbench/rtl/engine/engines.h"
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
