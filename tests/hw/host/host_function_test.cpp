#include "hw/host/host_function.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>

#include "hw/host/host_cycles.h"
#include "support/input_error.h"

namespace systole::hw {
namespace {

template <typename In, typename Out, typename Tensor = std::int8_t>
std::vector<Out> apply(const HostFunction& function, const std::vector<In>& in,
                       const std::vector<Tensor>& tensor = {}) {
  check_host_function(function);
  // A byte off: memory promises no alignment.
  std::vector<std::uint8_t> from(1 + in.size() * sizeof(In)), other(1 + in.size() * sizeof(Tensor));
  std::vector<std::uint8_t> to(1 + in.size() * sizeof(Out));
  std::memcpy(&from[1], in.data(), in.size() * sizeof(In));
  if (!tensor.empty()) std::memcpy(&other[1], tensor.data(), tensor.size() * sizeof(Tensor));
  apply_host_row(function, &from[1], &other[1], in.size(), &to[1]);
  std::vector<Out> out(in.size());
  std::memcpy(out.data(), &to[1], out.size() * sizeof(Out));
  return out;
}

HostFunction softmax() {
  HostFunction function;
  function.op = HostOp::kSoftmax;
  function.out = DType::kU8;
  function.out_scale = 1.0F / 256;
  function.lo = 0;
  function.hi = 255;
  return function;
}

TEST(HostFunction, SoftmaxIsThatOfTheRow) {
  HostFunction function = softmax();
  function.in_scale = 0.01F;
  const std::vector<std::int32_t> scores = {0, -70, 110, -30000, 2, 55};
  double sum = 0;
  for (const std::int32_t score : scores) sum += std::exp(0.01 * score);
  const std::vector<std::uint8_t> codes = apply<std::int32_t, std::uint8_t>(function, scores);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    EXPECT_NEAR(codes[i], 256 * std::exp(0.01 * scores[i]) / sum, 0.5001) << i;
  }
  EXPECT_EQ((apply<std::int32_t, std::uint8_t>(function, {7, 7, 7, 7})),
            (std::vector<std::uint8_t>(4, 64)));
  EXPECT_EQ((apply<std::int32_t, std::uint8_t>(function, {2000000000, -2000000000})),
            (std::vector<std::uint8_t>{255, 0}));
}

// Against sums over all columns, by rank: a column takes part if fewer than `active` come before
// it.
TEST(HostFunction, RouteIsTheSoftmaxOfTheLargest) {
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    HostFunction function = softmax();
    function.op = HostOp::kRoute;
    function.in_scale = 0.02F;
    const std::size_t cols = 1 + random() % 20;
    function.active = static_cast<std::uint32_t>(1 + random() % cols);
    std::vector<std::int32_t> scores(cols);
    const std::uint32_t range = i % 2 == 0 ? 4 : 400;  // equal ones, or hardly any
    for (std::int32_t& score : scores) score = static_cast<std::int32_t>(random() % range) - 100;
    const auto taken = [&](std::size_t of) {
      std::size_t before = 0;
      for (std::size_t c = 0; c < cols; ++c) {
        before += scores[c] > scores[of] || (scores[c] == scores[of] && c < of) ? 1 : 0;
      }
      return before < function.active;
    };
    double sum = 0;
    for (std::size_t c = 0; c < cols; ++c) sum += taken(c) ? std::exp(0.02 * scores[c]) : 0;
    const std::vector<std::uint8_t> codes = apply<std::int32_t, std::uint8_t>(function, scores);
    for (std::size_t c = 0; c < cols; ++c) {
      const double share = taken(c) ? std::exp(0.02 * scores[c]) / sum : 0;
      ASSERT_NEAR(codes[c], std::min(255.0, 256 * share), taken(c) ? 0.5001 : 0) << i << " " << c;
    }
  }
  HostFunction none = softmax();
  none.active = 2;
  expect_contains(input_error_of([&] { return check_host_function(none), 0; }),
                  "2 active columns of softmax");
  none.op = HostOp::kRoute;
  none.active = 0;
  expect_contains(input_error_of([&] { return check_host_function(none), 0; }),
                  "0 active columns of route");
}

TEST(HostFunction, SoftmaxLeavesOutWhatIsNotKept) {
  const HostFunction function = softmax();
  const std::vector<std::int32_t> scores = {1, 1, 9, 9};
  std::vector<std::uint8_t> codes(4, 77);
  apply_host_row(function, reinterpret_cast<const std::uint8_t*>(scores.data()), nullptr, 4,
                 codes.data(), 2);
  EXPECT_EQ(codes, (std::vector<std::uint8_t>{128, 128, 0, 0}));
  EXPECT_EQ(host_kept(0, 5, 8), 0U) << "all";
  EXPECT_EQ(host_kept(2, 5, 8), 7U);
  EXPECT_EQ(host_kept(2, 6, 8), 0U) << "all";
}

TEST(HostFunction, GeluIsExact) {
  HostFunction function;
  function.op = HostOp::kGelu;
  function.in = DType::kS8;
  function.in_scale = 1.0F / 32;
  function.out_scale = 1.0F / 16;
  std::vector<std::int8_t> in;
  for (int code = -128; code < 128; ++code) in.push_back(static_cast<std::int8_t>(code));
  const std::vector<std::int8_t> out = apply<std::int8_t, std::int8_t>(function, in);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double x = in[i] / 32.0;
    EXPECT_NEAR(out[i], 16 * x * 0.5 * std::erfc(-x / std::sqrt(2.0)), 0.5001) << x;
  }
}

TEST(HostFunction, LayerNormTakesMeanAndDeviationOut) {
  HostFunction function;
  function.op = HostOp::kLayerNorm;
  function.in = DType::kS16;
  function.out_scale = 1.0F / 32;
  function.gamma = {1.0F, 2.0F, -1.0F, 0.5F};
  function.beta = {0.0F, 0.25F, 0.0F, -1.0F};
  const std::vector<std::int16_t> in = {100, -300, 500, 20000};
  double mean = 0, squares = 0;
  for (const int x : in) mean += x / 4.0;
  for (const int x : in) squares += (x - mean) * (x - mean) / 4.0;
  const std::vector<std::int8_t> out = apply<std::int16_t, std::int8_t>(function, in);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double y = (in[i] - mean) / std::sqrt(squares) * function.gamma[i] + function.beta[i];
    EXPECT_NEAR(out[i], 32 * y, 0.5001) << i;
  }
  EXPECT_EQ((apply<std::int16_t, std::int8_t>(function, {9, 9, 9, 9})),
            (std::vector<std::int8_t>{0, 8, 0, -32}))
      << "no deviation: beta";
}

TEST(HostFunction, SumsMeetOnTheResultsGrid) {
  HostFunction function;
  function.op = HostOp::kAdd;
  function.in_scale = 0.5F;
  function.tensor_scale = 0.25F;
  function.out = DType::kS16;
  function.out_scale = 0.5F;
  function.lo = -1000;
  function.hi = 900;
  // 0.5 and 1.5 steps round to even.
  const std::vector<std::int16_t> out = apply<std::int32_t, std::int16_t, std::int8_t>(
      function, {10, 0, 0, 1 << 30, -(1 << 30)}, {4, 1, 3, 0, 0});
  EXPECT_EQ(out, (std::vector<std::int16_t>{12, 0, 2, 900, -1000}));
}

TEST(HostFunction, NoNumberBecomesTheLowestCode) {
  HostFunction function;
  function.op = HostOp::kAdd;
  function.in_scale = function.tensor_scale = std::numeric_limits<float>::max();
  function.lo = -5;
  EXPECT_EQ((apply<std::int32_t, std::int8_t, std::int8_t>(function, {9, 9}, {-9, 9})),
            (std::vector<std::int8_t>{-5, 127}));
}

struct BadFunction {
  const char* name;
  std::function<void(HostFunction&)> spoil;
  const char* message;
};

class BadFunctions : public testing::TestWithParam<BadFunction> {};

TEST_P(BadFunctions, AreRefused) {
  HostFunction function = softmax();
  GetParam().spoil(function);
  const std::string what = input_error_of([&] { check_host_function(function); });
  EXPECT_NE(what.find(GetParam().message), std::string::npos) << what;
}

INSTANTIATE_TEST_SUITE_P(
    All, BadFunctions,
    testing::Values(
        BadFunction{"Operator", [](HostFunction& f) { f.op = static_cast<HostOp>(5); },
                    "operator 5, expected 0 to 4"},
        BadFunction{"Type", [](HostFunction& f) { f.out = static_cast<DType>(9); }, "type 9"},
        BadFunction{"Zero", [](HostFunction& f) { f.in_scale = 0; }, "in_scale is 0"},
        BadFunction{"Negative", [](HostFunction& f) { f.out_scale = -1; }, "out_scale is -1"},
        BadFunction{"Nan", [](HostFunction& f) { f.tensor_scale = std::nanf(""); },
                    "expected a positive number"},
        BadFunction{"Limits", [](HostFunction& f) { f.hi = 256; },
                    "hi 256, expected a range of u8"},
        BadFunction{"Order", [](HostFunction& f) { f.lo = 9, f.hi = 8; }, "lo 9 and hi 8"},
        BadFunction{"Gamma", [](HostFunction& f) { f.gamma = f.beta = {1}; }, "expected none"},
        BadFunction{"NoGamma", [](HostFunction& f) { f.op = HostOp::kLayerNorm; },
                    "expected one of each"},
        BadFunction{"Infinite",
                    [](HostFunction& f) {
                      f.op = HostOp::kLayerNorm;
                      f.gamma = {std::numeric_limits<float>::infinity()};
                      f.beta = {0};
                    },
                    "not finite"},
        BadFunction{"Operand", [](HostFunction& f) { f.tensor = DType::kS16; },
                    "softmax does not have"}),
    [](const testing::TestParamInfo<BadFunction>& test) { return test.param.name; });

/// The survey's Fig. 14 for a layer of BERT-Base with 512 tokens: shares of 787 Mcycle.
TEST(HostCycles, DefaultsGiveTheSharesTheyWereFittedTo) {
  const Machine::Host host;
  constexpr std::uint64_t kLength = 512, kWidth = 768, kHidden = 3072, kHeads = 12;
  const HostCycles softmax_cycles = host_cycles(HostOp::kSoftmax, kHeads * kLength * kLength, host);
  const HostCycles gelu = host_cycles(HostOp::kGelu, kLength * kHidden, host);
  const HostCycles norms = host_cycles(HostOp::kLayerNorm, 2 * kLength * kWidth, host);
  const HostCycles sums = host_cycles(HostOp::kAdd, 2 * kLength * kWidth, host);
  constexpr double kLayer = 787e6;
  EXPECT_NEAR(static_cast<double>(softmax_cycles.operation) / kLayer, 0.19, 0.001);
  EXPECT_NEAR(static_cast<double>(gelu.operation) / kLayer, 0.10, 0.001);
  EXPECT_NEAR(static_cast<double>(norms.operation) / kLayer, 0.04, 0.001);
  EXPECT_NEAR(static_cast<double>(sums.operation) / kLayer, 0.11, 0.001);
  const std::uint64_t converted =
      softmax_cycles.conversion + gelu.conversion + norms.conversion + sums.conversion;
  EXPECT_NEAR(static_cast<double>(converted) / kLayer, 0.49, 0.001);
}

TEST(HostCycles, AreThoseOfBlocksOfRows) {
  HostFunction function = softmax();
  EXPECT_EQ(host_block_rows(function, 100), 10U) << "400 bytes of int32 a row, 4096 a block";
  EXPECT_EQ(host_block_rows(function, 5000), 1U);
  function.op = HostOp::kAdd;
  EXPECT_EQ(host_block_rows(function, 100), 8U) << "and 100 of the second operand";
  Machine::Host host;
  host.softmax_cycles = 0.3;
  host.convert_cycles = 0.1;
  function = softmax();
  // A block of 1024 rows of one int32, and one of 3 rows.
  const HostCycles cycles = host_cycles(function, 1024 + 3, 1, host);
  EXPECT_EQ(cycles.operation, 307U + 1);
  EXPECT_EQ(cycles.conversion, 205U + 1);
  EXPECT_EQ(cycles.total(), 514U);
}

}  // namespace
}  // namespace systole::hw
