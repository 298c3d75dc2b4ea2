#include <deque>
#include <numeric>
#include <string>
#include <utility>

#include "hw/description/machine_file.h"
#include "mapper/mapping.h"
#include "model/graph/graph_builder.h"
#include "model/seeded/shapes.h"
#include "reproduce/survey/survey.h"
#include "testbench/common/side_by_side.h"
#include "testbench/network/networks.h"
#include "testbench/run/class_cycles.h"
#include "testbench/run/simulation.h"
#include "tlm/core/core.h"

namespace systole::testbench {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSurveyShape = "bert-base";
/// Of BERT-Base's twelve, which are alike.
constexpr std::int64_t kLayers = 2;
constexpr double kArrayMacs = 256;

SimulationResult time_graph(const model::Graph& graph, const mapper::Mapping& mapping,
                            const hw::Machine& machine) {
  SimulationOptions options;
  options.functional = false;
  return simulate(graph, mapping, machine, tlm_model::make_models(machine), {{}}, options);
}

Json product_document(const LayerProduct& product, const hw::Machine& machine) {
  const model::Graph graph =
      make_matmul_graph(product.shape, machine.datapath, true, product.result);
  return time_graph(graph, mapper::map_graph(graph, machine), machine).cycles.front();
}

/// A post-norm encoder with the operators after its branches in the order and the widths of
/// Gemmini's benchmark of BERT: the LayerNorm takes the branch alone, int32 to bytes, and the
/// residual is added to that, bytes to bytes. Another network than BERT, for timing alone: neither
/// scales nor immediates are made to fit.
model::Graph in_library_order(model::Graph graph) {
  for (std::size_t i = 0; i + 2 < graph.nodes.size(); ++i) {
    const model::Node add = graph.nodes[i], clamp = graph.nodes[i + 1], norm = graph.nodes[i + 2];
    const bool adds = add.stage() != nullptr && hw::is_residual(add.stage()->stage);
    if (!adds || !clamp.is(hw::StageOp::kClamp) || !norm.is(hw::StageOp::kLayerNorm)) continue;
    model::Node* const ordered = &graph.nodes[i];
    ordered[0] = norm;
    ordered[1] = add;
    ordered[2] = clamp;
    // Branch, bytes, sum, clamped sum: three tensors for what was sum, clamped sum, bytes.
    ordered[0].in = add.in;
    ordered[0].out = ordered[1].in = add.out;
    ordered[1].out = ordered[2].in = clamp.out;
    ordered[2].out = norm.out;
    graph.tensors[add.out.tensor].type = hw::DType::kS8;
    graph.tensors[clamp.out.tensor].type = hw::DType::kS32;
  }
  return graph;
}

enum class Order { kBert, kLibrary };

Json encoder_document(const hw::Machine& machine, std::uint32_t length, Order order) {
  SizeOptions options;
  options.length = length;
  options.layers = kLayers;
  const NetworkSize size = network_size(kSurveyShape, options);
  model::Graph graph = seeded_network(size, machine, false).graph;
  if (order == Order::kLibrary) graph = in_library_order(std::move(graph));
  const mapper::Mapping mapping = mapper::map_graph(graph, machine);
  const SimulationResult result = time_graph(graph, mapping, machine);
  Json classes = Json::object();
  for (std::size_t i = 0; i < kTimeClasses; ++i) {
    const auto kind = static_cast<TimeClass>(i);
    classes[std::string(name_of(kind))] = result.classes.of(kind);
  }
  return {{"cycles", result.cycles.front()},
          {"layers", size.shape.layers},
          {"macs", model::count_macs(graph)},
          {"macs_per_cycle", machine.array.rows * machine.array.cols},
          {"softmax_reads", hw::counter_of(result.blocks, "store", "softmax_reads")},
          {"classes", std::move(classes)}};
}

Json resnet_document(const hw::Machine& machine) {
  const NetworkSize size = network_size("resnet-50", {});
  const model::Graph graph = seeded_network(size, machine, false).graph;
  const SimulationResult result = time_graph(graph, mapper::map_graph(graph, machine), machine);
  return {{"cycles", result.cycles.front()},
          {"layers", 1},
          {"macs", model::count_macs(graph)},
          {"macs_per_cycle", machine.array.rows * machine.array.cols}};
}

/// Simulates the products of all of these splits on a preset with other sizes of its memories.
void run(std::vector<SplitRun>& splits, const char* preset) {
  ExperimentBatch batch;
  std::deque<Json> documents;
  for (const SplitRun& split : splits) {
    hw::Machine machine = hw::find_machine(preset);
    machine.scratchpad.kib = split.scratchpad_kib;
    machine.accumulator.kib = split.accumulator_kib;
    for (const ProductRun& run : split.products) {
      batch.add(documents.emplace_back(),
                [machine, product = run.product] { return product_document(product, machine); });
    }
  }
  batch.run();
  for (SplitRun& split : splits) {
    for (ProductRun& run : split.products) {
      run.cycles = documents.front().get<std::uint64_t>();
      documents.pop_front();
    }
  }
}

std::vector<LayerProduct> bert_base_products(std::uint32_t length) {
  const model::EncoderShape shape = model::find_shape(kSurveyShape);
  const std::uint32_t head = shape.head_width();
  const MatmulResult plain{false, true}, biased{true, true}, sums{true, false};
  return {{{length, shape.width, shape.width}, 3, biased},
          {{length, length, head}, shape.heads, plain},
          {{length, head, length}, shape.heads, plain},
          {{length, shape.width, shape.width}, 1, sums},
          {{length, shape.hidden, shape.width}, 1, biased},
          {{length, shape.width, shape.hidden}, 1, sums}};
}

SplitRun split_of(std::uint32_t scratchpad_kib, std::uint32_t accumulator_kib,
                  std::uint32_t length) {
  SplitRun split{scratchpad_kib, accumulator_kib, {}};
  for (const LayerProduct& product : bert_base_products(length)) {
    split.products.push_back({product, 0});
  }
  return split;
}

}  // namespace

double SplitRun::layer_cycles() const {
  return std::accumulate(products.begin(), products.end(), 0.0,
                         [](double sum, const ProductRun& run) {
                           return sum + run.product.count * static_cast<double>(run.cycles);
                         });
}

double SplitRun::utilisation() const {
  double ideal = 0;
  for (const ProductRun& run : products) {
    ideal += run.product.count * static_cast<double>(run.product.shape.macs()) / kArrayMacs;
  }
  return ideal / layer_cycles();
}

SplitRun run_measured_products() {
  std::vector<SplitRun> splits = {split_of(256, 64, 128)};
  std::vector<ProductRun>& products = splits.front().products;
  products.erase(products.begin() + 3);  // of the same shape as the first
  products.front().product.count = 4;
  for (ProductRun& run : products) run.product.result = {false, true};
  run(splits, "gemmini-firesim");
  return splits.front();
}

std::vector<SplitRun> run_splits() {
  std::vector<SplitRun> splits;
  for (const std::uint32_t accumulator : {64U, 128U, 256U}) {
    for (const std::uint32_t scratchpad : {64U, 128U, 256U}) {
      splits.push_back(split_of(scratchpad, accumulator, 512));
    }
  }
  run(splits, "gemmini");
  return splits;
}

EncoderRuns run_encoders() {
  EncoderRuns runs;
  const hw::Machine baseline = hw::find_machine("gemmini"), machine = hw::find_machine("survey");
  hw::Machine deferred = machine, fused = machine;
  deferred.datapath.softmax = hw::SoftmaxMode::kDeferred;
  fused.mapper.fusion = hw::FusionLevel::kAll;
  ExperimentBatch batch;
  const auto add = [&](Json& document, const hw::Machine& on, std::uint32_t length, Order order) {
    batch.add(document, [&on, length, order] { return encoder_document(on, length, order); });
  };
  add(runs.baseline, baseline, 512, Order::kBert);
  add(runs.at_512, machine, 512, Order::kLibrary);
  add(runs.deferred, deferred, 512, Order::kLibrary);
  add(runs.unswapped, machine, 512, Order::kBert);
  add(runs.fused, fused, 512, Order::kBert);
  add(runs.at_256, machine, 256, Order::kLibrary);
  add(runs.at_128, machine, 128, Order::kLibrary);
  batch.run();
  return runs;
}

ResNetRuns run_resnet() {
  ResNetRuns runs;
  const hw::Machine baseline = hw::find_machine("gemmini"), machine = hw::find_machine("survey");
  ExperimentBatch batch;
  batch.add(runs.baseline, [&] { return resnet_document(baseline); });
  batch.add(runs.optimised, [&] { return resnet_document(machine); });
  batch.add(runs.bert, [&] { return encoder_document(machine, 128, Order::kLibrary); });
  batch.run();
  return runs;
}

double percent_of(const Json& encoder, const std::vector<TimeClass>& kinds) {
  double part = 0, all = 0;
  for (const auto& [name, cycles] : encoder.at("classes").items()) all += cycles.get<double>();
  for (const TimeClass kind : kinds) {
    part += encoder.at("classes").at(std::string(name_of(kind))).get<double>();
  }
  return 100.0 * part / all;
}

double matmul_percent(const Json& encoder) {
  return percent_of(encoder, {TimeClass::kMatmul, TimeClass::kGelu});
}

double per_layer(const Json& encoder, const char* name) {
  return encoder.at(name).get<double>() / encoder.at("layers").get<double>();
}

double array_percent(const Json& encoder) {
  return 100.0 * encoder.at("macs").get<double>() / encoder.at("macs_per_cycle").get<double>() /
         encoder.at("cycles").get<double>();
}

}  // namespace systole::testbench
