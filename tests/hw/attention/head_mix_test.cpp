#include "hw/attention/head_mix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "support/input_error.h"

namespace systole::hw {
namespace {

using Random = std::mt19937_64;

int pick_int(Random& random, int lowest, int highest) {
  return std::uniform_int_distribution<int>(lowest, highest)(random);
}

HeadMix random_mix(Random& random, std::uint32_t in_heads, std::uint32_t out_heads) {
  HeadMix mix{in_heads, out_heads, {}, {}, {}, static_cast<Rounding>(pick_int(random, 0, 2))};
  mix.weights.resize(in_heads * out_heads);
  for (std::int8_t& weight : mix.weights) {
    weight = static_cast<std::int8_t>(pick_int(random, -128, 127));
  }
  for (std::uint32_t o = 0; o < out_heads; ++o) {
    mix.bias.push_back(pick_int(random, -1000000, 1000000));
    mix.factors.push_back(
        {pick_int(random, -65535, 65535), static_cast<std::int8_t>(pick_int(random, 10, 40))});
  }
  return mix;
}

/// The definition, one output after the other.
std::vector<std::int8_t> plain(const HeadMix& mix, const std::vector<std::int8_t>& in,
                               std::size_t features) {
  std::vector<std::int8_t> out;
  for (std::size_t o = 0; o < mix.out_heads; ++o) {
    for (std::size_t f = 0; f < features; ++f) {
      std::int64_t sum = mix.bias[o];
      for (std::size_t i = 0; i < mix.in_heads; ++i) {
        sum += std::int64_t{mix.weights[o * mix.in_heads + i]} * in[i * features + f];
      }
      out.push_back(
          static_cast<std::int8_t>(requantise(sum, mix.factors[o], mix.rounding, -127, 127)));
    }
  }
  return out;
}

TEST(HeadMix, GivesTheBitsOfItsDefinition) {
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    const HeadMix mix = random_mix(random, static_cast<std::uint32_t>(pick_int(random, 1, 13)),
                                   static_cast<std::uint32_t>(pick_int(random, 1, 13)));
    const auto features = static_cast<std::size_t>(pick_int(random, 1, 150));
    std::vector<std::int8_t> in(mix.in_heads * features);
    for (std::int8_t& value : in) value = static_cast<std::int8_t>(pick_int(random, -128, 127));
    std::vector<std::int8_t> out(mix.out_heads * features);
    ASSERT_NO_THROW(check_head_mix(mix));
    mix_heads(mix, in.data(), features, out.data());
    ASSERT_EQ(out, plain(mix, in, features));
  }
}

TEST(HeadMix, HoldsItsLargestSums) {
  // 64 products of 128 * 128 and a bias that fills int32.
  constexpr std::int32_t kProducts = 64 * 128 * 128;
  HeadMix mix{64, 1, std::vector<std::int8_t>(64, -128), {0}, {{1, 24}}};
  std::vector<std::int8_t> in(64, -128);
  mix.bias = {std::numeric_limits<std::int32_t>::max() - kProducts};
  ASSERT_NO_THROW(check_head_mix(mix));
  std::int8_t out = 0;
  mix_heads(mix, in.data(), 1, &out);
  EXPECT_EQ(out, 127);  // (2^31 - 1) / 2^24, rounded up to 128, clamped
  mix.bias[0] = -mix.bias[0];
  std::fill(in.begin(), in.end(), 127);
  mix.factors[0] = {-1, 25};
  ASSERT_NO_THROW(check_head_mix(mix));
  mix_heads(mix, in.data(), 1, &out);
  EXPECT_EQ(out, 64);
}

struct BadMix {
  const char* name;
  std::function<void(HeadMix& mix)> change;
  const char* expected;
};

class RefusesMix : public testing::TestWithParam<BadMix> {};

TEST_P(RefusesMix, AndSaysWhy) {
  HeadMix mix{3, 2, {1, 2, 3, 4, 5, 6}, {7, 8}, {{9, 10}, {11, 12}}};
  ASSERT_NO_THROW(check_head_mix(mix));
  GetParam().change(mix);
  const std::string what = input_error_of([&] { check_head_mix(mix); });
  EXPECT_EQ(what, GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    HeadMix, RefusesMix,
    testing::Values(
        BadMix{"NoInputs", [](HeadMix& m) { m.in_heads = 0; }, "in_heads 0, expected 1 to 64"},
        BadMix{"Inputs", [](HeadMix& m) { m.in_heads = 65; }, "in_heads 65, expected 1 to 64"},
        BadMix{"NoOutputs", [](HeadMix& m) { m.out_heads = 0; }, "out_heads 0, expected 1 to 64"},
        BadMix{"Outputs", [](HeadMix& m) { m.out_heads = 65; }, "out_heads 65, expected 1 to 64"},
        BadMix{"Weights", [](HeadMix& m) { m.weights.pop_back(); },
               "number of weights 5, expected 6"},
        BadMix{"Biases", [](HeadMix& m) { m.bias.push_back(0); }, "number of biases 3, expected 2"},
        BadMix{"Factors", [](HeadMix& m) { m.factors.clear(); }, "number of factors 0, expected 2"},
        BadMix{"Rounding", [](HeadMix& m) { m.rounding = static_cast<Rounding>(3); },
               "rounding 3, expected 0 to 2"},
        BadMix{"Multiplier",
               [](HeadMix& m) { m.factors[1].multiplier = std::numeric_limits<int>::min(); },
               "output head 1: multiplier -2147483648, expected at least -2147483647"},
        BadMix{"Shift", [](HeadMix& m) { m.factors[0].shift = 64; },
               "output head 0: shift 64, expected 0 to 63"},
        BadMix{"NegativeShift", [](HeadMix& m) { m.factors[1].shift = -1; },
               "output head 1: shift -1, expected 0 to 63"},
        BadMix{"Sum",
               [](HeadMix& m) { m.bias[1] = std::numeric_limits<int>::max() - 15 * 128 + 1; },
               "output head 1: sum of up to 2147483648, expected at most 2147483647"},
        BadMix{"NegativeSum", [](HeadMix& m) { m.bias[0] = std::numeric_limits<int>::min(); },
               "output head 0: sum of up to 2147484416, expected at most 2147483647"}),
    [](const testing::TestParamInfo<BadMix>& test) { return test.param.name; });

TEST(HeadMixLines, GiveTheGroupsOfATokenToTheLinesInTurn) {
  Random random(2);
  const HeadMix mix = random_mix(random, 3, 2);
  // 20 features are groups of 8, 8 and 4 features, each 6 cycles, and the beats leave 5 later.
  HeadMixLines two(2, 8);
  HeadMixLines::Token token = two.take(mix, 20, 100);
  EXPECT_EQ(token.begun, 106U);
  EXPECT_EQ(token.done, 112U + kHeadMixLatency);
  // The fourth group waits for no one: its line is free since 106. The sixth waits for the fourth.
  token = two.take(mix, 20, 101);
  EXPECT_EQ(token.begun, 112U);
  EXPECT_EQ(token.done, 118U + kHeadMixLatency);
  token = two.take(mix, 8, 1000);
  EXPECT_EQ(token.begun, 1000U);
  EXPECT_EQ(token.done, 1006U + kHeadMixLatency);
  EXPECT_EQ(two.busy_cycles(), 7U * 6);
}

TEST(HeadMixLines, KeepUpWithAStreamIfTheyCanDoItsWork) {
  Random random(3);
  const HeadMix mix = random_mix(random, 2, 3);
  // 64 features: 8 groups of 6 cycles, 48 line cycles a token.
  for (const std::uint32_t lines : {1U, 2U, 3U, 5U, 8U, 16U, 48U, 100U}) {
    HeadMixLines pool(lines, 8);
    constexpr std::uint64_t kTokens = 600;
    HeadMixLines::Token last{};
    for (std::uint64_t t = 0; t < kTokens; ++t) last = pool.take(mix, 64, t);
    const std::uint64_t bound = std::max<std::uint64_t>(kTokens, kTokens * 48 / lines);
    EXPECT_EQ(mix_interval(mix, 64, lines, 8), (48 + lines - 1) / lines);
    EXPECT_GE(last.done, bound);
    EXPECT_LE(last.done, bound + 2 * 48 + kHeadMixLatency);
    EXPECT_EQ(pool.busy_cycles(), kTokens * 48);
  }
}

/// Cycle by cycle: lines with a queue each, which begin a group when the one before is computed.
TEST(HeadMixLines, AreFirstInFirstOut) {
  Random random(4);
  for (int i = 0; i < 200; ++i) {
    const auto lines = static_cast<std::uint32_t>(pick_int(random, 1, 6));
    const auto macs = static_cast<std::uint32_t>(pick_int(random, 1, 9));
    const std::vector<HeadMix> mixes = {random_mix(random, 2, 3), random_mix(random, 5, 1)};
    struct Group {
      std::uint64_t arrival, work;
      std::size_t token;
    };
    std::vector<std::vector<Group>> queues(lines);
    HeadMixLines pool(lines, macs);
    std::vector<HeadMixLines::Token> tokens;
    std::size_t group = 0;
    std::uint64_t arrival = 0;
    for (std::size_t t = 0; t < 12; ++t) {
      const HeadMix& mix = mixes[static_cast<std::size_t>(pick_int(random, 0, 1))];
      const auto features = static_cast<std::size_t>(pick_int(random, 1, 40));
      arrival += static_cast<std::uint64_t>(pick_int(random, 0, 15));
      for (std::size_t f = 0; f < features; f += macs) {
        queues[group++ % lines].push_back(
            {arrival, std::uint64_t{mix.in_heads} * mix.out_heads, t});
      }
      tokens.push_back(pool.take(mix, features, arrival));
    }
    std::vector<std::uint64_t> left(lines, 0), done(tokens.size(), 0);
    std::vector<std::size_t> at(lines, 0);
    for (std::uint64_t cycle = 0; cycle < 10000; ++cycle) {
      for (std::size_t line = 0; line < lines; ++line) {
        if (at[line] == queues[line].size()) continue;
        const Group& head = queues[line][at[line]];
        if (head.arrival > cycle) continue;
        if (++left[line] < head.work) continue;
        done[head.token] = std::max(done[head.token], cycle + 1 + kHeadMixLatency);
        left[line] = 0;
        ++at[line];
      }
    }
    for (std::size_t t = 0; t < tokens.size(); ++t) EXPECT_EQ(tokens[t].done, done[t]);
  }
}

}  // namespace
}  // namespace systole::hw
