/// Chains of elementwise operators.

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <random>
#include <utility>

#include "hw/description/machine_file.h"
#include "model/graph/graph_builder.h"
#include "model/graph/stages.h"
#include "reproduce/fusion/fusion.h"

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

/// The stage at a place of a chain: products, sums, differences and quotients in turn, each of two
/// tensors.
hw::Stage binary_stage(std::size_t place) {
  constexpr std::array<hw::StageOp, 4> kOps = {hw::StageOp::kMul, hw::StageOp::kAdd,
                                               hw::StageOp::kSub, hw::StageOp::kDivide};
  constexpr std::int64_t kProductShift = 31, kQuotientShift = 16;
  hw::Stage stage;
  stage.op = kOps.at(place % kOps.size());
  stage.operand = hw::Operand::kTensor;
  stage.tensor = hw::DType::kS32;
  const bool divides = stage.op == hw::StageOp::kDivide;
  if (divides || stage.op == hw::StageOp::kMul) {
    const hw::IntRange range = hw::symmetric_range(32);
    stage.imm = {divides ? kQuotientShift : kProductShift, range.lo, range.hi};
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
  machine.postop.divider = 1;
  machine.mapper.fusion = level;
  return machine;
}

/// Of each (n, stages): apart, then fused.
std::vector<FusionRun> run_chains(const std::vector<std::pair<std::uint32_t, std::size_t>>& sizes) {
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
  return run_fusion(tasks);
}

double loop_trips(const FusionRun& run) {
  return static_cast<double>(run.vectors * chain_machine(hw::FusionLevel::kOff).postop.lanes);
}

double accesses_of(const FusionRun& run) {
  return static_cast<double>(run.activation_bytes() / kElementBytes);
}

}  // namespace

ReproductionSection fusion_multiply_add_section() {
  const std::vector<std::pair<std::uint32_t, std::size_t>> sizes = {{4, 2}, {8, 2}, {16, 2}};
  const std::vector<FusionRun> runs = run_chains(sizes);
  const PublishedTable& table = fusion_paper().table("multiply_add");
  ReproductionSection section = fusion_paper().section("multiply_add");
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const FusionRun &apart = runs[2 * i], &fused = runs[2 * i + 1];
    section.add(table.compare_row(
        fmt::format("n = {}", sizes[i].first),
        {loop_trips(apart), loop_trips(fused), accesses_of(apart), accesses_of(fused),
         static_cast<double>(apart.cycles) / static_cast<double>(fused.cycles),
         differing_bytes(&apart, 2)}));
  }
  return section;
}

ReproductionSection fusion_chains_section() {
  std::vector<std::pair<std::uint32_t, std::size_t>> sizes;
  for (std::size_t stages = 2; stages <= kLongestChain; ++stages) {
    sizes.emplace_back(kChainSide, stages);
  }
  const std::vector<FusionRun> runs = run_chains(sizes);
  const double elements = std::pow(kChainSide, 4);
  const PublishedTable& table = fusion_paper().table("chains");
  ReproductionSection section =
      fusion_paper().section("chains", {}, {{"n", std::to_string(kChainSide)}});
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const FusionRun &apart = runs[2 * i], &fused = runs[2 * i + 1];
    section.add(table.compare_row(fmt::format("k = {}", sizes[i].second),
                                  {accesses_of(apart) / elements, accesses_of(fused) / elements,
                                   loop_trips(fused) / elements, differing_bytes(&apart, 2)}));
  }
  return section;
}

}  // namespace systole::testbench
