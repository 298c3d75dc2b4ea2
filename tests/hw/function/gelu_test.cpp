#include "hw/function/gelu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/function/silu.h"
#include "support/input_error.h"
#include "tests/hw/number/golden_table.h"

namespace systole::hw {
namespace {

double real_gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }

/// Input scale that spreads [-range, range] over the symmetric codes.
double scale_of(double range, unsigned bits) {
  return range / static_cast<double>(symmetric_range(bits).hi);
}

/// Largest error of gelu() against the real function over every input, in units of the value.
double worst_gelu_error(double range, unsigned input_bits, unsigned output_bits) {
  const double input_scale = scale_of(range, input_bits);
  const double output_scale = scale_of(range, output_bits);
  const GeluConstants constants = make_gelu_constants(input_scale, output_scale);
  const IntRange domain = symmetric_range(input_bits);
  double worst = 0;
  for (auto q = static_cast<std::int32_t>(domain.lo); q <= domain.hi; ++q) {
    const double actual = gelu(q, constants, output_bits) * output_scale;
    worst = std::max(worst, std::fabs(actual - real_gelu(q * input_scale)));
  }
  return worst;
}

TEST(Gelu, MatchesTheReferenceTable) {
  for (const auto& entry : golden_cases("datapath/gelu.json")) {
    const GeluConstants constants =
        make_gelu_constants(entry["input_scale"], entry["output_scale"]);
    EXPECT_EQ(constants.b, entry["b"]);
    EXPECT_EQ(constants.c, entry["c"]);
    EXPECT_EQ(constants.one, entry["one"]);
    EXPECT_EQ(constants.output.multiplier, entry["m"]);
    EXPECT_EQ(constants.output.shift, entry["s"]);
    const auto q = entry["q"].get<std::vector<std::int32_t>>();
    for (std::size_t i = 0; i < q.size(); ++i) {
      EXPECT_EQ(gelu_product(q[i], constants), entry["product"][i]) << q[i];
      EXPECT_EQ(gelu(q[i], constants, entry["output_bits"]), entry["out"][i]) << q[i];
    }
  }
}

TEST(Gelu, FollowsTheRealFunctionOverEveryInputOf8To16Bits) {
  for (unsigned input_bits = 8; input_bits <= 16; ++input_bits) {
    for (const double range : {3.0, 6.0, 10.0}) {
      // The polynomial errs by 0.01815; half an output step and the floored constants come on top.
      const double bound = 0.0185 + 0.5 * scale_of(range, 8) + 0.4 * scale_of(range, input_bits);
      EXPECT_LT(worst_gelu_error(range, input_bits, 8), bound)
          << input_bits << " bits, +-" << range;
    }
  }
}

TEST(Gelu, ReachesThePolynomialsOwnErrorAtFineScales) {
  const double worst = worst_gelu_error(4.0, 16, 16);
  EXPECT_NEAR(worst, 0.01815, 2e-4);
}

TEST(Gelu, ProductsStayWithinTheirRegisters) {
  const auto widest = [](double range, unsigned bits) {
    const GeluConstants constants = make_gelu_constants(scale_of(range, bits), 1.0);
    const IntRange domain = symmetric_range(bits);
    unsigned most = 0;
    for (auto q = static_cast<std::int32_t>(domain.lo); q <= domain.hi; ++q) {
      most = std::max(most, signed_bits(gelu_product(q, constants)));
    }
    return most;
  };
  EXPECT_EQ(widest(6.0, 8), 21U);
  EXPECT_EQ(widest(8.0, 12), 32U);
  EXPECT_EQ(widest(8.0, 16), 44U);
}

TEST(Gelu, IsZeroAtZeroAndTheInputFarOut) {
  const GeluConstants constants = make_gelu_constants(0.05, 0.05);
  EXPECT_EQ(gelu(0, constants), 0);
  EXPECT_EQ(gelu(-127, constants), 0);
  EXPECT_EQ(gelu(127, constants), 127);
}

TEST(Gelu, RefusesScalesThatAreNoScales) {
  for (const double scale : {0.0, -0.1, 1e-10, std::nan("")}) {
    EXPECT_THROW(make_gelu_constants(scale, 0.05), InputError);
    EXPECT_THROW(make_gelu_constants(0.05, scale), InputError);
  }
}

TEST(GeluScaleCheck, AcceptsUsualScalesAndRefusesWhatTheRegistersCannotHold) {
  EXPECT_NO_THROW(check_gelu_scale(0.05, 8));
  EXPECT_NO_THROW(check_gelu_scale(scale_of(8.0, 12), 12));
  EXPECT_NO_THROW(check_gelu_scale(scale_of(8.0, 16), 16));
  EXPECT_THROW(check_gelu_scale(scale_of(2.0, 12), 12), InputError);
  EXPECT_THROW(check_gelu_scale(1e-5, 16), InputError);
  EXPECT_THROW(check_gelu_scale(1.5, 8), InputError);
  EXPECT_THROW(check_gelu_scale(std::nan(""), 8), InputError);
  EXPECT_THROW(check_gelu_scale(0.05, 17), InputError);
}

TEST(GeluScaleCheck, SaysWhichWidthIsMissing) {
  const std::string what = input_error_of([&] { check_gelu_scale(scale_of(2.0, 12), 12); });
  EXPECT_NE(what.find("36-bit product, the datapath has 32"), std::string::npos) << what;
}

TEST(IBertGelu, FollowsTheRealFunctionInsideItsWindow) {
  for (const double scale : {1.6e-4, 4e-4, 1.3e-3}) {
    check_ibert_gelu_scale(scale);
    const IBertGeluConstants constants = make_ibert_gelu_constants(scale);
    const double output_scale = ibert_gelu_output_scale(scale);
    const auto limit = static_cast<std::int32_t>(8 / scale);
    double worst = 0;
    for (std::int32_t q = -limit; q <= limit; ++q) {
      const std::int64_t code = ibert_gelu(q, constants);
      ASSERT_LE(signed_bits(code), 32U) << q;
      worst = std::max(worst,
                       std::fabs(static_cast<double>(code) * output_scale - real_gelu(q * scale)));
    }
    EXPECT_LT(worst, 0.035) << scale;
  }
}

TEST(IBertGelu, BreaksAtInt8Scales) {
  EXPECT_THROW(check_ibert_gelu_scale(0.05), InputError);
  EXPECT_THROW(check_ibert_gelu_scale(1e-4), InputError);
  EXPECT_THROW(check_ibert_gelu_scale(std::nan("")), InputError);
  const IBertGeluConstants constants = make_ibert_gelu_constants(0.05);
  const double at_one = static_cast<double>(ibert_gelu(20, constants));
  EXPECT_GT(std::fabs(at_one * ibert_gelu_output_scale(0.05) - real_gelu(1.0)), 1.0);
}

TEST(IBertGelu, RefusesAResultBeyond64Bits) {
  const IBertGeluConstants constants = make_ibert_gelu_constants(1e-9);
  EXPECT_THROW(ibert_gelu(std::numeric_limits<std::int32_t>::max(), constants),
               std::overflow_error);
  EXPECT_NO_THROW(ibert_gelu(100, constants));
}

double real_silu(double x) { return x / (1 + std::exp(-x)); }

/// Largest error of silu() against the real function over every input of `bits` bits that spans
/// [-range, range], in units of the value; outputs of 16 bits.
double worst_silu_error(double range, unsigned bits, unsigned fraction_bits) {
  const IntRange domain = full_range(bits);
  const double input_scale = range / static_cast<double>(domain.hi);
  const double output_scale = range / 32767;
  const SiluConstants constants =
      make_silu_constants(input_scale, output_scale, kDefaultMultiplierBits, fraction_bits);
  double worst = 0;
  for (auto q = static_cast<std::int32_t>(domain.lo); q <= domain.hi; ++q) {
    const double actual = silu(q, constants, full_range(16)) * output_scale;
    worst = std::max(worst, std::fabs(actual - real_silu(q * input_scale)));
  }
  return worst;
}

TEST(Silu, FollowsTheRealFunctionOverEveryInputOf8To16Bits) {
  for (const unsigned bits : {8U, 12U, 16U}) {
    for (const double range : {1.0, 6.0, 10.0, 32.0}) {
      const double half_step = 0.5 * range / 32767;
      EXPECT_LT(worst_silu_error(range, bits, 8), 2.0e-3 + half_step) << bits << " +-" << range;
      EXPECT_LT(worst_silu_error(range, bits, 10), 1.35e-3 + half_step) << bits << " +-" << range;
    }
  }
  // The bounds are no looser than they have to be.
  EXPECT_GT(worst_silu_error(10.0, 16, 8), 1.8e-3);
  EXPECT_GT(worst_silu_error(10.0, 16, 10), 1.2e-3);
}

/// Constants that take the input for the exponential's argument, times 1 / 2^shift.
SiluConstants direct_silu(std::int8_t shift) {
  return {{1, shift}, kDefaultIntExp, {1, kSigmoidBits}};
}

TEST(Silu, SigmoidOfHandWorkedArguments) {
  EXPECT_EQ(silu_sigmoid(0, direct_silu(0)), 16384);
  // ln 2 is 177 steps: the value at zero, 182601, is halved once.
  EXPECT_EQ(silu_sigmoid(-177, direct_silu(0)), (91300LL << 15) / (182601 + 91300));
  EXPECT_EQ(silu_sigmoid(177, direct_silu(0)), (182601LL << 15) / (182601 + 91300));
  EXPECT_EQ(silu_sigmoid(-32768, direct_silu(0)), 0);
  EXPECT_EQ(silu_sigmoid(32767, direct_silu(0)), 32768);
}

TEST(Silu, ArgumentRoundsHalfUpInBothDirections) {
  const std::int64_t e = 345 * 345 + 62885;  // of the argument -1
  EXPECT_EQ(silu_sigmoid(-1, direct_silu(1)), (e << 15) / (182601 + e));
  EXPECT_EQ(silu_sigmoid(1, direct_silu(1)), (std::int64_t{182601} << 15) / (182601 + e));
}

TEST(Silu, SaturatesInputAndOutput) {
  const IntRange s32 = full_range(32);
  EXPECT_EQ(silu(32767, direct_silu(0), s32), 32767);
  EXPECT_EQ(silu(32768, direct_silu(0), s32), 32767);
  EXPECT_EQ(silu(2147483647, direct_silu(0), s32), 32767);
  EXPECT_EQ(silu(-2147483647 - 1, direct_silu(0), s32), 0);
  EXPECT_EQ(silu(1000, direct_silu(0), symmetric_range(8)), 127);
  EXPECT_EQ(silu(-177, direct_silu(0), {-7, 7}), -7);
}

TEST(Silu, LargestMultiplierKeepsWithin63Bits) {
  const SiluConstants constants{{2147483647, 0}, kDefaultIntExp, {-2147483647, 30}};
  // (2^30 - 2^15) (2^31 - 1) / 2^30.
  EXPECT_EQ(silu(32767, constants, full_range(32)), -2147418111);
  EXPECT_EQ(silu(-32768, constants, full_range(32)), 0);
}

TEST(SiluConstantsCheck, RefusesScalesThatDoNotFit) {
  EXPECT_THROW(make_silu_constants(0.0, 1.0), InputError);
  EXPECT_THROW(make_silu_constants(1.0, std::nan("")), InputError);
  EXPECT_THROW(make_silu_constants(-1.0, 1.0), InputError);
  EXPECT_THROW(make_silu_constants(256.0, 1.0), InputError);
  EXPECT_THROW(make_silu_constants(0.1, 0.1, 16, 12), std::invalid_argument);
  EXPECT_THROW(make_silu_constants(0.1, 0.1, 16, 0), std::invalid_argument);
}

}  // namespace
}  // namespace systole::hw
