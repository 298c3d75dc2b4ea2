#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "hw/function/gelu.h"
#include "hw/kernel/row_kernels.h"
#include "tests/rtl/drive/expected_assertions.h"
#include "tests/rtl/postop/stage_case.h"

namespace systole::testbench {
namespace {

constexpr std::int64_t kMaxMultiplier = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxConstant = std::int64_t{1} << 40;
constexpr std::int64_t kMaxClip = std::int64_t{1} << 16;

struct Case {
  hw::GeluConstants constants;
  hw::row::Clamp limits;
};

hw::Stage stage_of(const Case& c) {
  hw::Stage stage;
  stage.op = hw::StageOp::kGelu;
  stage.imm = {c.constants.b,
               c.constants.c,
               c.constants.one,
               c.constants.output.multiplier,
               c.constants.output.shift,
               c.limits.lo,
               c.limits.hi};
  return stage;
}

bool is_legal(const Case& c) {
  try {
    hw::check_chain({{stage_of(c)}}, {});
    return true;
  } catch (const hw::InputError&) {
    return false;
  }
}

/// Largest multiplier that check_chain() accepts with these constants.
std::int32_t largest_multiplier(Case c) {
  std::int64_t legal = 0;
  std::int64_t illegal = kMaxMultiplier + 1;
  while (illegal - legal > 1) {
    const std::int64_t middle = legal + (illegal - legal) / 2;
    c.constants.output.multiplier = static_cast<std::int32_t>(middle);
    (is_legal(c) ? legal : illegal) = middle;
  }
  return static_cast<std::int32_t>(legal);
}

/// Constants at the edges of what check_chain() accepts, each with the largest multiplier.
std::vector<Case> extreme_cases() {
  std::vector<Case> cases;
  for (const std::int64_t b : {-kMaxClip, -kMaxClip + 1, std::int64_t{-32768}, std::int64_t{0}}) {
    for (const auto& [c, one] : {std::pair{kMaxConstant, kMaxConstant},
                                 {-kMaxConstant, kMaxConstant},
                                 {kMaxConstant, -kMaxConstant},
                                 {-kMaxConstant, -kMaxConstant},
                                 {std::int64_t{0}, std::int64_t{0}},
                                 {std::int64_t{-1}, std::int64_t{1}}}) {
      Case extreme{{b, c, one, {0, static_cast<std::int8_t>(cases.size() * 7 % 64)}},
                   {kLowest, kHighest}};
      const std::int32_t multiplier = largest_multiplier(extreme);
      extreme.constants.output.multiplier = cases.size() % 2 == 0 ? multiplier : -multiplier;
      cases.push_back(extreme);
    }
  }
  return cases;
}

/// What real scales give, with a clamp to s8 or s16.
std::vector<Case> usual_cases() {
  std::vector<Case> cases;
  for (const double scale : {1e-4, 5e-4, 1.0 / 256, 0.02, 0.1, 1.0}) {
    for (const unsigned bits : {16U, 24U}) {
      const bool fine = bits == 24;
      const Case usual{hw::make_gelu_constants(scale, fine ? scale : 0.03, bits),
                       fine ? hw::row::Clamp{-32767, 32767} : hw::row::Clamp{-127, 127}};
      if (is_legal(usual)) cases.push_back(usual);
    }
  }
  return cases;
}

/// Anything legal, of any magnitude.
Case random_case(std::mt19937_64& random) {
  const auto below = [&random](std::int64_t limit) {
    const auto value = static_cast<std::int64_t>(random() >> (24 + random() % 40));
    return std::min(value, limit);
  };
  const auto either_sign = [&random](std::int64_t value) {
    return random() % 2 == 0 ? value : -value;
  };
  const std::int32_t first = random_word(random);
  const std::int32_t second = random_word(random);
  Case c{{-below(kMaxClip),
          either_sign(below(kMaxConstant)),
          either_sign(below(kMaxConstant)),
          {0, static_cast<std::int8_t>(random() % 64)}},
         {std::min(first, second), std::max(first, second)}};
  const std::int64_t largest = largest_multiplier(c);
  c.constants.output.multiplier = static_cast<std::int32_t>(either_sign(below(largest)));
  return c;
}

/// Every s16, and words beyond that saturate to it.
std::vector<std::int32_t> gelu_domain() {
  std::vector<std::int32_t> words = {kLowest, kHighest, -32769, 32768, 65536, -65536, 98304};
  for (std::int32_t q = -32768; q <= 32767; ++q) words.push_back(q);
  return words;
}

StageCase gelu_case(const Case& c, std::vector<std::int32_t> words) {
  const std::size_t cols = words.size();
  return {stage_of(c), std::move(words), cols};
}

std::vector<std::int32_t> random_words(std::mt19937_64& random, std::size_t count) {
  std::vector<std::int32_t> words(count);
  for (std::int32_t& word : words) word = random_word(random);
  return words;
}

class IGelu : public StageTest<make_i_gelu> {
 protected:
  void expect_whole_domain(const std::vector<Case>& cases) {
    for (const Case& c : cases) {
      ASSERT_TRUE(is_legal(c));
      EXPECT_EQ(differing(gelu_case(c, gelu_domain())), 0U)
          << "b " << c.constants.b << " c " << c.constants.c << " one " << c.constants.one
          << " multiplier " << c.constants.output.multiplier << " shift "
          << int{c.constants.output.shift};
    }
    EXPECT_FALSE(unit_->failed());
  }
};

TEST_P(IGelu, MatchesTheReferenceOverItsWholeDomainWithUsualConstants) {
  const std::vector<Case> cases = usual_cases();
  EXPECT_GE(cases.size(), 8U);
  expect_whole_domain(cases);
}

TEST_P(IGelu, MatchesTheReferenceOverItsWholeDomainWithExtremeConstants) {
  expect_whole_domain(extreme_cases());
}

// All that five bits of input and three of each constant can say.
TEST_P(IGelu, MatchesTheReferenceForEveryInputOfAReducedWidth) {
  std::vector<std::int32_t> words;
  for (std::int32_t q = -16; q < 16; ++q) words.push_back(q);
  std::size_t differ = 0;
  for (std::int64_t b = -7; b <= 0; ++b) {
    for (std::int64_t c = -4; c < 4; ++c) {
      for (std::int64_t one = -4; one < 4; ++one) {
        for (std::int32_t multiplier = -4; multiplier < 4; ++multiplier) {
          for (std::int8_t shift = 0; shift < 8; ++shift) {
            differ += differing(gelu_case({{b, c, one, {multiplier, shift}}, {-8, 7}}, words));
          }
        }
      }
    }
  }
  EXPECT_EQ(differ, 0U);
  EXPECT_FALSE(unit_->failed());
}

TEST_P(IGelu, MatchesTheReferenceOnRandomConstants) {
  expect_values(2000, 31, [](std::mt19937_64& random, int) {
    const Case c = random_case(random);
    EXPECT_TRUE(is_legal(c));
    return gelu_case(c, random_words(random, 200));
  });
}

TEST_P(IGelu, KeepsItsValuesUnderBackPressure) {
  expect_values_under_back_pressure(300, 32, [](std::mt19937_64& random, int) {
    const Case c = random_case(random);
    return gelu_case(c, random_words(random, 1 + random() % 100));
  });
}

TEST_P(IGelu, TakesTheCyclesOfTheContract) {
  sweep(10'000, 3, 70, 33, stage_of(usual_cases().front()));
}

TEST_P(IGelu, ReportsAClipPointOfTheWrongSign) {
  const ExpectedAssertions expected({"ClipPointNotNegative_A"});
  Case wrong = usual_cases().front();
  wrong.constants.b = 1;
  run_illegal(gelu_case(wrong, {5}));
}

TEST_P(IGelu, FastBuildHasTheSameValues) {
  expect_values_of_the_fast_build(
      1, 34, [](std::mt19937_64&, int) { return gelu_case(usual_cases().front(), gelu_domain()); });
}

INSTANTIATE_TEST_SUITE_P(Lanes, IGelu, testing::ValuesIn(kLaneBuilds));

TEST(IGeluSizes, SixtyFourLanesHaveValuesAndCyclesToo) {
  std::mt19937_64 random(64);
  const auto unit = make_i_gelu(64, RtlOptions{true, "", 7});
  for (int i = 0; i < 150; ++i) {
    const BackPressure pressure = i % 2 == 0 ? BackPressure{} : random_pressure(random);
    ASSERT_EQ(differences(*unit, 64,
                          gelu_case(random_case(random), random_words(random, 1 + random() % 300)),
                          pressure),
              0U)
        << i;
  }
  EXPECT_FALSE(unit->failed());
}

TEST(IGeluSizes, OthersThanThoseBuiltAreRefused) {
  EXPECT_THROW((void)make_i_gelu(32), hw::InputError);
}

}  // namespace
}  // namespace systole::testbench
