#include <gtest/gtest.h>

#include "base/error.h"
#include "hw/function/softmax.h"
#include "testbench/rtl/attention/ae_decoder_rtl.h"
#include "testbench/rtl/engine/engines.h"
#include "tests/rtl/attention/head_case.h"
#include "tests/rtl/attention/mix_case.h"

namespace systole::testbench {
namespace {

hw::Machine::Backends backends(bool sparse, bool dense) {
  hw::Machine::Backends backends;
  if (sparse) backends.sparser_line = hw::Backend::kRtl;
  if (dense) backends.denser_line = hw::Backend::kRtl;
  return backends;
}

TEST(AttentionRtlEngine, ComputesAnyHeadLikeTheModel) {
  std::mt19937 random(1);
  hw::ScoreFunctions functions{hw::make_softmax_constants(1e-4), std::nullopt};
  hw::Stage relu;
  relu.op = hw::StageOp::kRelu;
  hw::AttentionModel model;
  for (const auto& [sparse, dense] : {std::pair{true, false}, {false, true}, {true, true}}) {
    for (const auto mapping :
         {hw::SparserMapping::kColumnPerLine, hw::SparserMapping::kBroadcast}) {
      const hw::Machine::Attention attention = hw::engines(7, 8, mapping);
      RtlReport report;
      const auto rtl =
          make_attention_engine(attention, backends(sparse, dense), {true, "", 3}, report);
      for (int i = 0; i < 40; ++i) {
        const HeadCase test(hw::split_anywhere(hw::random_mask(random, 30), random),
                            random_count(random, 1, 40), random_count(random, 1, 40), attention,
                            random);
        functions.stages.reset();
        if (i % 2 == 0) functions.stages.emplace(hw::Chain{{relu}, hw::DType::kS32});
        const hw::AttentionSums expected = model.sums(test.head, test.operands, functions);
        const hw::AttentionSums found = rtl->sums(test.head, test.operands, functions);
        ASSERT_EQ(found.sums, expected.sums);
        ASSERT_EQ(found.divisor, expected.divisor);
      }
      EXPECT_EQ(report.count("sparser_line"), sparse ? 1U : 0U);
      EXPECT_EQ(report.count("denser_line"), dense ? 1U : 0U);
      for (const auto& [block, counts] : report) {
        EXPECT_GT(counts.operations, 100U) << block;
        EXPECT_GT(counts.cycles, counts.operations) << block;
        EXPECT_EQ(counts.mismatches, 0U) << block;
      }
    }
  }
}

TEST(AttentionRtlEngine, NeedsLinesThatAreBuilt) {
  RtlReport report;
  try {
    (void)make_attention_engine(hw::Machine{}.attention, backends(true, false), {}, report);
    FAIL();
  } catch (const hw::InputError& error) {
    EXPECT_STREQ(error.what(),
                 "sparser_line RTL: attention.lines is 0, expected attention engines");
  }
  EXPECT_THROW((void)make_attention_engine(hw::engines(64, 4), backends(false, true), {}, report),
               hw::InputError);
  EXPECT_THROW((void)make_mix_engine(hw::engines(64, 16), {}, report), hw::InputError);
}

TEST(MixRtlEngine, MixesAnyTokenLikeTheModel) {
  std::mt19937 random(2);
  RtlReport report;
  const auto rtl = make_mix_engine(hw::engines(), {true, "", 3}, report);
  const RtlCounts& counts = report["ae_decoder"];
  hw::MixModel model;
  for (int i = 0; i < 300; ++i) {
    const hw::HeadMix mix = random_mix(random, AeDecoderRtl::kMaxHeads);
    const std::size_t features = random_count(random, 1, 70);
    const Bytes in = random_bytes(mix.in_heads * features, random);
    Bytes expected(mix.out_heads * features), found(expected.size());
    model.mix(mix, in.data(), features, expected.data());
    rtl->mix(mix, in.data(), features, found.data());
    ASSERT_EQ(found, expected) << i;
  }
  EXPECT_EQ(counts.operations, 300U);
  EXPECT_GT(counts.cycles, 300U);
  EXPECT_EQ(counts.mismatches, 0U);
}

}  // namespace
}  // namespace systole::testbench
