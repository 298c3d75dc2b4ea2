#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "support/random/draws.h"
#include "support/random/random_machine.h"
#include "testbench/generation/generation.h"
#include "tests/testbench/generation/odd_gpt.h"

/// Several rings at one host: requests, the link that they share, and bits.
namespace systole::testbench {
namespace {

using test::between;
using test::Random;

GenerationTask task_of(const model::Gpt& gpt) {
  GenerationTask task;
  task.shape = gpt.shape;
  task.gpt = &gpt;
  task.prompt = {3, 1, 4};
  task.tokens = 4;
  return task;
}

/// What they move the time of a text by.
constexpr double kRefreshes = 0.002;

/// Each request went to the cluster that was free first, one after the other.
void expect_served_in_order(const Generation& generation, std::uint32_t clusters) {
  std::vector<std::uint64_t> free(clusters, 0);
  for (const ServedRequest& request : generation.requests) {
    ASSERT_LT(request.cluster, clusters);
    EXPECT_EQ(request.begin_ps, free[request.cluster]) << "no pause between two requests";
    EXPECT_EQ(request.begin_ps, *std::min_element(free.begin(), free.end()));
    EXPECT_LT(request.begin_ps, request.first_token_ps);
    EXPECT_LT(request.first_token_ps, request.end_ps);
    free[request.cluster] = request.end_ps;
  }
  EXPECT_EQ(generation.total_ps, *std::max_element(free.begin(), free.end()));
}

TEST(Clusters, ServeEachRequestAsARingAlone) {
  Random random(31);
  const model::Gpt gpt = test::odd_gpt();
  for (int i = 0; i < test::draws(12); ++i) {
    SCOPED_TRACE(i);
    GenerationTask task = task_of(gpt);
    hw::Machine machine = test::machine_with(between(random, 1, 3));
    task.batch = between(random, 1, 2);
    const Generation alone = test::generate_once(machine, task);
    machine.dfx.clusters = between(random, 1, 4);
    task.requests = between(random, 1, 7);
    const Generation served = test::generate_once(machine, task);
    ASSERT_EQ(served.requests.size(), task.requests);
    expect_served_in_order(served, machine.dfx.clusters);
    for (const ServedRequest& request : served.requests) {
      ASSERT_EQ(request.texts.size(), task.batch);
      EXPECT_EQ(request.texts.front(), alone.tokens);
      for (std::size_t t = 1; t < task.batch; ++t) EXPECT_EQ(request.texts[t], alone.others[t - 1]);
      // Nothing is shared but the host; a later request meets other refreshes of the memory.
      const double slack = request.begin_ps == 0 ? 0 : kRefreshes;
      const auto expect_near = [&](std::uint64_t found, std::uint64_t expected) {
        EXPECT_NEAR(static_cast<double>(found), static_cast<double>(expected),
                    slack * static_cast<double>(expected));
      };
      expect_near(request.end_ps - request.begin_ps, alone.total_ps);
      expect_near(request.first_token_ps - request.begin_ps, alone.first_token_ps);
    }
    const std::uint64_t rounds = (task.requests + machine.dfx.clusters - 1) / machine.dfx.clusters;
    const auto expected = static_cast<double>(rounds * alone.total_ps);
    EXPECT_NEAR(static_cast<double>(served.total_ps), expected, kRefreshes * expected);
    const std::size_t blocks = alone.blocks.size() * machine.dfx.clusters;
    EXPECT_EQ(served.blocks.size(), blocks);
  }
}

/// The host reads the logits of each token over its link, which carries those of one ring at a
/// time.
TEST(Clusters, TakeTurnsOnTheHostsLink) {
  Random random(32);
  const model::Gpt gpt = test::odd_gpt();
  bool waited = false;
  for (int i = 0; i < test::draws(10); ++i) {
    SCOPED_TRACE(i);
    GenerationTask task = task_of(gpt);
    task.sample = [](const std::vector<hw::Half>&) { return 1U; };
    hw::Machine machine = test::machine_with(between(random, 1, 2));
    machine.pcie.gbyte_per_s = 0.001 * between(random, 1, 400);
    const Generation alone = test::generate_once(machine, task);
    machine.dfx.clusters = between(random, 2, 4);
    task.requests = machine.dfx.clusters;
    const Generation served = test::generate_once(machine, task);
    expect_served_in_order(served, machine.dfx.clusters);
    const double reads = static_cast<double>(task.requests) * task.tokens;
    const double bytes = reads * gpt.shape.vocabulary * sizeof(hw::Half);
    EXPECT_GE(static_cast<double>(served.total_ps), bytes / machine.pcie.gbyte_per_s * 1e3)
        << "no faster than the link";
    EXPECT_GE(served.total_ps, alone.total_ps);
    EXPECT_LE(served.total_ps, task.requests * alone.total_ps) << "no slower than one by one";
    for (const ServedRequest& request : served.requests) {
      waited = waited || request.end_ps - request.begin_ps > alone.total_ps;
      EXPECT_EQ(request.texts.front(), alone.tokens);
    }
  }
  EXPECT_TRUE(waited);
}

TEST(Clusters, ShowTheFirstRequestAlone) {
  const model::Gpt gpt = test::odd_gpt();
  GenerationTask task = task_of(gpt);
  hw::Machine machine = test::machine_with(2);
  std::vector<std::uint32_t> shown;
  std::size_t logits = 0, progress = 0;
  task.on_token = [&](std::uint32_t token) { shown.push_back(token); };
  task.on_logits = [&](std::uint32_t, const std::vector<hw::Half>&) { ++logits; };
  task.progress = [&](std::size_t passes) { progress = std::max(progress, passes); };
  const Generation alone = test::generate_once(machine, task);
  const std::size_t logits_alone = logits;
  logits = 0;
  shown.clear();
  machine.dfx.clusters = 2;
  task.requests = 5;
  const Generation served = test::generate_once(machine, task);
  EXPECT_EQ(shown, alone.tokens);
  EXPECT_EQ(logits, logits_alone);
  EXPECT_EQ(progress, 5 * alone.passes);
  EXPECT_EQ(served.passes, 3 * alone.passes) << "of the first cluster";
}

}  // namespace
}  // namespace systole::testbench
