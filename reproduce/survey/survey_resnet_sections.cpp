/// ResNet-50 by shape: Tab. 4 and 12.

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "analysis/survey_performance.h"
#include "model/seeded/shapes.h"
#include "reproduce/study/resnet50.h"
#include "reproduce/survey/survey.h"

namespace systole::testbench {
namespace {

using analysis::Convolution;
using analysis::OperatorCost;

/// Tab. 12: kernel, channels in and out, size, and how many layers its FLOPs and bytes count.
/// The survey prints kernel, outputs and size.
struct SurveyConvolution {
  std::uint32_t kernel, inputs, outputs, size, count;
};
constexpr SurveyConvolution kConvolutions[] = {
    {1, 256, 64, 56, 3},   {3, 64, 64, 56, 3},   {1, 64, 256, 56, 3},   {1, 512, 128, 28, 3},
    {3, 128, 128, 28, 4},  {1, 128, 512, 28, 4}, {1, 1024, 256, 14, 5}, {3, 256, 256, 14, 6},
    {1, 256, 1024, 14, 6}, {1, 2048, 512, 7, 2}, {3, 512, 512, 7, 3},   {1, 512, 2048, 7, 3}};

OperatorCost cost_of(const std::string& name, const Convolution& layer, std::uint32_t count) {
  OperatorCost cost;
  cost.name = name;
  cost.macs = count * layer.flops() / 2;
  cost.flops = count * layer.flops();
  cost.bytes = count * layer.bytes();
  return cost;
}

/// All convolutions, one entry a shape.
std::vector<OperatorCost> convolutions() {
  std::vector<OperatorCost> costs;
  for (const Convolution& layer : analysis::resnet50()) {
    costs.push_back(cost_of("", layer, layer.count));
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
  const analysis::SurveyModel model;
  const std::vector<OperatorCost> layers = convolutions();
  OperatorCost all = analysis::summarise(layers).total;
  const std::vector<OperatorCost> rest = analysis::resnet50_elementwise();
  OperatorCost unfused = all, fused = all;
  all.name = "convolutions";
  std::vector<ResultRow> rows = cost_rows("tab4", all.name, all);
  const auto add = [&](const OperatorCost& cost) {
    const std::vector<ResultRow> more = cost_rows("tab4", cost.name, cost);
    rows.insert(rows.end(), more.begin(), more.end());
  };
  for (const OperatorCost& cost : rest) {
    add(cost);
    unfused.flops += cost.flops;
    unfused.bytes += cost.bytes;
  }
  fused.flops += rest.back().flops;
  fused.bytes += rest.back().bytes;
  unfused.name = "total";
  fused.name = "total, fused";
  add(unfused);
  add(fused);
  const OperatorCost bert = analysis::summarise(survey_ideal_costs(0, 128, 4)).total;
  const double cycles = model.cycles(layers) + model.cycles(rest);
  ReproductionSection section = survey_paper().section(
      "resnet", {{"bert, flops", bert.flops / unfused.flops},
                 {"bert, bytes", bert.bytes / unfused.bytes},
                 {"bert, time", survey_cycles(0, 128) / cycles},
                 {"rest", 100.0 * model.cycles(rest) / cycles},
                 {"fusing", cycles / (model.cycles(layers) + model.cycles(rest.back()))}});
  section.rows.insert(section.rows.begin(), rows.begin(), rows.end());
  return section;
}

ReproductionSection simulated_resnet_section(const ResNetRuns& runs) {
  const double layers = model::find_shape("bert-base").layers;
  const double bert = layers * per_layer(runs.bert, "cycles");
  const double cycles = per_layer(runs.optimised, "cycles");
  return survey_paper().section("resnet-simulated",
                                {{"macs", runs.optimised.at("macs").get<double>() * kGiga},
                                 {"bert, macs", layers * per_layer(runs.bert, "macs") /
                                                    runs.optimised.at("macs").get<double>()},
                                 {"bert, time", bert / cycles},
                                 {"cycles", cycles},
                                 {"utilisation", array_percent(runs.optimised)},
                                 {"bert, utilisation", array_percent(runs.bert)},
                                 {"baseline, cycles", per_layer(runs.baseline, "cycles")},
                                 {"baseline, utilisation", array_percent(runs.baseline)}});
}

ReproductionSection convolution_section() {
  ReproductionSection section = survey_paper().section("convolutions");
  const std::vector<Convolution> layers = analysis::resnet50();
  for (const SurveyConvolution& line : kConvolutions) {
    const std::string name =
        fmt::format("{0}x{0}, {1}, {2}x{2}", line.kernel, line.outputs, line.size);
    section.add(cost_rows("tab12", name, cost_of(name, layer_of(layers, line), line.count)));
  }
  return section;
}

}  // namespace systole::testbench
