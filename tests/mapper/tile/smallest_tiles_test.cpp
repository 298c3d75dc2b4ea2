#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "hw/description/machine_file.h"
#include "hw/description/machine_rules.h"
#include "hw/description/machine_text.h"
#include "mapper/mapping.h"
#include "mapper/tile/tiling.h"
#include "mapper/tile/tiling_strategies.h"
#include "model/seeded/shapes.h"
#include "support/input_error.h"
#include "support/random/draws.h"
#include "support/random/random_graph.h"
#include "support/random/random_machine.h"

/// What a network needs of memories that are too small for it.
namespace systole::mapper {
namespace {

TilingProblem problem_on(const hw::Machine& machine) {
  TilingProblem problem;
  problem.m = 40;
  problem.n = 72;
  problem.k = 56;
  problem.parameter_words = 1;
  problem.stream_bytes = 64 << 10;
  problem.sums = std::uint64_t{machine.accumulator.kib} * 1024 / 4 / 2;
  return problem;
}

TEST(SmallestTiles, AreWhatTheTilerFitsAtLeast) {
  test::Random random(3);
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE(i);
    hw::Machine machine;
    machine.array.rows = test::power_of_two(random, 1, 5);
    machine.array.cols = test::power_of_two(random, 1, 5);
    TilingProblem problem = problem_on(machine);
    problem.m = test::between(random, 1, 60);
    problem.n = test::between(random, 1, 60);
    problem.k = test::between(random, 0, 1) * test::between(random, 1, 60);
    problem.row_wise = random() % 2 != 0;
    problem.parameter_words = test::between(random, 0, 3);
    problem.b_transposed = random() % 2 != 0;
    const SmallestTiles least = smallest_tiles(machine, problem);
    problem.stream_bytes = least.scratchpad;
    EXPECT_FALSE(cost_tilings(machine, problem).empty());
    if (least.scratchpad == 0) continue;
    --problem.stream_bytes;
    EXPECT_TRUE(cost_tilings(machine, problem).empty());
    if (HasFailure()) return;
  }
}

TEST(SmallestTiles, ASearchHasSingleBuffers) {
  hw::Machine machine;
  machine.mapper.strategy = hw::MappingStrategy::kSearch;
  TilingProblem problem = problem_on(machine);
  const std::uint64_t single = smallest_tiles(machine, problem).scratchpad;
  EXPECT_EQ(single, 16U + 256 + 64) << "a row of A, a fold of B, a bias";
  problem.stream_bytes = single;
  EXPECT_FALSE(search_tilings(machine, problem).empty());
  --problem.stream_bytes;
  EXPECT_TRUE(search_tilings(machine, problem).empty());
}

TEST(SmallestTiles, SaysWhichMemoryIsTooSmall) {
  hw::Machine machine;
  TilingProblem problem = problem_on(machine);
  const auto text = [&] {
    return input_error_of([&] { static_cast<void>(Tiler(machine).choose(problem, "fc1")); });
  };
  EXPECT_EQ(text(), "no error");
  problem.row_wise = true;
  problem.sums = 39;
  EXPECT_EQ(text(),
            "accumulator.kib = 64: fc1 (40 x 72 x 56) needs 1 KiB in its smallest tiles, 0 are "
            "free; --set accumulator.kib=1");
  problem = problem_on(machine);
  problem.row_wise = true;
  problem.tensor_bytes = 4;
  machine.postop.operand_kib = 4;
  EXPECT_EQ(text(),
            "postop.operand_kib = 4: fc1 (40 x 72 x 56) needs 5 KiB in its smallest tiles, 4 are "
            "free; --set postop.operand_kib=8");
  machine = hw::find_machine("gemmini");
  machine.array.rows = machine.array.cols = 64;
  machine.accumulator.kib = 16;
  machine.mapper.strategy = hw::MappingStrategy::kGemmini;
  problem = problem_on(machine);
  EXPECT_EQ(text(),
            "accumulator.kib = 16: fc1 (40 x 72 x 56) needs 32 KiB in its smallest tiles, 16 are "
            "free; --set accumulator.kib=32");
}

/// Follows "--set KEY=SIZE" of an error; false if it gives no such advice.
bool follow_advice(const std::string& error, hw::Machine& machine) {
  const std::array<std::pair<const char*, std::uint32_t*>, 4> keys = {
      {{"scratchpad.kib", &machine.scratchpad.kib},
       {"accumulator.kib", &machine.accumulator.kib},
       {"postop.operand_kib", &machine.postop.operand_kib},
       {"dram.mib", &machine.dram.mib}}};
  for (const auto& [key, value] : keys) {
    const std::string set = std::string("--set ") + key + "=";
    const std::size_t at = error.find(set);
    if (at == std::string::npos) continue;
    const auto size = static_cast<std::uint32_t>(std::stoul(error.substr(at + set.size())));
    EXPECT_GT(size, *value) << error;
    *value = size;
    return size > 0;
  }
  return false;
}

TEST(SmallestTiles, NetworksFitMachinesThatFollowTheAdvice) {
  test::Random random(9);
  std::size_t advised = 0;
  for (std::uint64_t seed = 0; seed < test::draws(120U); ++seed) {
    const std::uint32_t heads = test::between(random, 1, 3);
    const model::Graph graph = model::make_seeded_encoder(
        "e", {1, heads * test::between(random, 1, 150), heads, test::between(random, 1, 600), true},
        test::between(random, 1, 20), seed);
    hw::Machine machine = test::random_machine(random);
    machine.postop.row_statistics = 2048;
    machine.scratchpad.kib = test::between(random, 1, 3);
    machine.accumulator.kib = test::between(random, 1, 4);
    machine.scratchpad.banks = machine.accumulator.banks = 1;
    if (!hw::machine_problems(machine).empty()) continue;
    SCOPED_TRACE("graph " + std::to_string(seed) + " on\n" + hw::to_toml(machine));
    std::string error = "no advice yet";
    constexpr int kMost = 8;
    for (int i = 0; i < kMost && error != "no error"; ++i) {
      error = input_error_of([&] { static_cast<void>(map_graph(graph, machine)); });
      if (error == "no error") break;
      ASSERT_TRUE(follow_advice(error, machine)) << error;
      ASSERT_TRUE(hw::machine_problems(machine).empty()) << error;
      advised += error.find("smallest tiles") != std::string::npos ? 1 : 0;
    }
    EXPECT_EQ(error, "no error");
  }
  EXPECT_GT(advised, test::finds(10U));
}

}  // namespace
}  // namespace systole::mapper
