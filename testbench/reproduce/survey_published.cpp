#include "testbench/reproduce/survey_published.h"

namespace systole::testbench {
namespace {

using Kind = Tolerance::Kind;

constexpr Tolerance kEqual{Kind::kRelative, 1e-12};
constexpr Tolerance kWithin5Percent{Kind::kRelative, 0.05};
constexpr Tolerance kWithin10Percent{Kind::kRelative, 0.10};
constexpr Tolerance kPrinted2{Kind::kAbsolute, 0.005};  // rounded to two digits
constexpr std::string_view kEnergy = "survey, fig. 15";
constexpr std::string_view kText = "survey, section 4";
constexpr std::string_view kEyeriss = "survey, section 3.1";
constexpr std::string_view kResnet = "survey, tab. 4";
constexpr std::string_view kResnetText = "survey, section 3.3, of ResNet-50";

}  // namespace

const std::vector<Published>& survey_figures() {
  static const std::vector<Published> figures = {
      {"energy.mac", 0.3, "pJ", kEnergy, kEqual},
      {"energy.postop", 3.3, "pJ", kEnergy, kEqual},
      {"energy.sram_byte", 1.25, "pJ", kEnergy, kEqual},
      {"energy.dram_byte", 160, "pJ", kEnergy, kEqual},
      {"energy.add8", 0.03, "pJ", kEnergy, {}},
      {"energy.add_fp32", 0.9, "pJ", kEnergy, {}},
      {"area.add8", 36, "um2", kEnergy, {}},
      {"area.add_fp32", 4184, "um2", kEnergy, {}},
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
  };
  return figures;
}

const Published& survey_published(std::string_view key) {
  return find_published(survey_figures(), key);
}

}  // namespace systole::testbench
