// rtl/attention/systole_head_mix_line.sv against hw::mix_heads(), bit by bit, and hw::HeadMixLines,
// every cycle.

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "Vhead_mix_line_8_checked.h"
#include "base/error.h"
#include "hw/attention/head_mix.h"
#include "testbench/rtl/attention/head_mix_line_rtl.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "tests/rtl/attention/head_mix_case.h"
#include "tests/rtl/drive/expected_assertions.h"
#include "tests/rtl/drive/unit_test.h"

namespace systole::testbench {
namespace {

constexpr std::uint32_t kDecoderMacs = 8;

class HeadMixLine : public testing::Test {
 protected:
  /// Mixes random tokens, and compares bytes and cycles of every group.
  void run(HeadMixLineRtl& unit, const hw::HeadMix& mix, const Bytes& in, std::size_t features,
           const BackPressure& pressure = {}) {
    ASSERT_NO_THROW(hw::check_head_mix(mix));
    const std::size_t tokens = in.size() / features / mix.in_heads;
    Bytes expected(tokens * mix.out_heads * features);
    for (std::size_t token = 0; token < tokens; ++token) {
      hw::mix_heads(mix, in.data() + token * mix.in_heads * features, features,
                    expected.data() + token * mix.out_heads * features);
    }
    Bytes found(expected.size());
    const HeadMixLineRtl::Cycles cycles =
        unit.mix(mix, in.data(), features, tokens, found.data(), nullptr, pressure);
    ASSERT_EQ(found, expected);
    expect_contract(mix, cycles);
    if (pressure.output_per_mille == 0) {
      EXPECT_EQ(cycles.total.stalled, 0U);
    }
    if (pressure.input_per_mille == 0) {
      // A group's beats come in while the one before it is computed.
      const std::uint64_t contract =
          mix.in_heads + cycles.groups.size() * hw::mix_products(mix) + hw::kHeadMixLatency;
      testbench::expect_contract(contract, cycles.total);
    }
    ++operations_;
    stalled_ += cycles.total.stalled;
    bytes_ += found.size();
  }

  static void expect_contract(const hw::HeadMix& mix, const HeadMixLineRtl::Cycles& cycles) {
    hw::HeadMixLines line(1, kDecoderMacs);
    for (const HeadMixLineRtl::Group& group : cycles.groups) {
      ASSERT_EQ(group.done, line.take(mix, kDecoderMacs, group.arrival).done);
    }
    EXPECT_EQ(cycles.groups.back().done, cycles.total.cycles - cycles.total.stalled);
  }

  std::mt19937 random_{1};
  std::uint64_t operations_ = 0, stalled_ = 0, bytes_ = 0;
};

TEST_F(HeadMixLine, MatchesTheReferenceOnAMillionRandomBytes) {
  const auto unit = make_head_mix_line(kDecoderMacs, {true, "", 7});
  while (bytes_ < 1'050'000) {
    const hw::HeadMix mix = random_mix(random_, HeadMixLineRtl::kMaxHeads);
    const std::size_t features = 1 + random_() % 128;
    ASSERT_NO_FATAL_FAILURE(
        run(*unit, mix, random_bytes(4 * mix.in_heads * features, random_), features));
  }
  EXPECT_FALSE(unit->failed());
}

TEST_F(HeadMixLine, MatchesTheReferenceInEveryCorner) {
  const auto unit = make_head_mix_line(kDecoderMacs, {true, "", 7});
  constexpr std::int32_t kMost = 1 << 30;
  constexpr std::int8_t kWeights[] = {-128, 127, 0};
  constexpr std::int8_t kSamples[] = {-128, 127};
  constexpr std::int8_t kShifts[] = {0, 1, 14, 30, 63};
  for (const std::uint32_t heads : {1U, 2U, HeadMixLineRtl::kMaxHeads}) {
    for (const std::int8_t weight : kWeights) {
      for (const std::int8_t sample : kSamples) {
        for (const std::int32_t bias : {-kMost, -1, 0, kMost}) {
          for (const std::int8_t shift : kShifts) {
            hw::HeadMix mix{heads, heads, Bytes(heads * heads, weight), {}, {}};
            mix.bias.assign(heads, bias);
            mix.factors.assign(heads, {weight == 0 ? -2147483647 : 1, shift});
            ASSERT_NO_FATAL_FAILURE(run(*unit, mix, Bytes(heads * 9, sample), 9));
          }
        }
      }
    }
  }
  EXPECT_FALSE(unit->failed());
}

TEST_F(HeadMixLine, TakesTheCyclesOfTheContract) {
  const auto unit = make_head_mix_line(kDecoderMacs, {true, "", 9});
  std::mt19937_64 pressures(2);
  for (int i = 0; operations_ < 10'000; ++i) {
    const hw::HeadMix mix = random_mix(random_, 6);
    const std::size_t features = 1 + random_() % 20;
    const BackPressure pressure = i % 2 == 0 ? BackPressure{} : random_pressure(pressures);
    run(*unit, mix, random_bytes((1 + random_() % 3) * mix.in_heads * features, random_), features,
        pressure);
    if (HasFailure()) FAIL() << i;
  }
  EXPECT_GT(stalled_, operations_) << "the back-pressure had no effect";
  EXPECT_FALSE(unit->failed());
}

TEST_F(HeadMixLine, FastBuildHasTheSameValues) {
  const auto unit = make_head_mix_line(kDecoderMacs);
  for (int i = 0; i < 200; ++i) {
    const hw::HeadMix mix = random_mix(random_, HeadMixLineRtl::kMaxHeads);
    ASSERT_NO_FATAL_FAILURE(run(*unit, mix, random_bytes(mix.in_heads * 40, random_), 20));
  }
}

TEST_F(HeadMixLine, SizesThatAreNotBuiltAreRefused) {
  EXPECT_THROW((void)make_head_mix_line(4), hw::InputError);
  const auto unit = make_head_mix_line(kDecoderMacs);
  hw::HeadMix mix{17, 1, Bytes(17, 1), {0}, {{1, 1}}};
  std::int8_t out = 0;
  try {
    (void)unit->mix(mix, Bytes(17).data(), 1, 1, &out);
    FAIL();
  } catch (const hw::InputError& error) {
    EXPECT_STREQ(error.what(), "head_mix_line RTL: 17 to 1 heads, expected at most 16");
  }
}

class HeadMixLineProtocol : public testing::Test {
 protected:
  HeadMixLineProtocol() {
    dut_->in_heads_i = dut_->out_heads_i = 2;
    dut_->rounding_i = 0;
    dut_->config_valid_i = 0;
    dut_->in_valid_i = 1;
    dut_->in_i = 1;
    dut_->out_ready_i = 0;
  }
  VerilatedDut<Vhead_mix_line_8_checked> dut_{RtlOptions{true, "", 3}};
};

TEST_F(HeadMixLineProtocol, AssertionFiresWhenABeatChanges) {
  expect_assertion("InHeld_A", dut_, 40, [this] { dut_->in_i = 2; });
}

TEST_F(HeadMixLineProtocol, AssertionFiresWhenCoefficientsChangeAtWork) {
  expect_assertion("ConfigWhileIdle_A", dut_, 3, [this] { dut_->config_valid_i = 1; });
}

}  // namespace
}  // namespace systole::testbench
