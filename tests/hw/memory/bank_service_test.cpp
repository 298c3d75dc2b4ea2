#include "hw/memory/bank_service.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace systole::hw {
namespace {

struct StepRun {
  BankStep step;
  std::uint64_t count = 1;
};
struct ServiceClient {
  std::uint64_t begin = 0;
  std::vector<StepRun> runs;
};

std::vector<ServiceClient> random_clients(std::mt19937_64& random, std::uint32_t banks,
                                          unsigned most_times) {
  std::vector<ServiceClient> clients(2 + random() % 4);
  for (ServiceClient& client : clients) {
    client.begin = random() % 60;
    client.runs.resize(random() % 8);
    for (StepRun& run : client.runs) {
      run.count = 1 + random() % (random() % 2 == 0 ? 4 : 80);
      const auto access = [&]() -> std::optional<BankAccess> {
        if (random() % 4 == 0) return std::nullopt;
        const auto bank = static_cast<std::uint32_t>(random() % banks);
        return BankAccess{bank, bank + 1 < banks && random() % 6 == 0};
      };
      const auto times = [&] { return static_cast<std::uint8_t>(1 + random() % most_times); };
      run.step = {access(), access(), times(), times()};
    }
  }
  return clients;
}

/// Cycle by cycle: each port of a bank goes to the first access that wants it, in the order of
/// clients.
std::vector<std::uint64_t> ends_by_cycle(const std::vector<ServiceClient>& clients,
                                         std::uint32_t banks, std::uint32_t ports) {
  struct State {
    std::size_t run = 0;
    std::uint64_t step = 0;
    unsigned served[2] = {};
  };
  std::vector<State> states(clients.size());
  std::vector<std::uint64_t> ends;
  for (const ServiceClient& client : clients) ends.push_back(client.begin);
  for (std::uint64_t cycle = 0, left = clients.size(); left != 0; ++cycle) {
    std::vector<std::uint32_t> taken(banks + 1, 0);
    left = 0;
    for (std::size_t c = 0; c < clients.size(); ++c) {
      State& state = states[c];
      if (state.run == clients[c].runs.size()) continue;
      ++left;
      if (cycle < clients[c].begin) continue;
      const StepRun& run = clients[c].runs[state.run];
      const std::optional<BankAccess> wants[2] = {run.step.first, run.step.second};
      const unsigned times[2] = {run.step.first_times, run.step.second_times};
      bool over = true;
      for (int i = 0; i < 2; ++i) {
        for (; wants[i] && state.served[i] < times[i]; ++state.served[i]) {
          const std::size_t first = wants[i]->bank, last = first + (wants[i]->crosses ? 1U : 0U);
          if (taken[first] == ports || taken[last] == ports) {
            over = false;
            break;
          }
          ++taken[first];
          if (last != first) ++taken[last];
        }
      }
      if (!over) continue;
      state.served[0] = state.served[1] = 0;
      ends[c] = cycle + 1;
      if (++state.step == run.count) {
        state.step = 0;
        ++state.run;
      }
    }
  }
  return ends;
}

TEST(BankServiceTest, IntervalsGiveWhatArbitrationByCycleGives) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 4'000; ++i) {
    const auto banks = static_cast<std::uint32_t>(1 + random() % 5);
    const auto ports = static_cast<std::uint32_t>(1 + random() % 3);
    const std::vector<ServiceClient> clients = random_clients(random, banks, 1 + i % 2);
    const std::vector<std::uint64_t> expected = ends_by_cycle(clients, banks, ports);
    BankService service(banks, ports);
    for (std::size_t c = 0; c < clients.size(); ++c) {
      std::uint64_t at = clients[c].begin;
      for (const StepRun& run : clients[c].runs) at = service.serve(at, run.step, run.count);
      ASSERT_EQ(at, expected[c]) << "case " << i << " client " << c;
    }
  }
}

// The last client keeps nothing, and goes on when more is known of the others.
TEST(BankServiceTest, TheLastClientMayStopWhereOthersAreNotKnownYet) {
  std::mt19937_64 random(9);
  std::size_t stops = 0;
  for (int i = 0; i < 2'000; ++i) {
    const auto banks = static_cast<std::uint32_t>(1 + random() % 5);
    const auto ports = static_cast<std::uint32_t>(1 + random() % 3);
    const std::vector<ServiceClient> clients = random_clients(random, banks, 1 + i % 2);
    const std::uint64_t expected = ends_by_cycle(clients, banks, ports).back();
    BankService service(banks, ports);
    for (std::size_t c = 0; c + 1 < clients.size(); ++c) {
      std::uint64_t at = clients[c].begin;
      for (const StepRun& run : clients[c].runs) at = service.serve(at, run.step, run.count);
    }
    std::uint64_t at = clients.back().begin, until = at;
    for (const StepRun& run : clients.back().runs) {
      for (std::uint64_t left = run.count; left != 0; ++stops) {
        const BankService::Passed passed = service.pass(at, run.step, left, until);
        ASSERT_LE(passed.end, std::max(at, until)) << "case " << i;
        at = passed.end;
        left -= passed.steps;
        if (left != 0) until += 1 + random() % 40;
      }
    }
    ASSERT_EQ(at, expected) << "case " << i;
  }
  EXPECT_GT(stops, 10'000U);
}

TEST(BankServiceTest, SaysWhetherABankIsFree) {
  BankService service(2);
  (void)service.serve(5, {BankAccess{0, false}, std::nullopt}, 5);
  EXPECT_TRUE(service.is_free(4, {0, false}));
  EXPECT_FALSE(service.is_free(5, {0, false}));
  EXPECT_FALSE(service.serves(9, {0, true})) << "one of two banks is not";
  EXPECT_TRUE(service.serves(10, {0, true}));
  EXPECT_FALSE(service.is_free(10, {1, false}));
}

TEST(BankServiceTest, SaysWhenOthersUseABank) {
  BankService service(3);
  (void)service.serve(10, {BankAccess{1, false}, std::nullopt}, 5);
  EXPECT_EQ(service.next_use(0, 2, 0), 10U);
  EXPECT_EQ(service.next_use(1, 1, 12), 12U);
  EXPECT_GT(service.next_use(1, 1, 15), std::uint64_t{1} << 60);
  EXPECT_GT(service.next_use(2, 2, 0), std::uint64_t{1} << 60);
}

TEST(BankServiceTest, LongRunsCostNoVisitOfEachStep) {
  BankService service(2);
  const BankStep load{BankAccess{0, false}, std::nullopt};
  EXPECT_EQ(service.serve(1000, load, 500), 1500U);
  const BankStep array{BankAccess{0, false}, BankAccess{1, false}};
  constexpr std::uint64_t kSteps = std::uint64_t{1} << 40;
  EXPECT_EQ(service.serve(0, array, kSteps), kSteps + 500);
  const BankStep both{BankAccess{1, false}, BankAccess{1, false}};
  EXPECT_EQ(service.serve(kSteps + 500, both, kSteps), 3 * kSteps + 500) << "two reads of one bank";
}

TEST(BankServiceTest, WhatIsOverMayBeForgotten) {
  BankService service(1);
  const BankStep step{BankAccess{0, false}, std::nullopt};
  (void)service.serve(0, step, 10);
  (void)service.serve(20, step, 10);
  service.prune_before(15);
  EXPECT_EQ(service.serve(15, step, 10), 35U);
}

TEST(BankServiceTest, AnAccessThatEndsInTheNextBankCrosses) {
  EXPECT_EQ(bank_access(60, 4, BlockSize(64)).bank, 0U);
  EXPECT_FALSE(bank_access(60, 4, BlockSize(64)).crosses);
  EXPECT_TRUE(bank_access(61, 4, BlockSize(64)).crosses);
  EXPECT_FALSE(bank_access(64, 4, BlockSize(64)).crosses);
  EXPECT_EQ(bank_access(64, 4, BlockSize(64)).bank, 1U);
}

}  // namespace
}  // namespace systole::hw
