#include "hw/memory/cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "support/report_values.h"

namespace systole::hw {
namespace {

/// Takes the same time for every line and remembers what it was asked.
class EvenMemory final : public LineMemory {
 public:
  struct Call {
    bool write;
    std::uint64_t line, cycle;
    friend bool operator==(const Call& a, const Call& b) {
      return a.write == b.write && a.line == b.line && a.cycle == b.cycle;
    }
  };
  static constexpr std::uint64_t kRead = 100, kWrite = 60;

  void set_aside(CacheTags::Slot) override { ++aside; }
  std::uint64_t fill(std::uint64_t line, CacheTags::Slot, std::uint64_t cycle) override {
    calls.push_back({false, line, cycle});
    return cycle + kRead;
  }
  std::uint64_t write_back(std::uint64_t line, std::uint64_t cycle) override {
    calls.push_back({true, line, cycle});
    return cycle + kWrite;
  }

  std::vector<Call> calls;
  std::size_t aside = 0;
};

/// 4 KiB: 8 sets of 8 lines of 64 bytes, 4 cycles of a bank each.
Machine::L2 small() {
  Machine::L2 params;
  params.kib = 4;
  return params;
}

std::map<std::string, std::uint64_t> counters_of(const Cache& cache) {
  return systole::test::values_of(cache.report("cache"));
}

class CacheTest : public testing::Test {
 protected:
  std::uint64_t read(std::uint64_t line, std::uint64_t cycle, std::uint32_t bytes = 64) {
    return cache_.access(line, bytes, false, cycle).done;
  }
  std::uint64_t write(std::uint64_t line, std::uint64_t cycle, std::uint32_t bytes = 64) {
    return cache_.access(line, bytes, true, cycle).done;
  }
  /// Writes every line of set 0, which line 64 then has to share.
  void fill_a_set() {
    for (std::uint64_t line = 0; line < 64; line += 8) write(line, 0);
  }

  EvenMemory memory_;
  Cache cache_{small(), memory_};
};

TEST_F(CacheTest, AMissTakesTheLookUpAndTheTimeOfMemory) {
  EXPECT_EQ(read(5, 1000), 1000U + 10 + EvenMemory::kRead);
  EXPECT_EQ(memory_.calls, (std::vector<EvenMemory::Call>{{false, 5, 1010}}));
}

TEST_F(CacheTest, AHitTakesItsLatencyAndItsData) {
  read(5, 0);
  EXPECT_EQ(read(5, 1000), 1000U + 10 + 3);
  EXPECT_EQ(read(5, 2000, 16), 2000U + 10);
  EXPECT_EQ(read(5, 3000, 1), 3000U + 10);
  EXPECT_EQ(write(5, 4000, 17), 4000U + 10 + 1);
  EXPECT_EQ(memory_.calls.size(), 1U);
}

TEST_F(CacheTest, AHitOnALineOnItsWayWaitsForIt) {
  read(5, 1000);
  EXPECT_EQ(read(5, 1004), 1000U + 10 + EvenMemory::kRead + 3);
  EXPECT_EQ(memory_.calls.size(), 1U) << "asked for once";
  const auto counters = counters_of(cache_);
  EXPECT_EQ(counters.at("merged"), 1U);
  EXPECT_EQ(counters.at("hits"), 0U);
}

TEST_F(CacheTest, AWriteOfAWholeLineAsksForNothing) {
  EXPECT_EQ(write(5, 1000), 1000U + 10);
  EXPECT_TRUE(memory_.calls.empty());
  EXPECT_EQ(write(6, 2000, 63), 2000U + 10 + EvenMemory::kRead) << "of a part, for the rest";
}

TEST_F(CacheTest, AccessesToABankFollowOneAnother) {
  for (const std::uint64_t line : {0U, 1U, 4U}) read(line, 0);
  EXPECT_EQ(read(0, 1000), 1013U);
  EXPECT_EQ(read(1, 1000), 1013U) << "another bank";
  EXPECT_EQ(read(4, 1000), 1017U) << "the same bank, after four cycles";
  EXPECT_EQ(counters_of(cache_).at("bank_wait"), 4U + 4U) << "once at the beginning, too";
}

TEST_F(CacheTest, AWrittenLineIsWrittenBackAfterTheFillThatTakesItsPlace) {
  fill_a_set();
  EXPECT_EQ(read(64, 1000), 1000U + 10 + EvenMemory::kRead);
  EXPECT_EQ(memory_.calls, (std::vector<EvenMemory::Call>{{false, 64, 1010}, {true, 0, 1014}}));
  EXPECT_EQ(memory_.aside, 1U);
  const auto counters = counters_of(cache_);
  EXPECT_EQ(counters.at("write_backs"), 1U);
  EXPECT_EQ(counters.at("dirty"), 7U);
}

TEST_F(CacheTest, ALineThatWasOnlyReadIsNot) {
  for (std::uint64_t line = 0; line <= 64; line += 8) read(line, 0);
  EXPECT_EQ(memory_.calls.size(), 9U);
  EXPECT_EQ(memory_.aside, 0U);
}

TEST_F(CacheTest, AsManyMissesAreInFlightAsThereAreRegisters) {
  Machine::L2 params = small();
  params.mshrs = 2;
  params.banks = 64;
  Cache cache(params, memory_);
  std::vector<std::uint64_t> done;
  for (std::uint64_t line = 0; line < 6; ++line) {
    done.push_back(cache.access(line, 64, false, line).done);
  }
  EXPECT_EQ(done, (std::vector<std::uint64_t>{110, 111, 210, 211, 310, 311}));
  EXPECT_EQ(counters_of(cache).at("mshr_wait"), 98U + 98 + 196 + 196);
}

TEST_F(CacheTest, AMissRegisterIsHeldUntilTheWriteBackIsAcknowledged) {
  Machine::L2 params = small();
  params.mshrs = 1;
  Cache cache(params, memory_);
  for (std::uint64_t line = 0; line < 64; line += 8) cache.access(line, 64, true, 0);
  cache.access(64, 64, true, 1000);  // fills nothing: free when line 0 has been written
  EXPECT_EQ(cache.access(65, 64, false, 1001).done,
            1010U + 4 + EvenMemory::kWrite + EvenMemory::kRead);
}

TEST_F(CacheTest, ALineOnItsWayKeepsItsPlaceUntilItIsThere) {
  Machine::L2 params = small();
  params.ways = 1;
  Cache cache(params, memory_);
  cache.access(0, 64, false, 0);
  EXPECT_EQ(cache.access(64, 64, false, 20).done, 110U + EvenMemory::kRead) << "64 sets of one";
}

TEST_F(CacheTest, AnAccessThatIsServedLaterFindsTheGapsBefore) {
  for (const std::uint64_t line : {0U, 4U}) read(line, 0);
  read(0, 1000);
  EXPECT_EQ(read(4, 900), 913U);
}

TEST(CacheConservation, NothingIsLostWhateverComes) {
  std::mt19937 random(3);
  const auto below = [&](std::uint32_t limit) {
    return static_cast<std::uint32_t>(random() % limit);
  };
  for (int round = 0; round < 40; ++round) {
    Machine::L2 params;
    params.line_bytes = 16U << below(4);
    params.ways = 1 + below(8);
    params.kib = params.ways * (1 + below(4));
    params.banks = 1U << below(4);
    params.bank_bytes = 1U << below(6);
    params.mshrs = 1 + below(6);
    params.hit_latency = below(20);
    EvenMemory memory;
    Cache cache(params, memory);
    CacheTags tags(params.kib * 1024 / params.ways / params.line_bytes, params.ways);
    std::uint64_t cycle = 0, hits = 0, whole = 0, asked = 0, last = 0;
    constexpr std::uint64_t kAccesses = 1500;
    for (std::uint64_t i = 0; i < kAccesses; ++i) {
      cycle += below(30);
      cache.retire(cycle);
      const std::uint64_t line = random() % (2 * tags.slots());
      const bool write = below(2) == 0;
      const std::uint32_t bytes = below(2) == 0 ? params.line_bytes : 1 + below(params.line_bytes);
      const bool hit = tags.access(line, write).hit;
      const std::uint64_t done = cache.access(line, bytes, write, cycle).done;
      ASSERT_GE(done, cycle + params.hit_latency);
      hits += hit ? 1 : 0;
      whole += !hit && write && bytes == params.line_bytes ? 1 : 0;
      asked += bytes;
      last = std::max(last, done);
    }
    cache.finish(last);
    const auto counters = counters_of(cache);
    EXPECT_EQ(counters.at("reads") + counters.at("writes"), kAccesses);
    EXPECT_EQ(counters.at("hits") + counters.at("merged"), hits);
    EXPECT_EQ(counters.at("misses"), kAccesses - hits);
    EXPECT_EQ(counters.at("fills"), counters.at("misses") - whole);
    const auto sent = static_cast<std::uint64_t>(
        std::count_if(memory.calls.begin(), memory.calls.end(), [](auto& c) { return c.write; }));
    EXPECT_EQ(counters.at("write_backs"), sent);
    EXPECT_EQ(counters.at("fills"), memory.calls.size() - sent);
    EXPECT_EQ(memory.aside, sent);
    EXPECT_EQ(cache.bank_bytes(), asked + memory.calls.size() * params.line_bytes);
    std::set<std::uint64_t> totals;
    for (std::uint32_t bank = 0; bank < params.banks; ++bank) {
      const std::string prefix = "bank" + std::to_string(bank) + ".";
      const std::uint64_t total = counters.at(prefix + "total");
      EXPECT_EQ(counters.at(prefix + "busy") + counters.at(prefix + "idle"), total);
      totals.insert(total);
    }
    EXPECT_EQ(totals.size(), 1U) << "all banks live equally long";
    EXPECT_GE(*totals.begin(), last);
  }
}

TEST(CacheLimits, AreThoseOfItsParameters) {
  EvenMemory memory;
  const auto refuses = [&](auto change) {
    Machine::L2 params = small();
    change(params);
    EXPECT_THROW(Cache(params, memory), std::invalid_argument);
  };
  refuses([](Machine::L2& p) { p.kib = 0; });
  refuses([](Machine::L2& p) { p.ways = 3; });
  refuses([](Machine::L2& p) { p.ways = 0; });
  refuses([](Machine::L2& p) { p.banks = 0; });
  refuses([](Machine::L2& p) { p.bank_bytes = 0; });
  refuses([](Machine::L2& p) { p.mshrs = 0; });
}

}  // namespace
}  // namespace systole::hw
