/// A GPT-2 layer, operator by operator.

#include <fmt/format.h>

#include "hw/description/machine_file.h"
#include "model/seeded/gpt_layer_graph.h"
#include "reproduce/fusion/fusion.h"

namespace systole::testbench {
namespace {

using model::GptLayerShape;

/// A machine on which nothing stays on chip but what is streamed, and which loads each operand
/// once.
hw::Machine spilling_machine(hw::FusionLevel level) {
  hw::Machine machine = with_fusion(hw::find_machine("transformer"), level);
  machine.mapper.on_chip = 0;
  machine.scratchpad.kib = 4096;
  machine.scratchpad.banks = 1;  // or operands leave the ring to keep out of the others' banks
  machine.accumulator.kib = 8192;
  machine.postop.row_statistics = 4096;
  return machine;
}

/// Where LayerNorms are split, the first one needs an operator before the layer, whose three
/// tensors are no part of it.
GptLayerShape shape_for(GptLayerShape shape, hw::FusionLevel level) {
  shape.embedding = level == hw::FusionLevel::kAll;
  return shape;
}

FusionTask layer_task(const GptLayerShape& shape, hw::FusionLevel level) {
  return {spilling_machine(level),
          [shape = shape_for(shape, level)](const hw::Machine& machine) {
            return model::make_gpt_layer_graph(shape, machine.datapath, 1, true);
          },
          {}};
}

/// A layer's figures, the embedding before it taken off.
struct LayerFigures {
  std::uint64_t passes, accesses, activation_bytes, moved_bytes;
};

LayerFigures figures_of(const FusionRun& run, const GptLayerShape& shape) {
  const std::uint64_t moved = run.loaded_bytes + run.operand_bytes + run.written_bytes;
  if (!shape.embedding) return {run.passes, run.accesses, run.activation_bytes(), moved};
  const std::uint64_t embedding = std::uint64_t{3} * shape.tokens * shape.width;
  return {run.passes - 1, run.accesses - embedding, run.activation_bytes() - embedding,
          moved - embedding};
}

std::vector<LayerFigures> run_layers(
    const std::vector<std::pair<GptLayerShape, hw::FusionLevel>>& layers) {
  std::vector<FusionTask> tasks;
  for (const auto& [shape, level] : layers) tasks.push_back(layer_task(shape, level));
  const std::vector<FusionRun> runs = run_fusion(tasks);
  std::vector<LayerFigures> figures;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    figures.push_back(figures_of(runs[i], shape_for(layers[i].first, layers[i].second)));
  }
  return figures;
}

std::string shape_name(const GptLayerShape& shape) {
  return fmt::format("d{} h{} c{}", shape.width, shape.heads, shape.context);
}

/// GPT-2 345M, a prompt of 128 tokens.
constexpr GptLayerShape k345MLayer{1024, 16, 128, 128};
/// Bytes of an element in the closed form.
constexpr double kFp16Bytes = 2.0;

/// The same with values.
ResultRow layer_difference_row() {
  static constexpr GptLayerShape kShape{64, 4, 32, 8};
  std::vector<std::uint8_t> tokens(std::size_t{kShape.tokens} * kShape.width);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<std::uint8_t>(i * i % 251);  // any bytes do
  }
  std::vector<FusionTask> tasks;
  for (const FusionStep& step : kFusionStepNames) {
    tasks.push_back({spilling_machine(step.level),
                     [](const hw::Machine& machine) {
                       return model::make_gpt_layer_graph(kShape, machine.datapath, 1, false);
                     },
                     {tokens}});
  }
  const std::vector<FusionRun> runs = run_fusion(tasks);
  return compare(fmt::format("{}: bytes that differ", shape_name(kShape)),
                 differing_bytes(runs.data(), runs.size()), fusion_paper().figure("same"));
}

}  // namespace

ReproductionSection fusion_layer_section() {
  std::vector<std::pair<GptLayerShape, hw::FusionLevel>> layers;
  for (GptLayerShape shape : {GptLayerShape{64, 4, 32, 32}, GptLayerShape{96, 3, 48, 8},
                              GptLayerShape{128, 8, 64, 4}, GptLayerShape{64, 2, 80, 1}}) {
    shape.keeps_scores = true;
    for (const FusionStep& step : kFusionStepNames) layers.emplace_back(shape, step.level);
  }
  const std::vector<LayerFigures> figures = run_layers(layers);
  const PublishedPaper& paper = fusion_paper();
  ReproductionSection section = paper.section("layer");
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const GptLayerShape& shape = layers[i].first;
    const char* const step = kFusionStepNames.at(i % kFusionSteps).name;
    const PublishedTable& forms = paper.table("layer");
    const double d = forms.value(step, "d"), hc = forms.value(step, "hc");
    const std::string name = fmt::format("{}, {}: ", shape_name(shape), step);
    section.rows.push_back(compare(name + "passes", static_cast<double>(figures[i].passes),
                                   paper.figure("passes", forms.value(step, "passes"))));
    // The simulation's bytes are the mapping's elements, or neither is what the form says.
    section.rows.push_back(compare(
        name + fmt::format("{} d + {} hc", d, hc), static_cast<double>(figures[i].activation_bytes),
        paper.figure("elements",
                     shape.tokens * (d * shape.width + hc * shape.heads * shape.context))));
  }
  section.rows.push_back(layer_difference_row());
  return section;
}

ReproductionSection fusion_softmax_section() {
  const LayerFigures figures = run_layers({{{128, 8, 64, 64}, hw::FusionLevel::kAll}}).front();
  return fusion_paper().section("softmax",
                                {{"passes", static_cast<double>(figures.passes)},
                                 {"elements", static_cast<double>(figures.activation_bytes)}});
}

ReproductionSection fusion_bytes_section() {
  std::vector<std::pair<GptLayerShape, hw::FusionLevel>> layers;
  GptLayerShape shape = k345MLayer;
  shape.keeps_scores = true;
  for (const FusionStep& step : kFusionStepNames) layers.emplace_back(shape, step.level);
  const std::vector<LayerFigures> figures = run_layers(layers);
  constexpr double kMega = 1e6;
  const double weights = 12.0 * shape.width * shape.width;
  std::array<double, kFusionSteps> expected{}, simulated{};
  Metrics metrics;
  for (std::size_t i = 0; i < kFusionSteps; ++i) {
    const std::string name = kFusionStepNames.at(i).name;
    expected.at(i) = static_cast<double>(figures[i].accesses) + weights;
    simulated.at(i) = static_cast<double>(figures[i].moved_bytes);
    metrics[name + ", FP16"] = expected.at(i) * kFp16Bytes / kMega;
    metrics[name + ", int8"] = expected.at(i) / kMega;
    metrics[name + ", simulated"] = simulated.at(i) / kMega;
  }
  metrics["gain"] = expected[0] / expected[1];
  metrics["simulated gain"] = simulated[0] / simulated[1];
  metrics["simulated gain of all"] = simulated[0] / simulated[2];
  return fusion_paper().section("bytes", metrics);
}

}  // namespace systole::testbench
