#include <gtest/gtest.h>

#include <algorithm>
#include <variant>
#include <vector>

#include "base/round.h"
#include "hw/description/machine_file.h"
#include "mapper/emit_groups.h"
#include "mapper/fuse/fusion.h"
#include "mapper/tile/tiling_cost.h"
#include "support/network/mapped_run.h"
#include "support/random/draws.h"
#include "support/random/random_graph.h"
#include "tests/mapper/test_graphs.h"

namespace systole::mapper {
namespace {

/// C tiles whose parts take places in turn compute what the graph says, whatever their sizes.
TEST(EmitterParts, ComputeTheGraph) {
  test::Random random(17);
  int mapped = 0, wraps = 0;
  for (std::uint64_t seed = 0; seed < test::draws(60U); ++seed) {
    hw::Machine machine = hw::find_machine("transformer");
    machine.array.rows = machine.array.cols = test::power_of_two(random, 2, 4);
    machine.accumulator.kib = test::power_of_two(random, 1, 3);
    const std::uint32_t m = test::between(random, 1, 90), n = test::between(random, 2, 90),
                        k = test::between(random, 2, 90);
    test::GraphSketch g("product", seed);
    const model::View c = g.matmul("c", g.input("x", m, k), g.weight("w", k, n));
    const model::View biased = g.stage("bias", c, model::bias_stage(), hw::DType::kS32);
    const model::Graph graph =
        g.take(g.stage("q", biased, test::GraphSketch::to_bits(8, 6), hw::DType::kS8));
    std::vector<Group> groups = fuse(graph, machine).groups;
    const std::vector<Pipeline> pipelines = find_pipelines(graph, groups, machine, {});
    Placement placement = place_tensors(graph, groups, pipelines, machine);
    ASSERT_EQ(groups.size(), 1U);
    const TilingProblem problem =
        tiling_problem(graph, groups[0], placement, machine, placement.shares[0]);
    PlanReplay expected;
    Tiling t;
    t.m = test::between(random, 1, 40);
    t.n = machine.array.cols;
    t.k = machine.array.rows;
    t.m_outer = random() % 2 != 0;
    t.c_cols = std::min(n, t.n * test::between(random, 2, 5));
    t.k_outer = true;
    t.two_results = false;
    t.back_and_forth = random() % 2 != 0;
    t.in_parts = problem.may_leave_in_parts(t);
    if (!t.in_parts || !TilingCost(machine, problem).evaluate_if_fits(t)) continue;
    expected.tilings = {t};
    const Mapping mapping =
        emit_groups(graph, machine, groups, pipelines, placement, expected, true);
    test::expect_program_computes_graph(graph, machine, mapping, seed);
    std::uint64_t loaded = 0;
    for (const hw::Command& command : mapping.program.commands) {
      const auto* const load = std::get_if<hw::cmd::Load>(&command.work);
      if (load != nullptr) loaded += std::uint64_t{load->m} * load->n;
    }
    // Of a sweep, the model knows whole tiles alone.
    const bool is_exact = !t.back_and_forth || k % t.k == 0;
    EXPECT_NEAR(static_cast<double>(loaded), static_cast<double>(t.load_bytes),
                is_exact ? 1.0 : 0.2 * static_cast<double>(loaded))
        << m << " x " << n << " x " << k << " in " << t.m << " x " << t.c_cols << " (" << t.n
        << ") x " << t.k;
    ++mapped;
    const std::uint64_t parts = round_up(m, t.m) / t.m * (round_up(n, t.n) / t.n);
    wraps += parts > problem.part_places(t, machine.array.cols) ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(mapped, test::finds(30));
  EXPECT_GT(wraps, test::finds(10));
}

}  // namespace
}  // namespace systole::mapper
