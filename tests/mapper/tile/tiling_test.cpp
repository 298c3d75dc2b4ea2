#include "mapper/tile/tiling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/round.h"
#include "hw/array/array.h"
#include "hw/description/machine_file.h"
#include "mapper/mapping.h"
#include "mapper/place/sharing.h"
#include "support/input_error.h"
#include "support/random/random_graph.h"

namespace systole::mapper {
namespace {

using test::GraphSketch;

constexpr std::uint64_t kPlenty = std::uint64_t{1} << 24;

/// C[m x n] = A[m x k] W with a LayerNorm after it if `row_wise`, else a bias.
model::Graph product_with(std::uint32_t m, std::uint32_t n, std::uint32_t k,
                          bool row_wise = false) {
  GraphSketch g("product", 1);
  const model::View x = g.input("x", m, k);
  const model::View c = g.matmul("c", x, g.weight("w", k, n));
  return g.take(row_wise ? g.stage("norm", c, GraphSketch::layer_norm(), hw::DType::kS8)
                         : g.stage("bias", c, model::bias_stage(), hw::DType::kS32));
}

/// The problem of the first group of a graph, were there `stream_bytes` of scratchpad.
TilingProblem problem_of(const hw::Machine& machine, const model::Graph& graph,
                         std::uint64_t stream_bytes) {
  const std::vector<Group> groups = fuse(graph, machine).groups;
  const Placement placement =
      place_tensors(graph, groups, find_pipelines(graph, groups, machine, {}), machine);
  TilingProblem problem =
      tiling_problem(graph, groups.front(), placement, machine, whole_share(machine));
  problem.stream_bytes = stream_bytes;
  return problem;
}
Tiling choose(const hw::Machine& machine, const TilingProblem& problem) {
  return Tiler(machine).choose(problem, "c");
}

hw::Machine by_cost(hw::Machine machine) {
  machine.mapper.strategy = hw::MappingStrategy::kCost;
  return machine;
}

TEST(DmaRate, IsTheNarrowerOfBusAndMemoryAndTheSharedLatency) {
  hw::Machine machine;
  // Bus 16 B x 1 GHz, DRAM 8 B x 2400 MT/s; 4 + 4 bus cycles, 20 ns controller, 14.16 ns CL.
  EXPECT_DOUBLE_EQ(dma_rate(machine, 16).bytes_per_cycle, 16.0);
  EXPECT_DOUBLE_EQ(dma_rate(machine, 16).cycles_per_request, 42.16 / 16);
  EXPECT_DOUBLE_EQ(dma_rate(machine, 1).cycles_per_request, 42.16);
  machine.bus.width_bytes = 32;
  EXPECT_DOUBLE_EQ(dma_rate(machine, 16).bytes_per_cycle, 19.2);
  machine.core.clock_mhz = 500;
  EXPECT_DOUBLE_EQ(dma_rate(machine, 16).bytes_per_cycle, 38.4);
  machine.bus.clock_mhz = 500;
  EXPECT_DOUBLE_EQ(dma_rate(machine, 1).cycles_per_request, (16.0 + 20.0 + 14.16) / 2);
}

TEST(Tiler, OffersWhatIsBestWithHalfTheReadsInFlight) {
  hw::Machine machine = by_cost(hw::find_machine("transformer"));
  machine.array.rows = machine.array.cols = 32;
  machine.scratchpad.kib = 32;
  machine.accumulator.kib = 128;
  machine.dram.channels = 4;
  machine.dma.outstanding_reads = 32;
  hw::Machine half = machine;
  half.dma.outstanding_reads = 16;
  std::size_t others = 0;
  for (const std::uint32_t n : {64U, 768U, 2304U, 3072U}) {
    const TilingProblem problem = problem_of(machine, product_with(1024, n, 768), 32 * 1024);
    const std::vector<Tiling> all = Tiler(machine).candidates(problem, "c");
    const Tiling best = choose(half, problem);
    const auto offered =
        std::find_if(all.begin(), all.end(), [&](const Tiling& t) { return same_tiles(t, best); });
    ASSERT_NE(offered, all.end()) << n;
    EXPECT_EQ(offered->cautious_cycles, best.cycles) << n;
    others += same_tiles(all.front(), best) ? 0 : 1;
  }
  EXPECT_NE(others, 0U) << "they are not all the best ones anyway";
}

TEST(Tiler, TilesFitTwiceAndKeepToTheFoldsOfTheArray) {
  test::Random random(1);
  int chosen = 0;
  for (int i = 0; i < 300; ++i) {
    hw::Machine machine = by_cost(test::random_machine(random));
    machine.postop.max_stages = 8;
    const std::uint32_t m = test::between(random, 1, 300), n = test::between(random, 1, 300),
                        k = test::between(random, 1, 300);
    TilingProblem problem;
    Tiling t;
    try {
      problem = problem_of(machine, product_with(m, n, k, random() % 2 == 0),
                           std::uint64_t{machine.scratchpad.kib} * 1024);
      problem.a_on_chip = random() % 4 == 0;
      t = choose(machine, problem);
    } catch (const hw::InputError&) {
      continue;
    }
    ++chosen;
    const std::uint64_t rows = machine.array.rows, cols = machine.array.cols;
    EXPECT_TRUE(t.m >= 1 && t.m <= m);
    EXPECT_TRUE(t.n == n || t.n % cols == 0) << t.n;
    EXPECT_TRUE(t.k == k || t.k % rows == 0) << t.k;
    if (problem.row_wise) {
      EXPECT_EQ(t.c_cols, n);
    } else {
      EXPECT_TRUE(t.c_cols == t.n || t.k_outer);
    }
    EXPECT_LE(t.m * round_up(t.c_cols, cols) * 4 * (t.two_results ? 2 : 1),
              machine.accumulator.kib * 1024U)
        << "one or two C tiles";
    const std::uint64_t a = problem.a_on_chip ? 0 : t.m * round_up(t.k, rows);
    const std::uint64_t b = t.k * round_up(t.n, cols);
    const std::uint64_t all_a = ceil_div(m, t.m) * ceil_div(k, t.k);
    const std::uint64_t all_b = ceil_div(n, t.n) * ceil_div(k, t.k);
    EXPECT_LE((t.a_stays ? all_a : std::min<std::uint64_t>(2, all_a)) * a +
                  (t.b_stays ? all_b : std::min<std::uint64_t>(2, all_b)) * b +
                  std::min<std::uint64_t>(2, ceil_div(n, t.c_cols)) * problem.parameter_words *
                      t.c_cols * 4,
              problem.stream_bytes)
        << "two of each, or as many as there are";
  }
  EXPECT_GT(chosen, 150);
}

TEST(Tiler, ComputeCyclesAreThoseOfItsMatmuls) {
  test::Random random(2);
  for (int i = 0; i < 100; ++i) {
    const hw::Machine machine = by_cost(test::random_machine(random));
    const std::uint32_t m = test::between(random, 1, 200), n = test::between(random, 1, 200),
                        k = test::between(random, 1, 200);
    const Tiling t = choose(machine, problem_of(machine, product_with(m, n, k), kPlenty));
    std::uint64_t cycles = 0;
    for (std::uint32_t row = 0; row < m; row += t.m) {
      for (std::uint32_t tile = 0; tile < n; tile += t.c_cols) {
        const std::uint32_t end = std::min(n, tile + t.c_cols);
        for (std::uint32_t col = tile; col < end; col += t.n) {
          for (std::uint32_t depth = 0; depth < k; depth += t.k) {
            cycles += hw::array_cycles(machine.array, std::min(t.m, m - row),
                                       std::min(t.n, end - col), std::min(t.k, k - depth), true)
                          .interval;
          }
        }
      }
    }
    EXPECT_EQ(t.compute_cycles, cycles);
  }
}

TEST(Tiler, MoreMemoryIsNeverExpectedToBeSlower) {
  test::Random random(3);
  for (int i = 0; i < 60; ++i) {
    hw::Machine machine = by_cost(test::random_machine(random));
    const model::Graph graph =
        product_with(test::between(random, 1, 300), test::between(random, 1, 300),
                     test::between(random, 1, 300));
    std::uint64_t before = 0;
    for (const std::uint64_t bytes : {kPlenty, kPlenty / 256, kPlenty / 1024}) {
      const std::uint64_t cycles = choose(machine, problem_of(machine, graph, bytes)).cycles;
      EXPECT_GE(cycles, before);
      before = cycles;
    }
  }
}

// Where it expects an operand to stay, the ring may have come around to it: that is the price of
// keeping the tiles of a matmul in different banks.
TEST(Tiler, ReadsHardlyMoreThanItExpects) {
  test::Random random(4);
  int as_expected = 0;
  for (int i = 0; i < 60; ++i) {
    hw::Machine machine;
    machine.scratchpad.kib = test::power_of_two(random, 2, 8);
    machine.accumulator.kib = test::power_of_two(random, 3, 8);
    const auto size = [&] { return 16 * test::between(random, 1, 20); };
    const model::Graph graph = product_with(size(), size(), size());
    const Mapping mapping = map_graph(graph, machine);
    std::uint64_t bytes = 0;
    for (const hw::Command& command : mapping.program.commands) {
      if (const auto* const load = std::get_if<hw::cmd::Load>(&command.work)) {
        bytes += std::uint64_t{load->m} * load->n;
      }
    }
    EXPECT_LE(bytes, mapping.tilings.front().load_bytes * 4 / 3);
    if (bytes <= mapping.tilings.front().load_bytes) ++as_expected;
    // Every operand is needed once, at least.
    const Group& group = mapping.groups.front();
    EXPECT_GE(bytes, std::uint64_t{group.m()} * group.k() + std::uint64_t{group.k()} * group.n() +
                         4 * group.n());
  }
  EXPECT_GE(as_expected, 45);
}

TEST(Tiler, SaysWhenNotEvenSingleFoldsFit) {
  const hw::Machine machine;
  const model::Graph graph = product_with(100, 200, 300);
  const auto choosing = [&](std::uint64_t bytes) {
    return input_error_of(
        [&] { static_cast<void>(choose(machine, problem_of(machine, graph, bytes))); });
  };
  // One row of A: 16, one fold of B: 256, a bias of 16 channels: 64; all twice.
  EXPECT_EQ(choosing(2 * (16 + 256 + 64)), "no error");
  EXPECT_EQ(choosing(2 * (16 + 256 + 64) - 1),
            "scratchpad.kib = 256: c (100 x 200 x 300) needs 1 KiB in its smallest tiles, 0 are "
            "free; --set scratchpad.kib=2");
}

}  // namespace
}  // namespace systole::mapper
