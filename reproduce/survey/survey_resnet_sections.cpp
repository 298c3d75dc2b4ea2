/// ResNet-50 by shape: Tab. 4 and 12.

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "analysis/survey_performance.h"
#include "reproduce/study/resnet50.h"
#include "reproduce/survey/survey_networks.h"
#include "reproduce/survey/survey_published.h"
#include "reproduce/survey/survey_sections.h"

namespace systole::testbench {
namespace {

using analysis::Convolution;
using analysis::OperatorCost;

/// All convolutions, one entry a shape.
std::vector<OperatorCost> convolutions() {
  std::vector<OperatorCost> costs;
  for (const Convolution& layer : analysis::resnet50()) {
    OperatorCost cost;
    cost.macs = layer.count * layer.flops() / 2;
    cost.flops = layer.count * layer.flops();
    cost.bytes = layer.count * layer.bytes();
    costs.push_back(cost);
  }
  return costs;
}

const Convolution& layer_of(const std::vector<Convolution>& layers, const SurveyConvolution& line) {
  const auto layer = std::find_if(layers.rbegin(), layers.rend(), [&](const Convolution& c) {
    return c.kernel == line.kernel && c.inputs == line.inputs && c.outputs == line.outputs &&
           c.size == line.size && c.stride == 1;
  });
  if (layer == layers.rend()) throw std::logic_error("no convolution of that shape");
  return *layer;
}

}  // namespace

ReproductionSection resnet_section() {
  ReproductionSection section{"Tab. 4: ResNet-50", {}, {}};
  const auto add = [&](const std::string& name, double ours, const std::string& key) {
    section.rows.push_back(compare(name, ours, survey_published("resnet." + key)));
  };
  const auto add_cost = [&](const OperatorCost& cost, const std::string& key) {
    add(cost.name + ", FLOPs", kGiga * cost.flops, key + ".flops");
    add(cost.name + ", bytes", kGiga * cost.bytes, key + ".bytes");
    add(cost.name + ", ratio", cost.intensity(), key + ".ratio");
  };
  const analysis::SurveyModel model;
  const std::vector<OperatorCost> layers = convolutions();
  OperatorCost all = analysis::summarise(layers).total;
  all.name = "convolutions";
  const std::vector<OperatorCost> rest = analysis::resnet50_elementwise();
  add_cost(all, "convolution");
  OperatorCost unfused = all, fused = all;
  for (const OperatorCost& cost : rest) {
    add_cost(cost, cost.name);
    unfused.flops += cost.flops;
    unfused.bytes += cost.bytes;
  }
  fused.flops += rest.back().flops;
  fused.bytes += rest.back().bytes;
  unfused.name = "total";
  fused.name = "total, fused";
  add_cost(unfused, "unfused");
  add_cost(fused, "fused");
  const OperatorCost bert = analysis::summarise(survey_ideal_costs(0, 128, 4)).total;
  add("BERT-Base, l=128: FLOPs", bert.flops / unfused.flops, "bert.flops");
  add("BERT-Base, l=128: bytes", bert.bytes / unfused.bytes, "bert.bytes");
  const double cycles = model.cycles(layers) + model.cycles(rest);
  add("BERT-Base, l=128: time", survey_cycles(0, 128) / cycles, "bert.time");
  add("not convolutions, unfused", 100.0 * model.cycles(rest) / cycles, "other_share");
  add("faster by fusing", cycles / (model.cycles(layers) + model.cycles(rest.back())), "fusing");
  section.notes = {
      "All 53 convolutions by shape, stride 2 in a block's first. The survey does not say which of "
      "them it counts: FLOPs and ratios are met within 10 %, bytes as printed. Its BatchNorm has "
      "three operations and three bytes for each result, which is fitted. How it tiles "
      "convolutions it does not say either: what rests on that stands for reference.",
      "Fused: BatchNorm and ReLU cost nothing. Time: the model of fig. 32, each operand moved "
      "once."};
  return section;
}

ReproductionSection convolution_section() {
  constexpr std::string_view kSource = "survey, tab. 12";
  ReproductionSection section{"Tab. 12: convolutions of ResNet-50", {}, {}};
  const std::vector<Convolution> layers = analysis::resnet50();
  for (const SurveyConvolution& line : survey_table_12()) {
    const Convolution& layer = layer_of(layers, line);
    const std::string name =
        fmt::format("{0}x{0}, {1}, {2}x{2}", line.kernel, line.outputs, line.size);
    section.rows.push_back(compare(name + ", FLOPs", kGiga * line.count * layer.flops(),
                                   printed({line.gflops, 2}, "GFLOP", kSource)));
    section.rows.push_back(compare(name + ", bytes", kGiga * line.count * layer.bytes(),
                                   printed({line.gmops, 4}, "GB", kSource)));
    section.rows.push_back(compare(name + ", ratio", layer.intensity(),
                                   printed({line.intensity, 2}, "FLOP/B", kSource)));
  }
  section.notes.push_back(
      "Kernel, channels and size of the result. The survey counts three 1x1 convolutions from 256 "
      "to 64 channels; the network has two, and one from 64 to 64.");
  return section;
}

}  // namespace systole::testbench
