/// A GPT-2 layer, operator by operator.

#include <fmt/format.h>

#include "base/units.h"
#include "hw/description/machine_file.h"
#include "model/seeded/gpt_layer_graph.h"
#include "reproduce/fusion/fusion_published.h"
#include "reproduce/fusion/fusion_sections.h"

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

/// Where LayerNorms are parted, the first one needs somebody in front of the layer, whose three
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

/// A layer's figures, the embedding in front of it taken off.
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

std::string form_name(const GptLayerForm& form) {
  return form.hc == 0 ? fmt::format("{} d", form.d) : fmt::format("{} d + {} hc", form.d, form.hc);
}

void add_form(ReproductionSection& section, const std::string& name, const LayerFigures& figures,
              const GptLayerShape& shape, const GptLayerForm& form) {
  section.rows.push_back(compare(name + ": passes", static_cast<double>(figures.passes),
                                 follows(static_cast<double>(form.passes), "passes")));
  // The simulation's bytes are the mapping's elements, or neither is what the form says.
  const std::uint64_t expected =
      form.elements(shape.width, shape.heads, shape.context) * shape.tokens;
  section.rows.push_back(compare(fmt::format("{}: {}", name, form_name(form)),
                                 static_cast<double>(figures.activation_bytes),
                                 follows(static_cast<double>(expected), "elements")));
}

/// GPT-2 345M, a prompt of 128 tokens.
constexpr GptLayerShape k345MLayer{1024, 16, 128, 128};
/// Bytes of an element in the closed form.
constexpr double kFp16Bytes = 2.0;

double megabytes_of(double elements, double bytes) { return elements * bytes / 1e6; }

double weights_of(const GptLayerShape& shape) { return 12.0 * shape.width * shape.width; }

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
  return compare(
      fmt::format("{}: bytes that differ", shape_name(kShape)),
      static_cast<double>(differing_bytes(runs[0], runs[1]) + differing_bytes(runs[0], runs[2])),
      fusion_published("same"));
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
  ReproductionSection section{"A GPT-2 layer: passes and elements moved", {}, {}, {}};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::size_t step = i % kFusionSteps;
    add_form(section,
             fmt::format("{}, {}", shape_name(layers[i].first), kFusionStepNames.at(step).name),
             figures[i], layers[i].first, kGptLayerForms.at(step));
  }
  section.rows.push_back(layer_difference_row());
  section.notes = {
      "18 operators, int8 between them, d wide, h heads, c tokens of context; elements of 32, 8, 4 "
      "and 1 tokens. Heads are one operator.",
      "Machine transformer with mapper.on_chip 0 and memories that hold every operand once. "
      "Counted "
      "in the simulation: bytes of load and store unit, less weights, keys, values and parameters.",
      "all: preop.lanes 16. LayerNorms are parted: the operator in front leaves the sums of "
      "squares, "
      "the rest is a stage in front of the product. For the first one the positions are added in "
      "front of the layer; that pass is not counted.",
      "The masked scores are kept in memory, so that the softmax is a pass of its own, as in the "
      "closed form."};
  return section;
}

ReproductionSection fusion_softmax_section() {
  const GptLayerShape shape{128, 8, 64, 64};
  const std::vector<LayerFigures> figures = run_layers({{shape, hw::FusionLevel::kAll}});
  ReproductionSection section{"A GPT-2 layer: softmax behind the scores", {}, {}, {}};
  add_form(section, shape_name(shape), figures.front(), shape, kFusedSoftmaxForm);
  Published scores_on_chip = follows(static_cast<double>(kFusedAttentionForm.passes), "passes");
  scores_on_chip.tolerance.reset();
  section.rows.push_back(compare("scores never in memory: passes",
                                 static_cast<double>(figures.front().passes), scores_on_chip));
  section.notes = {
      "What the mapper does with the layer as it is, elements of 64 tokens. With mapper.on_chip 1 "
      "the probabilities stay in the scratchpad where there is room, which leaves 20 d.",
      fmt::format(
          "{} passes would need scores and P V in one pass, as the attention engines of the "
          "machine vitcod have it.",
          kFusedAttentionForm.passes)};
  return section;
}

ReproductionSection fusion_bytes_section() {
  std::vector<std::pair<GptLayerShape, hw::FusionLevel>> layers;
  GptLayerShape shape = k345MLayer;
  shape.keeps_scores = true;
  for (const FusionStep& step : kFusionStepNames) layers.emplace_back(shape, step.level);
  const std::vector<LayerFigures> figures = run_layers(layers);
  ReproductionSection section{"GPT-2 345M: bytes of a layer, prompt of 128 tokens", {}, {}, {}};
  const auto simulated = [&](std::size_t step) {
    return static_cast<double>(figures[step].moved_bytes);
  };
  std::array<double, kFusionSteps> expected{};
  for (std::size_t i = 0; i < kFusionSteps; ++i) {
    const std::string name = kFusionStepNames.at(i).name;
    expected.at(i) = static_cast<double>(figures[i].accesses) + weights_of(shape);
    section.rows.push_back(compare(name + ": elements and weights, FP16",
                                   megabytes_of(expected.at(i), kFp16Bytes),
                                   fusion_published("345M." + name)));
  }
  section.rows.push_back(compare("off to post: elements and weights", expected[0] / expected[1],
                                 fusion_published("345M.gain")));
  for (std::size_t i = 0; i < kFusionSteps; ++i) {
    const Published whole{"",
                          megabytes_of(expected.at(i), 1),
                          "MB",
                          {"the same in int8", Claim::kFollows},
                          kWithin5Percent,
                          2};
    section.rows.push_back(compare(fmt::format("{}: simulated, int8", kFusionStepNames.at(i).name),
                                   megabytes_of(simulated(i), 1), whole));
  }
  section.rows.push_back(compare("off to post: simulated", simulated(0) / simulated(1),
                                 fusion_published("345M.gain")));
  section.rows.push_back(measured("off to all: simulated", simulated(0) / simulated(2), "x"));
  section.notes = {
      "Machine and layer as above, timing alone. Simulated bytes are those of load and store unit, "
      "with keys, values, biases and factors; commands are left out.",
      "The weights, 12 d^2, come in once. An element has one byte here and two in the closed form: "
      "the quotient is the same."};
  return section;
}

}  // namespace systole::testbench
