/// Chains of elementwise operators.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <utility>

#include "hw/description/machine_file.h"
#include "model/graph/graph_builder.h"
#include "model/graph/stages.h"
#include "reproduce/fusion/fusion_published.h"
#include "reproduce/fusion/fusion_sections.h"

namespace systole::testbench {
namespace {

constexpr std::uint64_t kElementBytes = sizeof(std::int32_t);
constexpr std::size_t kLongestChain = 8;
constexpr std::uint32_t kChainSide = 8;  ///< n of the chains of several lengths

/// Seeded bytes: any will do.
std::vector<std::uint8_t> chain_bytes(std::uint32_t seed, std::size_t count) {
  std::mt19937 engine(seed);
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(engine());
  return bytes;
}

/// The stage at a place of a chain: products, sums and differences in turn, each of two tensors.
hw::Stage binary_stage(std::size_t place) {
  constexpr std::array<hw::StageOp, 3> kOps = {hw::StageOp::kMul, hw::StageOp::kAdd,
                                               hw::StageOp::kSub};
  hw::Stage stage;
  stage.op = kOps.at(place % kOps.size());
  stage.operand = hw::Operand::kTensor;
  stage.tensor = hw::DType::kS32;
  if (stage.op == hw::StageOp::kMul) {
    const hw::IntRange range = hw::symmetric_range(32);
    stage.imm = {31, range.lo, range.hi};
  }
  return stage;
}

/// x through `stages` binary operators, all tensors s32 [n^2 x n^2].
model::Graph chain_graph(std::uint32_t n, std::size_t stages) {
  using TensorKind = model::Tensor::Kind;
  const std::uint32_t side = n * n;
  model::GraphBuilder builder(fmt::format("chain of {}", stages));
  const auto tensor = [&](const std::string& name, TensorKind kind) {
    return builder.add_tensor({name, side, side, hw::DType::kS32, kind, {}, 0.0});
  };
  model::View x = builder.whole(tensor("x", TensorKind::kInput));
  for (std::size_t i = 0; i < stages; ++i) {
    const model::TensorId y = tensor(fmt::format("y{}", i), TensorKind::kConstant);
    builder.tensor(y).data = chain_bytes(static_cast<std::uint32_t>(i), builder.tensor(y).bytes());
    x = builder.stage(fmt::format("stage{}", i), x, binary_stage(i), hw::DType::kS32,
                      {{}, builder.whole(y)});
  }
  builder.tensor(x.tensor).kind = TensorKind::kOutput;
  return std::move(builder).take();
}

hw::Machine chain_machine(hw::FusionLevel level) {
  hw::Machine machine = hw::find_machine("transformer");
  machine.postop.tensor_operands = kLongestChain;
  machine.postop.operand_kib = 256;
  machine.mapper.fusion = level;
  return machine;
}

struct ChainRuns {
  FusionRun apart, fused;
};

/// Of each (n, stages).
std::vector<ChainRuns> run_chains(const std::vector<std::pair<std::uint32_t, std::size_t>>& sizes) {
  std::vector<FusionTask> tasks;
  for (const auto& [n, stages] : sizes) {
    const std::size_t bytes = kElementBytes * n * n * n * n;
    for (const hw::FusionLevel level : {hw::FusionLevel::kOff, hw::FusionLevel::kPost}) {
      tasks.push_back(
          {chain_machine(level),
           [n = n, stages = stages](const hw::Machine&) { return chain_graph(n, stages); },
           {chain_bytes(kLongestChain, bytes)}});
    }
  }
  std::vector<FusionRun> runs = run_fusion(tasks);
  std::vector<ChainRuns> result;
  for (std::size_t i = 0; i < runs.size(); i += 2) result.push_back({runs[i], runs[i + 1]});
  return result;
}

double loop_trips(const FusionRun& run) {
  return static_cast<double>(run.vectors * chain_machine(hw::FusionLevel::kOff).postop.lanes);
}

double accesses_of(const FusionRun& run) {
  return static_cast<double>(run.activation_bytes() / kElementBytes);
}

constexpr const char* kChainNote =
    "Machine transformer with eight operand ports (postop.tensor_operands, operand_kib 256), "
    "mapper.fusion off and post; tensors of int32 in DRAM. Counted in the simulation: trips are "
    "the "
    "vectors through the post-op chain times its lanes, accesses the bytes of load and store unit "
    "over four.";

void add_difference(ReproductionSection& section, const std::string& name, const ChainRuns& runs) {
  section.rows.push_back(compare(name + ": bytes that differ",
                                 static_cast<double>(differing_bytes(runs.apart, runs.fused)),
                                 fusion_published("same")));
}

}  // namespace

ReproductionSection fusion_multiply_add_section() {
  const std::vector<std::uint32_t> sides = {4, 8, 16};
  std::vector<std::pair<std::uint32_t, std::size_t>> sizes;
  for (const std::uint32_t n : sides) sizes.emplace_back(n, 2);
  const std::vector<ChainRuns> runs = run_chains(sizes);
  ReproductionSection section{"Product and sum of tensors with n^4 elements", {}, {}, {}};
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const double elements = std::pow(sides[i], 4);
    const std::string name = fmt::format("n = {}", sides[i]);
    section.rows.push_back(compare(name + ": trips, apart", loop_trips(runs[i].apart),
                                   follows(2 * elements, "trips")));
    section.rows.push_back(
        compare(name + ": trips, fused", loop_trips(runs[i].fused), follows(elements, "trips")));
    section.rows.push_back(compare(name + ": accesses, apart", accesses_of(runs[i].apart),
                                   follows(6 * elements, "accesses")));
    section.rows.push_back(compare(name + ": accesses, fused", accesses_of(runs[i].fused),
                                   follows(4 * elements, "accesses")));
    section.rows.push_back(measured(
        name + ": speed-up",
        static_cast<double>(runs[i].apart.cycles) / static_cast<double>(runs[i].fused.cycles),
        "x"));
    add_difference(section, name, runs[i]);
  }
  section.notes = {kChainNote};
  return section;
}

ReproductionSection fusion_chains_section() {
  std::vector<std::pair<std::uint32_t, std::size_t>> sizes;
  for (std::size_t stages = 2; stages <= kLongestChain; ++stages) {
    sizes.emplace_back(kChainSide, stages);
  }
  const std::vector<ChainRuns> runs = run_chains(sizes);
  const double elements = std::pow(kChainSide, 4);
  ReproductionSection section{"Chains of k binary operators", {}, {}, {}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto k = static_cast<double>(sizes[i].second);
    const std::string name = fmt::format("k = {}", sizes[i].second);
    section.rows.push_back(compare(name + ": accesses of an element, apart",
                                   accesses_of(runs[i].apart) / elements,
                                   follows(3 * k, "accesses")));
    section.rows.push_back(compare(name + ": accesses of an element, fused",
                                   accesses_of(runs[i].fused) / elements,
                                   follows(k + 2, "accesses")));
    section.rows.push_back(compare(name + ": trips of an element, fused",
                                   loop_trips(runs[i].fused) / elements, follows(1, "trips")));
    add_difference(section, name, runs[i]);
  }
  section.notes = {
      fmt::format("n = {}, products, sums and differences in turn, k + 1 tensors.", kChainSide),
      "Machine and counters as above."};
  return section;
}

}  // namespace systole::testbench
