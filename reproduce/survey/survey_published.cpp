#include "reproduce/survey/survey_published.h"

namespace systole::testbench {
namespace {

using Kind = Tolerance::Kind;

constexpr Tolerance kEqual{Kind::kRelative, 1e-12};
constexpr Tolerance kWithin10Percent{Kind::kRelative, 0.10};
constexpr Tolerance kPrinted2{Kind::kAbsolute, 0.005};  // rounded to two digits
constexpr Tolerance kWithin25Percent{Kind::kRelative, 0.25};
constexpr Tolerance kWithin15Percent{Kind::kRelative, 0.15};
constexpr Tolerance kWithinADecade{Kind::kAbsolute, 1.0};
constexpr Tolerance points(double amount) { return {Kind::kAbsolute, amount}; }
constexpr Tolerance kWithin9Points = points(9);
// The energy table is set from these.
const Source kFigure15{"survey, fig. 15", Claim::kCalibrated};
const Source kText{"survey, section 4", Claim::kFollows};
const Source kEyeriss{"survey, section 3.1"};
const Source kResnet{"survey, tab. 4"};
const Source kResnetText{"survey, section 3.3, of ResNet-50"};

const Source kRtl{"RTL on FireSim, Gemmini's own tiles, artifact of DOSA"};
const Source kRtlMean{"follows from these five"};
const Source kSplit{"survey, fig. 13"};
const Source kCase{"survey, section 3.4"};
const Source kAfter{"survey, fig. 14"};
// What the host takes for an element is set from these.
const Source kBefore{"survey, fig. 14", Claim::kCalibrated};

}  // namespace

const std::vector<Published>& survey_figures() {
  static const std::vector<Published> figures = {
      {"energy.mac", 0.3, "pJ", kFigure15, kEqual},
      {"energy.postop", 3.3, "pJ", kFigure15, kEqual},
      {"energy.sram_byte", 1.25, "pJ", kFigure15, kEqual},
      {"energy.dram_byte", 160, "pJ", kFigure15, kEqual},
      {"energy.add8", 0.03, "pJ", kFigure15, {}},
      {"energy.add_fp32", 0.9, "pJ", kFigure15, {}},
      {"area.add8", 36, "um2", kFigure15, {}},
      {"area.add_fp32", 4184, "um2", kFigure15, {}},
      {"ratio.add_energy", 30, "x", kText, kWithin5Percent},
      {"ratio.add_area", 120, "x", kText, kWithin5Percent},
      {"ratio.buffer", 6, "x", kEyeriss, {}},
      {"ratio.dram", 200, "x", kEyeriss, {}},
      {"resnet.convolution.flops", 7.26, "GFLOP", kResnet, kWithin10Percent, 2},
      {"resnet.convolution.bytes", 0.04, "GB", kResnet, kPrinted2, 2},
      {"resnet.convolution.ratio", 183.36, "FLOP/B", kResnet, kWithin10Percent, 2},
      {"resnet.BatchNorm.flops", 0.03, "GFLOP", kResnet, kPrinted2, 2},
      {"resnet.BatchNorm.bytes", 0.03, "GB", kResnet, kPrinted2, 2},
      {"resnet.BatchNorm.ratio", 1.00, "FLOP/B", kResnet, kWithin10Percent, 2},
      {"resnet.ReLU.flops", 0.008, "GFLOP", kResnet, {}, 3},
      {"resnet.ReLU.bytes", 0.02, "GB", kResnet, kPrinted2, 2},
      {"resnet.ReLU.ratio", 0.50, "FLOP/B", kResnet, kWithin10Percent, 2},
      {"resnet.other.flops", 0.01, "GFLOP", kResnet, kPrinted2, 2},
      {"resnet.other.bytes", 0.02, "GB", kResnet, kPrinted2, 2},
      {"resnet.other.ratio", 0.53, "FLOP/B", kResnet, kWithin10Percent, 2},
      {"resnet.unfused.flops", 7.31, "GFLOP", kResnet, kWithin10Percent, 2},
      {"resnet.unfused.bytes", 0.11, "GB", kResnet, kPrinted2, 2},
      {"resnet.unfused.ratio", 66.94, "FLOP/B", kResnet, kWithin10Percent, 2},
      {"resnet.fused.flops", 7.28, "GFLOP", kResnet, kWithin10Percent, 2},
      {"resnet.fused.bytes", 0.06, "GB", kResnet, kPrinted2, 2},
      {"resnet.fused.ratio", 121.36, "FLOP/B", kResnet, kWithin10Percent, 2},
      {"resnet.bert.flops", 3.07, "x", kResnetText, kWithin10Percent, 2},
      {"resnet.bert.bytes", 1.28, "x", kResnetText, kWithin10Percent, 2},
      {"resnet.bert.time", 1.28, "x", kResnetText, {}, 2},
      {"resnet.other_share", 32.4, "%", kResnetText, {}, 1},
      {"resnet.fusing", 1.32, "x", kResnetText, kWithin10Percent, 2},
      {"rtl.128x768x768", 345931, "cycles", kRtl, kWithin10Percent},
      {"rtl.128x128x64", 6706, "cycles", kRtl, kWithin25Percent},
      {"rtl.128x64x128", 7517, "cycles", kRtl, kWithin25Percent},
      {"rtl.128x3072x768", 1533044, "cycles", kRtl, kWithin10Percent},
      {"rtl.128x768x3072", 1518059, "cycles", kRtl, kWithin10Percent},
      {"rtl.utilisation", 79.0, "%", kRtlMean, kWithin9Points},
      {"split.64.64", 66, "%", kSplit, kWithin9Points},
      {"split.128.64", 71, "%", kSplit, kWithin9Points},
      {"split.256.64", 69, "%", kSplit, kWithin9Points},
      {"split.64.128", 91, "%", kSplit, kWithin9Points},
      {"split.128.128", 91, "%", kSplit, kWithin9Points},
      {"split.256.128", 88, "%", kSplit, kWithin9Points},
      {"split.64.256", 91, "%", kSplit, kWithin9Points},
      {"split.128.256", 91, "%", kSplit, kWithin9Points},
      {"split.256.256", 90, "%", kSplit, kWithin9Points},
      {"split.rms", 5, "%", {"a bound of ours on all nine together", Claim::kFollows}, kAtMost},
      {"split.saved", 24.2, "%", "follows from fig. 13: 1 - 69 / 91", {}},
      {"split.saved_text", 36, "%", kCase, {}},
      {"after.matmul", 87, "%", kAfter, points(5)},
      {"after.softmax", 3, "%", kAfter, points(2)},
      {"after.layernorm", 7, "%", kAfter, points(4)},
      {"after.residual", 4, "%", kAfter, points(3)},
      {"after.matmul_bars", 80, "%", "survey, fig. 14, bars without numbers", kAtLeast},
      {"after.layer", 19.87e6, "cycles", "follows from fig. 13 and 14: 15.73e6 / 0.91 / 0.87", {}},
      {"after.softmax_reads",
       589824,
       "vectors",
       {"follows from the shape: 3 h l^2 / 16", Claim::kFollows},
       kExactly},
      {"mapspace.decades", 4, "decades", "survey, section 5", kWithinADecade},
      {"fusion.change", 0, "%", "survey, section 5", points(8)},
      {"fusion.signs", 0, "cases", "survey, section 5", kExactly},
      {"before.matmul", 1, "%", kBefore, {}},
      {"before.matmul_implied",
       3.5,
       "%",
       {"follows from 39.6 times: 3 to 4 %", Claim::kCalibrated},
       points(1)},
      {"before.softmax", 19, "%", kBefore, points(2)},
      {"before.layernorm", 4, "%", kBefore, {}},
      {"before.residual", 11, "%", kBefore, points(3)},
      {"before.convert", 49, "%", kBefore, points(5)},
      {"before.gelu", 10, "%", kBefore, points(5)},
      {"before.layer", 787e6, "cycles", "follows from 39.6 times", {}},
      {"before.utilisation", 1, "%", kCase, {}},
      {"speedup", 39.6, "x", {"survey, section 3.4", Claim::kCalibrated}, kWithin15Percent},
      {"quoted.area", 14, "%", kCase, {}},
      {"quoted.power", 9.3, "%", kCase, {}},
      {"quoted.latency", 8, "%", kCase, {}},
      {"quoted.edp", 2.24, "x", "survey, section 6", {}},
  };
  return figures;
}

const Published& survey_published(std::string_view key) {
  return find_published(survey_figures(), key);
}

}  // namespace systole::testbench
