#include "analysis/transformer_cost.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tests/analysis/survey_shapes.h"

// The numbers are those that the survey prints (arXiv 2302.14017). Where its tables contradict
// themselves, ours is here and the print in a comment.
namespace systole::analysis {
namespace {

constexpr OperatorClass kClasses[] = {OperatorClass::kProjection, OperatorClass::kAttention,
                                      OperatorClass::kFeedForward, OperatorClass::kOther};

struct CostRow {
  double gflops;
  int gflops_digits;
  double gmops;
  int gmops_digits;
  double intensity;
};

void expect_row(const OperatorCost& cost, const CostRow& row) {
  SCOPED_TRACE(cost.name);
  EXPECT_EQ(giga(cost.flops, row.gflops_digits), row.gflops);
  EXPECT_EQ(giga(cost.bytes, row.gmops_digits), row.gmops);
  EXPECT_EQ(printed(cost.intensity(), 2), row.intensity);
}

void expect_table(const CostSummary& summary, const std::vector<CostRow>& rows) {
  ASSERT_EQ(rows.size(), kOperatorClasses + 1);
  for (std::size_t i = 0; i < kOperatorClasses; ++i) expect_row(summary.classes[i], rows[i]);
  expect_row(summary.total, rows.back());
}

/// Shares in percent, as printed; an empty one is not compared.
void expect_shares(const CostSummary& summary, double OperatorCost::*what,
                   const std::vector<std::optional<double>>& percent, int last_digits) {
  for (std::size_t i = 0; i < kOperatorClasses; ++i) {
    if (!percent[i]) continue;
    const double share = 100 * summary.classes[i].*what / summary.total.*what;
    EXPECT_EQ(printed(share, i + 1 == kOperatorClasses ? last_digits : 0), *percent[i])
        << summary.classes[i].name;
  }
}

TEST(IdealCosts, AreTable3AtLength128) {
  const CostSummary costs = summarise(ideal_costs({kBertBase, 128}));
  expect_table(costs, {{7.25, 2, 0.04, 2, 192.00},
                       {0.60, 2, 0.009, 3, 63.62},  // printed 0.006, but 0.60 / 63.62 = 0.0094
                       {14.50, 2, 0.07, 2, 211.86},
                       {0.08, 2, 0.02, 2, 3.14},
                       {22.42, 2, 0.14, 2, 159.72}});  // printed 159.68
  expect_shares(costs, &OperatorCost::flops, {32, 3, 65, 0.3}, 1);
  expect_shares(costs, &OperatorCost::bytes, {27, 7, 49, 18}, 0);
}

TEST(IdealCosts, AreTable3AtLength512) {
  const CostSummary costs = summarise(ideal_costs({kBertBase, 512}));
  expect_table(costs, {{28.99, 2, 0.07, 2, 438.86},
                       {9.62, 2, 0.09, 2, 101.95},
                       {57.98, 2, 0.10, 2, 558.55},  // printed 558.54
                       {0.42, 2, 0.16, 2, 2.73},
                       {97.02, 2, 0.42, 2, 231.02}});  // printed 231.0
  expect_shares(costs, &OperatorCost::flops, {30, 10, 60, 0.4}, 1);
  expect_shares(costs, &OperatorCost::bytes, {16, 22, 25, 37}, 0);  // 22: printed 20
}

TEST(IdealCosts, AreTable3AtLength4096) {
  const CostSummary costs = summarise(ideal_costs({kBertBase, 4096}));
  expect_table(costs, {{231.93, 2, 0.33, 2, 702.17},
                       {616.02, 2, 4.98, 2, 123.63},
                       {463.86, 2, 0.43, 2, 1068.52},
                       {11.85, 2, 5.47, 2, 2.17},  // printed 2.16
                       {1323.66, 2, 11.22, 2, 117.96}});
  expect_shares(costs, &OperatorCost::flops, {18, 47, 35, 1}, 0);  // 46.5: printed 46
  expect_shares(costs, &OperatorCost::bytes, {3, 44, 4, 49}, 0);
}

TEST(IdealCosts, AreTable10WithFourHeads) {
  model::EncoderShape shape = kBertBase;
  shape.heads = 4;
  struct Expected {
    std::uint32_t length;
    CostRow total;
    double attention, other;
  };
  // Printed totals: 167.14 and 303.59 FLOPs per byte; the first of the others: 3.30.
  for (const Expected& e : {Expected{128, {22.42, 2, 0.13, 2, 167.18}, 95.69, 3.31},
                            {512, {96.94, 2, 0.32, 2, 303.62}, 219.04, 3.07},
                            {4096, {1318.83, 2, 4.78, 2, 276.00}, 350.61, 2.40}}) {
    const CostSummary costs = summarise(ideal_costs({shape, e.length}));
    expect_row(costs.total, e.total);
    EXPECT_EQ(printed(costs.of(OperatorClass::kAttention).intensity(), 2), e.attention);
    EXPECT_EQ(printed(costs.of(OperatorClass::kOther).intensity(), 2), e.other);
  }
}

TEST(DecodeCosts, AreTable11) {
  const CostSummary short_run = summarise(decode_costs(kGpt2, 128));
  expect_table(short_run, {{7.25, 2, 3.63, 2, 1.99},
                           {0.30, 2, 0.16, 2, 1.92},
                           {14.50, 2, 7.26, 2, 2.00},
                           {0.07, 2, 0.03, 2, 2.58},
                           {22.12, 2, 11.08, 2, 2.00}});
  const CostSummary middle = summarise(decode_costs(kGpt2, 512));
  expect_table(middle, {{28.99, 2, 14.53, 2, 1.99},
                        {4.83, 2, 2.45, 2, 1.97},  // printed 2.00, but 4.83 / 2.45 = 1.97
                        {57.98, 2, 29.04, 2, 2.00},
                        {0.35, 2, 0.14, 2, 2.47},
                        {92.15, 2, 46.17, 2, 2.00}});
  const CostSummary long_run = summarise(decode_costs(kGpt2, 4096));
  expect_table(long_run, {{231.93, 2, 116.27, 2, 1.99},
                          {309.24, 2, 155.98, 2, 1.98},
                          {463.86, 2, 232.31, 2, 2.00},
                          {7.02, 2, 3.25, 2, 2.16},
                          {1012.04, 2, 507.80, 2, 1.99}});
}

struct Point {
  std::uint32_t length;
  double gflops, gmops, intensity;
};

/// Compares the totals of `costs(length)` with a curve of Fig. 4 to 6.
template <typename Costs>
void expect_curve(const std::vector<Point>& curve, Costs costs) {
  for (const Point& point : curve) {
    SCOPED_TRACE(point.length);
    const OperatorCost total = summarise(costs(point.length)).total;
    EXPECT_EQ(giga(total.flops, 0), point.gflops);
    EXPECT_EQ(giga(total.bytes, 1), point.gmops);
    EXPECT_EQ(printed(total.intensity(), 0), point.intensity);
  }
}

// The last intensity is printed 117, where Tab. 3 has 117.96.
TEST(IdealCosts, AreFigures4To6OfBertBase) {
  expect_curve({{128, 22, 0.1, 160},
                {256, 46, 0.2, 215},
                {512, 97, 0.4, 231},
                {1024, 214, 1.1, 202},
                {2048, 505, 3.2, 156},
                {4096, 1324, 11.2, 118}},
               [](std::uint32_t length) {
                 return ideal_costs({kBertBase, length});
               });
}

// Printed: 266 FLOPs per byte at 512, 235 at 1024 and 131 at 4096; 1.1 and 29.9 GMOP at 512 and
// 4096.
TEST(IdealCosts, AreFigures4To6OfBertLargeWithThreeProjections) {
  expect_curve({{128, 73, 0.4, 171},
                {256, 149, 0.6, 239},
                {512, 310, 1.2, 265},
                {1024, 673, 2.9, 234},
                {2048, 1554, 8.7, 179},
                {4096, 3942, 30.0, 132}},
               [](std::uint32_t length) {
                 return ideal_costs({kBertLarge, length, 3});
               });
}

TEST(DecodeCosts, AreFigures4To6OfGpt2) {
  expect_curve({{128, 22, 11.1, 2},
                {256, 45, 22.5, 2},
                {512, 92, 46.2, 2},
                {1024, 194, 97.3, 2},
                {2048, 428, 214.3, 2},
                {4096, 1012, 507.8, 2}},
               [](std::uint32_t length) { return decode_costs(kGpt2, length); });
}

TEST(IdealCosts, CountAFourthOfTheProjectionsOfBertLargeMore) {
  struct Expected {
    std::uint32_t length;
    double gflops;
    int digits;
    double intensity;
  };
  for (const Expected& e : {Expected{128, 79.1, 1, 176},
                            {256, 161.5, 1, 249},
                            {512, 336.0, 1, 281},
                            {1024, 724.2, 1, 250},
                            {2048, 1657, 0, 190},
                            {4096, 4148, 0, 138}}) {
    const OperatorCost total = summarise(ideal_costs({kBertLarge, e.length, 4})).total;
    EXPECT_EQ(giga(total.flops, e.digits), e.gflops);
    EXPECT_EQ(printed(total.intensity(), 0), e.intensity);
  }
}

const OperatorCost& named(const std::vector<OperatorCost>& costs, const std::string& name) {
  for (const OperatorCost& cost : costs) {
    if (cost.name == name) return cost;
  }
  throw std::out_of_range(name);
}

TEST(TiledCosts, AreTable5) {
  struct Expected {
    std::uint32_t length;
    double qkv, scores, context, output, w1, w2, total;
  };
  // Printed totals: 106.110, 111.122 and 47.067; the first W_QKV is printed 170.670.
  for (const Expected& e : {Expected{128, 170.667, 25.4, 63.75, 128, 130.723, 186.182, 106.184},
                            {512, 341.333, 29.882, 102.3, 204.8, 211.862, 409.6, 111.141},
                            {4096, 409.6, 30.788, 118.71, 227.556, 236.308, 512, 47.067}}) {
    SCOPED_TRACE(e.length);
    const std::vector<OperatorCost> costs = tiled_costs({kBertBase, e.length}, {});
    const auto intensity = [&](const char* name) {
      return printed(named(costs, name).intensity(), 3);
    };
    for (const char* name : {"query", "key", "value"}) EXPECT_EQ(intensity(name), e.qkv) << name;
    EXPECT_EQ(intensity("scores"), e.scores);
    EXPECT_EQ(intensity("context"), e.context);
    EXPECT_EQ(intensity("output"), e.output);
    EXPECT_EQ(intensity("W1"), e.w1);
    EXPECT_EQ(intensity("W2"), e.w2);
    EXPECT_EQ(printed(summarise(costs).total.intensity(), 3), e.total);
  }
}

TEST(TiledCosts, NeedTilesThatFitTheL2) {
  TileLimits limits;
  const double cols = limits.cols();
  EXPECT_LE(4 * limits.rows * cols + 2 * 16 * (limits.rows + cols), limits.l2_bytes);
  // Half the L2 makes narrower tiles, which read inputs again more often.
  TileLimits half;
  half.l2_bytes /= 2;
  EXPECT_LT(half.cols(), limits.cols());
  EXPECT_GT(summarise(tiled_costs({kBertBase, 512}, half)).total.bytes,
            summarise(tiled_costs({kBertBase, 512}, limits)).total.bytes);
}

TEST(Costs, HaveTheSameMacsHoweverTheyAreTiled) {
  for (const OperatorClass kind : kClasses) {
    EXPECT_EQ(summarise(ideal_costs({kBertBase, 384})).of(kind).macs,
              summarise(tiled_costs({kBertBase, 384}, {})).of(kind).macs);
  }
}

}  // namespace
}  // namespace systole::analysis
