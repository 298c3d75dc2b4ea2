#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "base/round.h"
#include "hw/description/machine_file.h"
#include "mapper/place/sharing.h"
#include "mapper/tile/objective.h"
#include "mapper/tile/tiling_cost.h"
#include "mapper/tile/tiling_energy.h"
#include "mapper/tile/tiling_strategies.h"
#include "support/random/draws.h"

namespace systole::mapper {
namespace {

constexpr hw::MappingObjective kObjectives[] = {
    hw::MappingObjective::kCycles, hw::MappingObjective::kEnergy, hw::MappingObjective::kEdp};

hw::Machine searching(hw::MappingObjective objective) {
  hw::Machine machine = hw::find_machine("transformer");
  machine.mapper.strategy = hw::MappingStrategy::kSearch;
  machine.mapper.objective = objective;
  return machine;
}

TilingProblem product_problem(std::uint32_t m, std::uint32_t n, std::uint32_t k,
                              std::uint64_t bytes) {
  TilingProblem problem;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.out_bytes = 1;
  problem.postop_interval = 1;
  problem.stream_bytes = bytes;
  problem.sums = whole_share(hw::Machine()).sums_end;
  return problem;
}

/// The objective, from the models anew.
double value(const hw::Machine& machine, const TilingProblem& problem, Tiling t) {
  TilingCost(machine, problem).evaluate(t);
  return objective_of(machine.mapper, static_cast<double>(t.cycles),
                      tiling_energy(machine, problem, t));
}

/// The least objective of all tilings there are.
double brute_force(const hw::Machine& machine, const TilingProblem& problem) {
  double least = std::numeric_limits<double>::infinity();
  Tiling t;
  for (t.m = 1; t.m <= problem.m; ++t.m) {
    for (std::uint32_t n = 1; n <= ceil_div(problem.n, machine.array.cols); ++n) {
      for (std::uint32_t k = 1; k <= ceil_div(problem.k, machine.array.rows); ++k) {
        for (unsigned variant = 0; variant < 128; ++variant) {
          t.n = t.c_cols = std::min(problem.n, n * machine.array.cols);
          t.k = std::min(problem.k, k * machine.array.rows);
          t.m_outer = (variant & 1U) != 0;
          t.double_buffered = (variant & 2U) != 0;
          t.a_stays = (variant & 4U) != 0;
          t.b_stays = (variant & 8U) != 0;
          t.two_results = t.double_buffered && (variant & 16U) != 0;
          t.far_ahead = (variant & 32U) != 0;
          t.k_outer = (variant & 64U) != 0;
          if (!TilingCost(machine, problem).fits(t)) continue;
          least = std::min(least, value(machine, problem, t));
        }
      }
    }
  }
  return least;
}

std::optional<Tiling> first_of(const std::vector<Tiling>& tilings) {
  return tilings.empty() ? std::nullopt : std::optional(tilings.front());
}

TEST(SearchTiling, FindsTheLeastThatThereIsWhereAllAreCompared) {
  for (const hw::MappingObjective objective : kObjectives) {
    const hw::Machine machine = searching(objective);
    for (const std::uint64_t bytes : {4096U, 20'000U, 65'536U}) {
      const TilingProblem problem = product_problem(50, 100, 150, bytes);
      const std::optional<Tiling> best = first_of(search_tilings(machine, problem));
      ASSERT_TRUE(best);
      EXPECT_LE(value(machine, problem, *best), brute_force(machine, problem)) << bytes;
      EXPECT_EQ(best->tried, 50U * 7 * 10 * 128);
    }
  }
}

// 200 x 16 x 16 sizes are too many to compare them all.
TEST(SearchTiling, ComesCloseToTheLeastWhereNotAllAreCompared) {
  for (const hw::MappingObjective objective : kObjectives) {
    const hw::Machine machine = searching(objective);
    const TilingProblem problem = product_problem(200, 250, 250, 16'384);
    const std::optional<Tiling> best = first_of(search_tilings(machine, problem));
    ASSERT_TRUE(best);
    EXPECT_LT(best->tried, 200U * 16 * 16 * 128 / 10);
    EXPECT_LE(value(machine, problem, *best), 1.02 * brute_force(machine, problem));
  }
}

TEST(SearchTiling, IsNeverWorseThanCostAndOftenBetter) {
  std::mt19937 random(1);
  const auto below = [&](std::uint32_t most) {
    return 1 + static_cast<std::uint32_t>(random() % most);
  };
  int better = 0;
  for (int round = 0; round < test::draws(25); ++round) {
    for (const hw::MappingObjective objective : kObjectives) {
      hw::Machine machine = searching(objective);
      TilingProblem problem =
          product_problem(below(600), below(2000), below(2000), 2048 + below(100'000));
      problem.sums = below(16'384);
      problem.row_wise = round % 4 == 0;
      problem.b_is_activation = round % 3 == 0;
      problem.parameter_words = below(3);
      const std::optional<Tiling> cost = first_of(cost_tilings(machine, problem));
      const std::optional<Tiling> best = first_of(search_tilings(machine, problem));
      if (!cost) continue;
      ASSERT_TRUE(best);
      EXPECT_TRUE(TilingCost(machine, problem).fits(*best));
      EXPECT_LE(value(machine, problem, *best), value(machine, problem, *cost));
      better += value(machine, problem, *best) < value(machine, problem, *cost) ? 1 : 0;
    }
  }
  EXPECT_GT(better, test::finds(40));
}

TEST(SearchTiling, SingleBuffersFindRoomWhereDoubleOnesDoNot) {
  const hw::Machine machine = searching(hw::MappingObjective::kCycles);
  const TilingProblem problem = product_problem(16, 16, 16, 280);  // 16 x 16 bytes of B, a row of A
  EXPECT_TRUE(cost_tilings(machine, problem).empty());
  const std::optional<Tiling> best = first_of(search_tilings(machine, problem));
  ASSERT_TRUE(best);
  EXPECT_FALSE(best->double_buffered);
  EXPECT_TRUE(search_tilings(machine, product_problem(16, 16, 16, 200)).empty());
}

TEST(SearchTiling, IsTheSameEveryTime) {
  const hw::Machine machine = searching(hw::MappingObjective::kEdp);
  const TilingProblem problem = product_problem(512, 768, 3072, 50'000);
  const std::optional<Tiling> first = first_of(search_tilings(machine, problem));
  const std::optional<Tiling> second = first_of(search_tilings(machine, problem));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->m, second->m);
  EXPECT_EQ(first->n, second->n);
  EXPECT_EQ(first->k, second->k);
  EXPECT_EQ(first->tried, second->tried);
}

}  // namespace
}  // namespace systole::mapper
