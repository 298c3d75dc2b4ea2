/// The embedded models on the preset machines.

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "hw/description/machine_file.h"
#include "model/data/dataset.h"
#include "reproduce/fusion/fusion.h"
#include "testbench/network/networks.h"

namespace systole::testbench {
namespace {

/// Those of text generation have the fixed fusion of DFX.
constexpr std::array<const char*, 5> kFusionMachines = {"transformer", "vitcod", "survey",
                                                        "gemmini", "tiny"};
constexpr std::array<const char*, 9> kFusionModels = {
    "vit17",          "vit65",          "vit17-post",        "vit65-sparse80",
    "vit65-sparse90", "vit65-sparse95", "vit65-sparse90-ae", "vit65-random90",
    "vit65-random95"};
constexpr std::size_t kPictures = 2;

/// The preset, and what had to be changed for models that it cannot run as it is.
struct ModelMachine {
  hw::Machine machine;
  std::vector<std::string> notes;
};

ModelMachine model_machine(const std::string& name) {
  ModelMachine result{hw::find_machine(name), {}};
  const hw::Machine usual;
  hw::Machine& machine = result.machine;
  if (machine.datapath.softmax != usual.datapath.softmax) {
    machine.datapath = usual.datapath;
    result.notes.emplace_back(
        "With the datapath that the models were quantised for: datapath.softmax deferred, "
        "residual_bits 16.");
  }
  if (machine.postop.row_statistics < usual.postop.row_statistics) {
    result.notes.push_back(
        fmt::format("With postop.row_statistics {} in the place of {}, which 65 tokens do not fit.",
                    usual.postop.row_statistics, machine.postop.row_statistics));
    machine.postop.row_statistics = usual.postop.row_statistics;
  }
  if (machine.preop.lanes == 0) {
    result.notes.push_back(
        fmt::format("all: with preop.lanes {}, as many as postop.lanes.", machine.postop.lanes));
  }
  return result;
}

std::vector<FusionTask> model_tasks(const hw::Machine& machine, const std::string& model) {
  const Network network = load_network(model, machine);
  const model::Dataset pictures = model::load_images(default_data(), network.vit->shape.pictures());
  std::vector<FusionTask> tasks;
  for (const FusionStep& step : kFusionStepNames) {
    tasks.push_back({with_fusion(machine, step.level),
                     [graph = network.graph](const hw::Machine&) { return graph; },
                     network_inputs(network, pictures, kPictures)});
  }
  return tasks;
}

FigureTable::Line figures_line(const std::string& name, const FusionRun& run) {
  return {name, {run.passes, run.trips, run.accesses, run.moved_bytes, run.cycles}};
}

}  // namespace

double FusedModels::Model::speed_up(std::size_t step) const {
  return static_cast<double>(runs[0].cycles) / static_cast<double>(runs.at(step).cycles);
}

std::vector<FusedModels> run_fused_models() {
  std::vector<FusedModels> result;
  std::vector<FusionTask> tasks;
  for (const char* name : kFusionMachines) {
    ModelMachine machine = model_machine(name);
    result.push_back({name, std::move(machine.notes), {}});
    for (const char* model : kFusionModels) {
      result.back().models.push_back({model, {}});
      for (FusionTask& task : model_tasks(machine.machine, model)) {
        tasks.push_back(std::move(task));
      }
    }
  }
  std::vector<FusionRun> runs = run_fusion(tasks);
  auto next = runs.begin();
  for (FusedModels& machine : result) {
    for (FusedModels::Model& model : machine.models) {
      for (FusionRun& run : model.runs) run = std::move(*next++);
    }
  }
  return result;
}

ReproductionSection fusion_models_section(const FusedModels& machine) {
  const PublishedPaper& paper = fusion_paper();
  ReproductionSection section = paper.section("models", {}, {{"machine", machine.machine}});
  section.figures.columns = {"passes", "trips", "accesses", "bytes", "cycles"};
  for (const FusedModels::Model& model : machine.models) {
    for (std::size_t i = 0; i < kFusionSteps; ++i) {
      section.figures.lines.push_back(figures_line(
          fmt::format("{}, {}", model.name, kFusionStepNames.at(i).name), model.runs.at(i)));
    }
    const auto row = [&](const char* name, double ours, const char* figure) {
      section.rows.push_back(compare(model.name + name, ours, paper.figure(figure)));
    };
    row(": off to post", model.speed_up(1), "faster");
    row(": post to all", model.speed_up(2) / model.speed_up(1), "no slower");
    row(": bytes that differ", differing_bytes(model.runs.data(), kFusionSteps), "same");
  }
  section.notes = machine.notes;
  return section;
}

ReproductionSection fusion_article_section(const std::vector<FusedModels>& machines) {
  ReproductionSection section = fusion_paper().section("mean");
  for (const FusedModels& machine : machines) {
    for (std::size_t step = 1; step < kFusionSteps; ++step) {
      double product = 1;
      for (const FusedModels::Model& model : machine.models) product *= model.speed_up(step);
      section.rows.push_back(
          compare(fmt::format("{}: off to {}", machine.machine, kFusionStepNames.at(step).name),
                  std::pow(product, 1.0 / static_cast<double>(machine.models.size())),
                  fusion_paper().figure("article")));
    }
  }
  return section;
}

}  // namespace systole::testbench
