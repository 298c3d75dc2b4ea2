#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "hw/machine/machine.h"
#include "mapper/tile/stream_plan.h"
#include "mapper/tile/tiling_cost.h"
#include "mapper/tile/tiling_strategies.h"

namespace systole::mapper {
namespace {

/// A product of any kind that the mapper meets, with stages before and after it.
TilingProblem any_problem(std::mt19937_64& random) {
  const auto below = [&](std::uint32_t most) {
    return static_cast<std::uint32_t>(random() % most);
  };
  TilingProblem problem;
  problem.m = 1 + below(600);
  problem.n = 1 + below(1000);
  problem.k = below(5) == 0 ? 0 : 1 + below(1000);
  problem.a_on_chip = below(4) == 0;
  problem.b_on_chip = below(4) == 0;
  problem.out_on_chip = below(3) == 0;
  problem.b_is_activation = below(2) == 0;
  problem.b_transposed = below(2) == 0;
  problem.parameter_words = below(3);
  problem.out_bytes = 1 + below(4);
  problem.postop_interval = 1 + below(100);
  problem.postop_fill = below(40);
  problem.stream_bytes = 4096 + below(200'000);
  problem.sums = 1024 + below(16'384);
  problem.pre_stages = problem.k == 0 ? 0 : below(2);
  problem.pre_interval = problem.pre_stages * (1 + below(100));
  problem.pre_words = problem.pre_stages * below(3);
  problem.by_rows = below(4) == 0;
  problem.row_tile = problem.by_rows ? 1 + below(std::min(problem.m, 100U)) : 0;
  return problem;
}

Tiling any_tiling(std::mt19937_64& random, const TilingProblem& problem) {
  const auto part = [&](std::uint32_t all) {
    return static_cast<std::uint32_t>(1 + random() % std::min<std::uint64_t>(all, 200));
  };
  Tiling t;
  t.m = problem.by_rows ? problem.row_tile : part(problem.m);
  t.n = t.c_cols = part(problem.n);
  t.k = problem.k == 0 ? 0 : part(problem.k);
  if (problem.k != 0) t.c_cols = std::min(problem.n, t.n * part(4));
  return t;
}

Tiling flagged(Tiling t, unsigned flags) {
  t.m_outer = (flags & 1U) != 0;
  t.two_results = (flags & 2U) != 0;
  t.k_outer = (flags & 4U) != 0;
  t.a_stays = (flags & 8U) != 0;
  t.b_stays = (flags & 16U) != 0;
  t.far_ahead = (flags & 32U) != 0;
  return t;
}

// The mapper does not look at a variant that its bound says is too slow.
TEST(TilingCost, NoVariantIsFasterThanItsShapeSays) {
  std::mt19937_64 random(1);
  hw::Machine machine;
  machine.preop.lanes = machine.dma.expander_lanes = 16;
  int fitting = 0, close = 0, more_if_cautious = 0, more_if_loaded_again = 0, in_parts = 0;
  for (int round = 0; round < 20'000; ++round) {
    TilingProblem problem = any_problem(random);
    if (problem.k != 0 && !problem.b_is_activation && random() % 4 == 0) {
      problem.b_format = static_cast<hw::WeightFormat>(random() % hw::kWeightFormats);
    }
    const TilingCost cost(machine, problem);
    const Tiling tiles = any_tiling(random, problem);
    if (!cost.may_fit(tiles)) continue;
    const TilingCost::Shape shape = cost.shape(tiles);
    for (unsigned flags = 0; flags < 64; ++flags) {
      Tiling t = flagged(tiles, flags);
      if (!cost.evaluate_if_fits(t, shape)) continue;
      ASSERT_TRUE(cost.may_fit_twice(tiles)) << round << ", " << flags;
      const double least = std::floor(shape.loading.least_of(t));
      ASSERT_LE(least, static_cast<double>(t.cycles)) << round << ", " << flags;
      const double cautious = std::floor(shape.cautious.least_of(t));
      ASSERT_LE(cautious, static_cast<double>(t.cautious_cycles)) << round << ", " << flags;
      more_if_cautious += cautious > static_cast<double>(t.cycles) ? 1 : 0;
      // With what it loads again.
      const TilingCost::Least again = cost.least_of(t, shape);
      ASSERT_LE(again.cycles, static_cast<double>(t.cycles)) << round << ", " << flags;
      ASSERT_LE(again.cautious, static_cast<double>(t.cautious_cycles)) << round << ", " << flags;
      more_if_loaded_again += again.cycles > 1.1 * least ? 1 : 0;
      if (Tiling apart = t; problem.may_leave_in_parts(t)) {
        apart.in_parts = true;
        ASSERT_TRUE(cost.evaluate_if_fits(apart, shape));
        const double cycles = cost.least_of(apart, shape).cycles;
        ASSERT_LE(cycles, static_cast<double>(apart.cycles)) << round << ", " << flags;
        ++in_parts;
      }
      ++fitting;
      close += 1.1 * least > static_cast<double>(t.cycles) ? 1 : 0;
      // Alone it is as with its shape.
      Tiling alone = flagged(tiles, flags);
      ASSERT_TRUE(cost.evaluate_if_fits(alone));
      EXPECT_EQ(alone.cycles, t.cycles);
      EXPECT_EQ(alone.load_bytes, t.load_bytes);
    }
  }
  EXPECT_GT(fitting, 10'000);
  EXPECT_GT(close, fitting / 4);  // a bound that says nothing would do no work
  EXPECT_GT(more_if_cautious, 1'000);
  EXPECT_GT(more_if_loaded_again, fitting / 20);
  EXPECT_GT(in_parts, 1'000);
}

// Its rows are apart in memory, and a tile has as much of each as it is deep: a request for each.
TEST(TilingCost, RowsOfATransposedOperandAreRequestsOfTheirOwn) {
  hw::Machine machine;
  TilingProblem problem;
  problem.m = 1;
  problem.n = 512;
  problem.k = 64;
  problem.a_on_chip = problem.out_on_chip = true;
  problem.b_is_activation = true;
  problem.out_bytes = 1;
  problem.stream_bytes = 65'536;
  problem.sums = 4096;
  const auto cycles = [&](bool transposed, std::uint32_t n, std::uint32_t k) {
    problem.b_transposed = transposed;
    Tiling t;
    t.m = 1;
    t.c_cols = 512;
    t.n = n;
    t.k = k;
    EXPECT_TRUE(TilingCost(machine, problem).evaluate_if_fits(t));
    return t.cycles;
  };
  // 512 rows of 64 bytes, or four times as many of 16.
  EXPECT_GT(2 * cycles(true, 256, 16), 3 * cycles(true, 256, 64));
  EXPECT_GT(cycles(false, 16, 64), 2 * cycles(false, 64, 64));
  EXPECT_LT(cycles(true, 16, 64), 2 * cycles(true, 64, 64));
}

// Fewer tilings are found by looking at fewer: they are the first ones all the same.
TEST(CostTilings, FewerAreTheFirstOfMore) {
  std::mt19937_64 random(2);
  hw::Machine machine;
  machine.preop.lanes = 16;
  std::size_t found = 0, cautious = 0;
  for (int round = 0; round < 100; ++round) {
    const TilingProblem problem = any_problem(random);
    const std::vector<Tiling> all = cost_tilings(machine, problem, {128, 0, 0, 0, 0, 0});
    const std::vector<Tiling> many = cost_tilings(machine, problem, {128, 128, 0, 0, 0, 0});
    for (const std::size_t most : {std::size_t{1}, std::size_t{3}, Wanted{}.best}) {
      const std::vector<Tiling> some = cost_tilings(machine, problem, {most, 0, 0, 0, 0, 0});
      ASSERT_EQ(some.size(), std::min(most, all.size())) << round;
      for (std::size_t i = 0; i < some.size(); ++i) {
        EXPECT_TRUE(same_tiles(some[i], all[i])) << round << ": " << i << " of " << most;
      }
      found += some.size();
      // Nothing is missed that is best with half of the reads in flight, either.
      const std::vector<Tiling> two = cost_tilings(machine, problem, {most, 2, 0, 0, 0, 0});
      const auto least = [](const std::vector<Tiling>& of) {
        std::uint64_t cycles = std::numeric_limits<std::uint64_t>::max();
        for (const Tiling& t : of) cycles = std::min(cycles, t.cautious_cycles);
        return cycles;
      };
      EXPECT_EQ(least(two), least(many)) << round << ": " << most;
      for (const Tiling& t : two) {
        // Of what is fed row tile by row tile, all columns come before the next rows.
        const bool by_columns = !t.m_outer && t.c_cols < problem.n;
        EXPECT_FALSE(problem.by_rows && (t.m != problem.row_tile || by_columns)) << round;
      }
      cautious += two.size() - some.size();
    }
  }
  EXPECT_GT(found, 500U);
  EXPECT_GT(cautious, 50U);
}

// What comes in goes to other banks than what the array reads.
TEST(CostTilings, SomeHaveBanksOfTheirOwn) {
  std::mt19937_64 random(5);
  hw::Machine machine;
  machine.preop.lanes = 16;
  std::size_t more = 0;
  for (int round = 0; round < 100; ++round) {
    machine.scratchpad.banks = 1U << random() % 5;
    machine.scratchpad.kib = 64U << random() % 3;
    TilingProblem problem = any_problem(random);
    problem.stream_bytes = std::uint64_t{machine.scratchpad.kib} * 1024;
    problem.free_banks = machine.scratchpad.banks;
    const std::vector<Tiling> one = cost_tilings(machine, problem, {1, 0, 0, 0, 0, 0});
    const std::vector<Tiling> all = cost_tilings(machine, problem, {1, 0, 0, 0, 0, 3});
    ASSERT_GE(all.size(), one.size());
    for (std::size_t i = one.size(); i < all.size(); ++i, ++more) {
      StreamPlan plan = stream_plan(machine, problem, all[i]);
      // What chains read is small, and may be beside tiles.
      plan.parameters = plan.pre = {};
      const std::uint64_t bytes = problem.stream_bytes, bank = bytes / machine.scratchpad.banks;
      StreamRings rings = place_slots(plan, machine, {0, bytes}, all[i].spread, false, {});
      const auto bank_of = [&](TileRing& ring, std::uint32_t tile, std::uint64_t slot) {
        const std::uint64_t at = ring.take({0, tile}).address;
        EXPECT_EQ(at / bank, (at + slot - 1) / bank) << round << ": a slot in two banks";
        return at / bank;
      };
      std::uint64_t highest_of_a = 0;
      for (const bool is_a : {true, false}) {
        TileRing& ring = is_a ? rings.a : rings.b;
        std::vector<std::uint64_t> of;
        for (std::uint32_t tile = 0; tile < ring.size(); ++tile) {
          of.push_back(bank_of(ring, tile, is_a ? plan.a.bytes : plan.b.bytes));
          if (is_a) highest_of_a = std::max(highest_of_a, of.back() + 1);
          EXPECT_TRUE(is_a || of.back() >= highest_of_a) << round << ": both operands";
        }
        // Where there are enough banks no tile is in that of the one before it.
        const std::size_t needed =
            std::min<std::size_t>(rings.a.size(), 2) + std::min<std::size_t>(rings.b.size(), 2);
        const bool enough = machine.scratchpad.banks >= needed;
        EXPECT_TRUE(!enough || std::adjacent_find(of.begin(), of.end()) == of.end()) << round;
      }
    }
  }
  EXPECT_GT(more, 30U);
}

// Tiles less deep than the array are offered beside the others, which stay what they are.
TEST(CostTilings, ShallowOnesAreMoreAndLoadLess) {
  std::mt19937_64 random(3);
  hw::Machine machine;
  machine.preop.lanes = 16;
  machine.array.rows = machine.array.cols = 128;
  std::size_t shallow = 0;
  for (int round = 0; round < 200; ++round) {
    const TilingProblem problem = any_problem(random);
    Wanted without;
    without.shallow = 0;
    const std::vector<Tiling> few = cost_tilings(machine, problem, without);
    const std::vector<Tiling> all = cost_tilings(machine, problem, {});
    ASSERT_GE(all.size(), few.size());
    ASSERT_LE(all.size(), few.size() + Wanted{}.shallow);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i < few.size()) {
        EXPECT_TRUE(same_tiles(all[i], few[i])) << round << ": " << i;
        continue;
      }
      EXPECT_TRUE(all[i].k == 32 || all[i].k == 64) << round << ": " << all[i].k;
      EXPECT_LT(all[i].load_bytes, all.front().load_bytes);
      ++shallow;
    }
  }
  EXPECT_GT(shallow, 20U);
}

}  // namespace
}  // namespace systole::mapper
