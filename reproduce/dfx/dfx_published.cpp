#include "reproduce/dfx/dfx_published.h"

#include <cmath>

namespace systole::testbench {
namespace {

using Kind = Tolerance::Kind;

constexpr Tolerance kWithin8Percent{Kind::kRelative, 0.08};
constexpr Tolerance kWithinHalfAPoint{Kind::kAbsolute, 0.5};

// dfx.issue_cycles and ring.hop_ns were set on the passes of 345M that these give.
const Source kThroughput{"DFX (MICRO 2022), throughput of GPT-2 345M", Claim::kCalibrated};
const Source kFromThroughput{"follows from DFX's throughput of GPT-2 345M", Claim::kCalibrated};
const Source kLatency{"StreamTensor (MICRO 2025), latency of DFX"};
const Source kMotivation{"DFX, motivation: GPT-2 1.5B on a V100"};
const Source kAbstract{"DFX, abstract: mean of sizes and lengths on four devices"};
const Source kSizes{"follows from the sizes of GPT-2 and DFX", Claim::kFollows};
const Source kContract{"DFX's partitioning", Claim::kFollows};

}  // namespace

const std::vector<DfxRoofline>& dfx_rooflines() {
  static const std::vector<DfxRoofline> rows = {
      {kDfx124M, 247.1, 36.9, {0.547, 0.274, 0.137}, {0.615, 0.307, 0.154}},
      {kDfx345M, 706.9, 98.3, {1.564, 0.782, 0.391}, {1.757, 0.878, 0.439}},
      {kDfx774M, 1544.2, 184.3, {3.408, 1.704, 0.852}, {3.828, 1.914, 0.957}},
      {kDfxFullXl, 3109.9, 307.2, {6.846, 3.423, 1.712}, {7.689, 3.844, 1.922}},
      {kDfx1500M, 2872.3, 294.9, {6.326, 3.163, 1.582}, {7.105, 3.552, 1.776}},
  };
  return rows;
}

const std::vector<DfxMatrixBound>& dfx_matrix_bounds() {
  static const std::vector<DfxMatrixBound> rows = {
      {kDfx345M, 1, 1024, 4096, 12288, 50272, 345184},
      {kDfx774M, 2, 800, 3200, 9600, 31420, 377020},
      {kDfx1500M, 4, 576, 2304, 6912, 18864, 350640},
  };
  return rows;
}

const std::vector<DfxRingBound>& dfx_ring_bounds() {
  static const std::vector<DfxRingBound> rows = {
      {kDfx345M, 2, 0.59, 0.30, {{{1.8, 1.5}, {2.6, 2.3}, {4.6, 4.3}, {8.6, 8.3}}}},
      {kDfx345M, 4, 0.89, 0.59, {{{4.5, 3.0}, {6.9, 4.6}, {12.9, 8.6}, {24.9, 16.6}}}},
      {kDfx774M, 2, 0.74, 0.37, {{{1.9, 1.6}, {2.7, 2.4}, {4.7, 4.4}, {8.7, 8.4}}}},
      {kDfx1500M, 4, 1.33, 0.89, {{{4.9, 3.3}, {7.3, 4.9}, {13.3, 8.9}, {25.3, 16.9}}}},
  };
  return rows;
}

const Published& dfx_published(std::string_view key) {
  static const std::vector<Published> figures = {
      {"pass.1", 5.371, "ms", kFromThroughput, kWithin8Percent, 3},
      {"pass.2", 3.419, "ms", kFromThroughput, kWithin8Percent, 3},
      {"pass.4", 2.409, "ms", kFromThroughput, kWithin8Percent, 3},
      {"speed.1", 93.10, "token/s", kThroughput, kWithin8Percent, 2},
      {"speed.2", 146.25, "token/s", kThroughput, kWithin8Percent, 2},
      {"speed.4", 207.56, "token/s", kThroughput, kWithin8Percent, 2},
      {"scaling.1.2", 1.571, "x", kFromThroughput, kWithin8Percent, 3},
      {"scaling.2.4", 1.419, "x", kFromThroughput, kWithin8Percent, 3},
      {"scaling.1.4", 2.230, "x", kFromThroughput, kWithin8Percent, 3},
      {"total.32", 350.0, "ms", kLatency, kWithin8Percent, 1},
      {"total.64", 694.7, "ms", kLatency, kWithin8Percent, 1},
      {"total.128", 1384.0, "ms", kLatency, kWithin8Percent, 1},
      {"first.32", 177.2, "ms", kLatency, kWithin8Percent, 1},
      {"first.64", 349.1, "ms", kLatency, kWithin8Percent, 1},
      {"first.128", 692.8, "ms", kLatency, kWithin8Percent, 1},
      {"token", 5.40, "ms", kLatency, kWithin8Percent, 2},
      {"speed-up", 5.58, "x", kAbstract, {}, 2},
      {"gpu.32.1", 75, "ms", {"DFX, bars of its motivation", Claim::kFollows}, kWithin5Percent},
      {"gpu.128.1", 78, "ms", {"DFX, bars of its motivation", Claim::kFollows}, kWithin5Percent},
      {"gpu.32.4", 300, "ms", {"DFX, bars of its motivation", Claim::kFollows}, kWithin5Percent},
      {"gpu.output", 75.45, "ms", kMotivation, {}, 2},
      {"gpu.input", 0.02, "ms", kMotivation, {}, 2},
      {"operations.norm", 0.1, "%", kMotivation, kWithinHalfAPoint, 2},
      {"operations.attention", 33.31, "%", kMotivation, kWithinHalfAPoint, 2},
      {"operations.residual", 0.01, "%", kMotivation, kWithinHalfAPoint, 2},
      {"operations.feed_forward", 66.59, "%", kMotivation, kWithinHalfAPoint, 2},
      {"time.norm", 9.9, "%", kMotivation, {}, 1},
      {"time.attention", 56.5, "%", kMotivation, {}, 1},
      {"time.residual", 12.9, "%", kMotivation, {}, 1},
      {"time.feed_forward", 20.7, "%", kMotivation, {}, 1},
      {"norm.quotient", 207, "x", "DFX's motivation", {}},
      {"hbm.peak", 460, "GB/s", {"DFX", Claim::kFollows}, Tolerance{Kind::kRelative, 0.005}},
      {"hbm.kernel", 409.6, "GB/s", kSizes, kExactly, 1},
      {"ideal.least", 1.757, "ms", kSizes, kAtLeast, 3},
      {"ideal.most", 1.97, "ms", {"12 % above the bound", Claim::kFollows}, kAtMost, 2},
      {"ideal.ratio",
       1.12,
       "x",
       {"chosen: what control and attention may cost", Claim::kFollows},
       kAtMost,
       2},
      {"share.hbm", 28.6, "%", kFromThroughput, kWithin8Percent, 1},
      {"share.matrix", 32.1, "%", kFromThroughput, kWithin8Percent, 1},
      {"gflops", 131.6, "GFLOPS", kFromThroughput, kWithin8Percent, 1},
      {"serial", 693, "ms", kLatency, kWithin8Percent},
      {"batched", 189, "ms", kSizes, Tolerance{Kind::kAbsolute, 0.5}},
      {"syncs", 4, "syncs", kContract, kExactly},
      {"syncs.one", 0, "syncs", kContract, kExactly},
      {"reduce", 9216, "B", kSizes, kExactly},
  };
  return find_published(figures, key);
}

double dfx_gpu_milliseconds(std::uint32_t input, std::uint32_t output) {
  return dfx_published("gpu.output").value * output + dfx_published("gpu.input").value * input;
}

Published dfx_rounded(double value, int decimals, std::string_view unit, double relative) {
  // A little more, for what lies in the middle.
  const double half_a_digit = 0.5000001 * std::pow(10.0, -decimals);
  return {"",      value, std::string(unit), kSizes, Tolerance{Kind::kAbsolute, half_a_digit + relative * value},
          decimals};
}

}  // namespace systole::testbench
