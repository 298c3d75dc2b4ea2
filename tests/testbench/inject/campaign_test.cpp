/// Soft errors: the fast path against full simulations, and both against references that know
/// nothing of either.

#include "testbench/inject/campaign.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "hw/array/array.h"
#include "hw/description/machine_file.h"
#include "mapper/mapping.h"
#include "model/graph/reference.h"
#include "support/input_error.h"
#include "support/network/vit_run.h"
#include "testbench/common/child_process.h"
#include "testbench/inject/fault_regions.h"
#include "testbench/inject/report_inject.h"
#include "testbench/network/matmul_graph.h"
#include "testbench/network/tensors.h"
#include "testbench/run/run_checks.h"

namespace systole::testbench {
namespace {

std::uint64_t hash_bytes(const std::vector<std::uint8_t>& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3ULL;
  return hash;
}

/// In a copy of the process: a kernel simulates once.
CampaignResult run_apart(const FaultSubject& subject, const CampaignRequest& request) {
  struct RunTotals {
    std::uint64_t cycles, simulated;
  };
  const Bytes bytes = run_in_child([&] {
    const CampaignResult result = run_campaign(subject, request);
    const RunTotals numbers{result.cycles, result.simulated};
    Bytes copy(sizeof numbers + result.injections.size() * sizeof(InjectionResult));
    std::memcpy(copy.data(), &numbers, sizeof numbers);
    std::memcpy(copy.data() + sizeof numbers, result.injections.data(),
                copy.size() - sizeof numbers);
    return copy;
  });
  RunTotals numbers{};
  std::memcpy(&numbers, bytes.data(), sizeof numbers);
  CampaignResult result;
  result.cycles = numbers.cycles;
  result.simulated = numbers.simulated;
  result.injections.resize((bytes.size() - sizeof numbers) / sizeof(InjectionResult));
  std::memcpy(result.injections.data(), bytes.data() + sizeof numbers,
              bytes.size() - sizeof numbers);
  return result;
}

FaultSubject subject_of(const test::VitRun& vit) {
  return {vit.network.graph, vit.mapping, vit.machine, vit.inputs,
          [&vit](const std::vector<std::uint8_t>& outputs) {
            return class_of(vit.network.graph, outputs);
          }};
}

void expect_same(const CampaignResult& a, const CampaignResult& b) {
  ASSERT_EQ(a.injections.size(), b.injections.size());
  for (std::size_t i = 0; i < a.injections.size(); ++i) {
    const InjectionResult &left = a.injections[i], &right = b.injections[i];
    SCOPED_TRACE(std::string(name_of(left.injection.target)) + " at cycle " +
                 std::to_string(left.injection.cycle) + ", address " +
                 std::to_string(left.injection.address) + ", bit " +
                 std::to_string(left.injection.bit));
    EXPECT_EQ(left.injection.cycle, right.injection.cycle);
    EXPECT_EQ(left.injection.address, right.injection.address);
    EXPECT_EQ(left.outcome, right.outcome);
    EXPECT_EQ(left.hash, right.hash);
    EXPECT_EQ(left.label, right.label);
    EXPECT_EQ(left.changed, right.changed);
  }
}

/// Full simulations flip the bits as soon as the byte's uses allow it, from the start, also where
/// the fast path says that nothing reads them: a use that is not in the log would show.
TEST(Campaign, TheFastPathEqualsFullSimulationsWithAnyNumberOfWorkers) {
  const test::VitRun vit("transformer", 2);
  CampaignRequest request;
  request.targets.assign(kFaultTargets.begin(), kFaultTargets.end());
  request.injections = 100;
  request.workers = 2;
  const CampaignResult fast = run_apart(subject_of(vit), request);
  request.workers = 3;
  request.full = true;
  const CampaignResult full = run_apart(subject_of(vit), request);
  EXPECT_EQ(full.simulated, full.injections.size());
  EXPECT_LT(fast.simulated, fast.injections.size() / 2);
  expect_same(fast, full);

  const std::vector<TargetCounts> counts = count_outcomes(
      request, {0, std::vector<std::uint64_t>(kFaultTargets.size(), 1), fast.injections});
  std::map<FaultTarget, OutcomeCounts> all;
  for (const TargetCounts& target : counts) all[target.target] = target.all;
  EXPECT_GT(all[FaultTarget::kScratchpad].silent().count, 0U);
  EXPECT_GT(all[FaultTarget::kWeights].silent().count, 0U);
  EXPECT_GT(all[FaultTarget::kParameters].silent().count, 0U);
  EXPECT_GT(all[FaultTarget::kCommands].of(FaultOutcome::kDetected).count, 0U);
  EXPECT_EQ(all[FaultTarget::kWeights].of(FaultOutcome::kDetected).count, 0U);
  EXPECT_GT(all[FaultTarget::kArrayWeights].silent().count, 0U);
  EXPECT_GT(all[FaultTarget::kArraySums].silent().count, 0U);
}

/// A weight that is wrong from the start gives what the reference gives with that weight.
TEST(Campaign, AWrongWeightGivesTheLogitsOfAReferenceWithThatWeight) {
  const test::VitRun vit("transformer");
  const FaultRegion weights = fault_region(FaultTarget::kWeights, vit.mapping, vit.machine);
  std::size_t tested = 0;
  for (std::size_t id = 0; id < vit.network.graph.tensors.size() && tested < 3; ++id) {
    const model::Tensor& tensor = vit.network.graph.tensors[id];
    if (tensor.kind != model::Tensor::Kind::kConstant || tensor.type != hw::DType::kS8 ||
        tensor.rows < 2 || tensor.cols < 2) {
      continue;
    }
    Network other = vit.network;
    const std::size_t element = other.graph.tensors[id].data.size() / 3;
    other.graph.tensors[id].data.edit()[element] ^= 0x40;
    const mapper::Mapping mapping = mapper::map_graph(other.graph, vit.machine);
    // The byte of the memory image that differs.
    std::vector<std::uint64_t> differing;
    ASSERT_EQ(mapping.image.size(), vit.mapping.image.size());
    for (std::size_t piece = 0; piece < mapping.image.size(); ++piece) {
      const hw::MemoryPiece &a = vit.mapping.image[piece], &b = mapping.image[piece];
      ASSERT_EQ(a.bytes.size(), b.bytes.size());
      for (std::size_t i = 0; i < a.bytes.size(); ++i) {
        if (a.bytes[i] != b.bytes[i]) differing.push_back(a.address + i);
      }
    }
    ASSERT_EQ(differing.size(), 1U) << tensor.name;
    if (!weights.contains(differing.front())) continue;
    ++tested;
    CampaignRequest request;
    request.targets = {FaultTarget::kWeights};
    request.one = Injection{FaultTarget::kWeights, 0, 0, differing.front(), 6, 1};
    const CampaignResult result = run_apart(subject_of(vit), request);
    model::Reference reference(other.graph, reference_options(other.graph));
    run_reference(reference, other.graph, vit.inputs.front(), {});
    EXPECT_EQ(result.injections.front().hash,
              hash_bytes(reference.bytes(output_tensor(other.graph))))
        << tensor.name;
    EXPECT_NE(result.injections.front().outcome, FaultOutcome::kMasked) << tensor.name;
  }
  EXPECT_EQ(tested, 3U);
}

/// One product of two tiles of k, sums to memory. A flip of a sum passes through all its lives:
/// before the first tile overwrites it, between the tiles, after the last, and when it has left.
TEST(Campaign, AFlippedSumIsThatOfTheTilesSoFar) {
  const hw::Machine machine = hw::find_machine("transformer");
  const MatmulShape shape{20, 16, 32};
  const model::Graph graph = make_matmul_graph(shape, machine.datapath, false, {false, false});
  const mapper::Mapping mapping = mapper::map_graph(graph, machine);
  std::vector<const hw::cmd::Matmul*> products;
  for (const hw::Command& command : mapping.program.commands) {
    if (const auto* const matmul = command.as<hw::cmd::Matmul>()) products.push_back(matmul);
  }
  ASSERT_FALSE(products.empty());
  ASSERT_EQ(products.front()->k, shape.k);
  ASSERT_EQ(products.front()->n, shape.n);
  const std::vector<std::vector<std::uint8_t>> inputs{matmul_input(shape)};
  const FaultSubject subject{graph, mapping, machine, inputs, nullptr};

  constexpr std::uint32_t kRow = 7, kCol = 5;
  ASSERT_LT(kRow, products.front()->m);
  // Sums of the first tile of k and of both.
  std::array<std::int32_t, 2> sums{};
  for (std::uint32_t k = 0; k < shape.k; ++k) {
    const auto a = static_cast<std::int8_t>(inputs[0][kRow * shape.k + k]);
    const model::Tensor* b = nullptr;
    for (const model::Tensor& tensor : graph.tensors) {
      if (tensor.name == "b") b = &tensor;
    }
    ASSERT_NE(b, nullptr);
    const std::int32_t product = a * static_cast<std::int8_t>(b->data[k * shape.n + kCol]);
    if (k < 16) sums[0] += product;
    sums[1] += product;
  }
  // A bit that differs, so that its flips differ too.
  std::uint32_t bit = 0;
  while (bit < 7 && ((sums[0] ^ sums[1]) >> bit & 1) == 0) ++bit;
  model::Reference reference(graph, reference_options(graph));
  run_reference(reference, graph, inputs[0], {});
  const std::vector<std::uint8_t> right = reference.bytes(output_tensor(graph));
  ASSERT_EQ(right.size(), std::size_t{shape.m} * shape.n * 4);
  const auto hash_with = [&](std::int32_t sum) {
    std::vector<std::uint8_t> bytes = right;
    std::memcpy(&bytes[(kRow * shape.n + kCol) * 4], &sum, 4);
    return hash_bytes(bytes);
  };
  const std::int32_t flipped_early = (sums[0] ^ (1 << bit)) + sums[1] - sums[0];
  const std::vector<std::uint64_t> lives = {hash_bytes(right), hash_with(flipped_early),
                                            hash_with(sums[1] ^ (1 << bit)), hash_bytes(right)};
  ASSERT_NE(lives[1], lives[2]);

  const hw::LocalTile& c = products.front()->c;
  const std::uint64_t address = (c.address + std::uint64_t{kRow} * c.pitch + kCol) * 4;
  CampaignRequest request;
  request.targets = {FaultTarget::kAccumulator};
  const auto run_at = [&](std::uint64_t cycle) {
    request.one = Injection{FaultTarget::kAccumulator, 0, cycle, address, bit, 1};
    return run_apart(subject, request);
  };
  const std::uint64_t cycles = run_at(0).cycles;
  // A fold has 16 cycles at least: no life is missed.
  constexpr std::uint64_t kStride = 12;
  std::size_t life = 0;
  std::array<std::uint64_t, 4> begin{};
  for (std::uint64_t cycle = 0; cycle < cycles; cycle += kStride) {
    const std::uint64_t hash = run_at(cycle).injections.front().hash;
    const std::size_t before = life;
    while (life < lives.size() && hash != lives[life]) ++life;
    ASSERT_LT(life, lives.size()) << "cycle " << cycle;
    if (life == before) continue;
    ASSERT_EQ(life, before + 1);
    // Its first cycle is after the last of the life before.
    begin[life] = cycle;
    while (run_at(begin[life] - 1).injections.front().hash == lives[life]) --begin[life];
  }
  EXPECT_EQ(life, 3U);
  // From one tile's sum to the next is a fold.
  EXPECT_EQ(begin[2] - begin[1], std::max(products.front()->m, machine.array.rows));
}

TEST(Campaign, RefusesMachinesAndPlacesThatItDoesNotKnow) {
  const test::VitRun vit("gemmini");
  CampaignRequest request;
  request.targets = {FaultTarget::kScratchpad};
  request.injections = 1;
  expect_contains(
      input_error_of([&] { static_cast<void>(run_campaign(subject_of(vit), request)); }),
      "inject: attention engines, loop unrollers and operators of the host");
}

}  // namespace
}  // namespace systole::testbench
