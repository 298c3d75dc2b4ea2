#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "hw/memory/dram_timing.h"
#include "support/report_values.h"

// What must hold for any stream of requests; the single constraints are in dram_timing_test.cpp.
namespace systole::hw {
namespace {

constexpr std::uint64_t kPsPerNs = 1000;

struct StreamRequest {
  std::uint64_t address;
  bool write;
  std::uint64_t arrival;  ///< ns
};

TEST(DramMapping, SendsNeighbouringBurstsToOtherChannelsAndGroups) {
  Machine::Dram d;
  d.channels = 2;
  const DramMapping m(d);
  EXPECT_EQ(m.locate(0).channel, 0U);
  EXPECT_EQ(m.locate(63).channel, 0U);
  EXPECT_EQ(m.locate(64).channel, 1U);
  EXPECT_EQ(m.locate(128).group, 1U);
  // Two channels, four groups, a row of 8 KiB in each: then the next bank, after four the next row.
  EXPECT_EQ(m.locate(65535).bank, 12U);
  EXPECT_EQ(m.locate(65535).row, 0U);
  EXPECT_EQ(m.locate(65536).bank, 1U);
  EXPECT_EQ(m.locate(4 * 65536).bank, 0U);
  EXPECT_EQ(m.locate(4 * 65536).row, 1U);
}

/// A stream with mixed row locality, directions, sizes and gaps.
std::vector<StreamRequest> random_stream(std::size_t count, std::uint64_t seed,
                                         std::uint64_t max_gap) {
  std::mt19937_64 random(seed);
  std::vector<StreamRequest> stream;
  std::uint64_t address = 0;
  std::uint64_t arrival = 0;
  for (std::size_t i = 0; i < count; ++i) {
    address = random() % 4 == 0 ? random() % (60U << 20) : address + 64;
    arrival += max_gap == 0 ? 0 : random() % max_gap;
    stream.push_back({address, random() % 3 == 0, arrival});
  }
  return stream;
}

TEST(DramTiming, ConservesTimeAndBurstsUnderRandomAccesses) {
  Machine::Dram d;
  d.channels = 2;
  d.write_queue = 0;
  DramTiming t(d);
  std::uint64_t bursts = 0;
  std::uint64_t end = 0;
  std::uint64_t last_end[2] = {0, 0};
  for (const StreamRequest& r : random_stream(100'000, 3, 12)) {
    const DramAccess a =
        t.access(r.address & ~std::uint64_t{63}, 64, r.write, r.arrival * kPsPerNs);
    ASSERT_EQ(a.hits + a.misses + a.conflicts, 1U);
    ASSERT_EQ(a.end - a.begin, t.times().burst);
    ASSERT_GE(a.begin, r.arrival * kPsPerNs + t.times().controller +
                           (r.write ? t.times().cwl : t.times().cl));
    std::uint64_t& previous = last_end[t.mapping().locate(r.address).channel];
    ASSERT_GE(a.begin, previous) << "data of one channel must not overlap";
    const std::uint64_t phase = a.begin % t.times().refi;
    ASSERT_TRUE(a.begin < t.times().refi || phase >= t.times().rfc) << "data during a refresh";
    previous = a.end;
    end = std::max(end, a.end);
    ++bursts;
  }
  t.finish(end);
  std::uint64_t busy = 0;
  for (std::size_t i = 0; i < t.channels(); ++i) {
    const BlockAccount& account = t.account(i);
    std::uint64_t sum = account.time().busy + account.time().idle;
    for (std::size_t cause = 0; cause <= DramTiming::kTurnaround; ++cause) {
      sum += account.time().stalled[cause].time;
      EXPECT_GT(account.time().stalled[cause].time, 0U) << "cause " << cause << " never happened";
    }
    EXPECT_EQ(sum, end);
    busy += account.time().busy;
  }
  EXPECT_EQ(busy, bursts * t.times().burst);
  std::uint64_t rows = 0;
  for (const Counter& counter : t.report("dram").counters) {
    if (counter.name.rfind("row_", 0) == 0) rows += counter.value;
  }
  EXPECT_EQ(t.refreshes(), 2 * (end / t.times().refi));
  EXPECT_EQ(rows, bursts);
}

/// A DRAM with other geometry and times.
Machine::Dram random_dram(std::mt19937_64& random) {
  const auto one_of = [&](std::uint32_t lowest_log, std::uint32_t logs) {
    return 1U << (lowest_log + random() % logs);
  };
  Machine::Dram d;
  d.mib = 4;
  d.channels = random() % 2 == 0 ? 1 : one_of(0, 3);
  d.bank_groups = one_of(0, 3);
  d.banks = d.bank_groups * one_of(0, 3);
  d.row_bytes = one_of(8, 5);
  d.t_ccd_l_ns = static_cast<double>(3 + random() % 20);
  d.t_rtp_ns = static_cast<double>(1 + random() % 30);
  d.controller_ns = static_cast<double>(random() % 30);
  d.t_refi_ns = random() % 4 == 0 ? 0 : static_cast<double>(1000 + random() % 5000);
  d.write_queue = random() % 2 == 0 ? 0 : 1 + random() % 24;
  return d;
}

// The two that serve many requests say and leave behind what as many calls of access() do.
TEST(DramTiming, ServesManyAsOneByOne) {
  std::mt19937_64 random(5);
  std::size_t each = 0, open = 0, parts = 0;
  for (int memory = 0; memory < 200; ++memory) {
    const Machine::Dram dram = random_dram(random);
    DramTiming many(dram), single(dram);
    std::uint64_t address = 0, now = 0;
    for (int burst = 0; burst < 60; ++burst) {
      if (random() % 8 == 0) address = random() % (3U << 20) & ~std::uint64_t{63};
      if (random() % 2 == 0) now += random() % 300'000;
      const bool write = random() % 3 == 0;
      const std::size_t count = 2 + random() % 20;
      const std::uint64_t step = random() % 4 * 4000 + random() % 6000;
      std::vector<std::uint64_t> times(count), ends(count);
      for (std::size_t i = 0; i < count; ++i) {
        times[i] = now + i * step + (burst % 2 == 0 ? 0 : random() % 3000);
        ends[i] = single.access(address + i * 64, 64, write, times[i]).end;
      }
      std::size_t served = 0;
      if (burst % 2 == 0) {
        const std::size_t least = 1 + random() % count;
        const std::size_t all = many.access_each(address, write, now, step, count, least);
        ASSERT_TRUE(all == 0 || all >= least);
        for (; served < all; ++served) {
          ASSERT_EQ(ends[served], many.end_alone(write, now) + served * step);
        }
        each += served;
        parts += served != 0 && served < count ? 1 : 0;
      } else {
        const std::uint64_t hits = many.hits();
        std::vector<std::uint64_t> done = times;
        many.access_bursts(write, done, [&] { return address + 64 * served++; });
        ASSERT_EQ(ends, done) << "memory " << memory;
        open += many.hits() - hits;
      }
      for (; served < count; ++served) {
        const std::uint64_t end = many.access(address + served * 64, 64, write, times[served]).end;
        ASSERT_EQ(ends[served], end) << "memory " << memory;
      }
      address = (address + count * 64) % (3U << 20);
      now += count * step;
    }
    many.finish(now + 1'000'000);
    single.finish(now + 1'000'000);
    ASSERT_EQ(systole::test::values_of(many.report("dram")),
              systole::test::values_of(single.report("dram")));
  }
  EXPECT_GT(each, 3'000U);
  EXPECT_GT(open, 20'000U);
  EXPECT_GT(parts, 50U);
}

/// One change that makes a DRAM slower.
struct Slower {
  const char* name;
  std::function<void(Machine::Dram&)> change;
};
void PrintTo(const Slower& s, std::ostream* os) { *os << s.name; }

class SlowerDram : public testing::TestWithParam<Slower> {};

// Without refresh: a row that a refresh closed can make a later request of a faster memory a miss.
// Without a queue: writes that move while the bus is idle may meet the next read.
TEST_P(SlowerDram, NeverFinishesARequestEarlier) {
  Machine::Dram fast;
  fast.t_refi_ns = 0;
  fast.write_queue = 0;
  Machine::Dram slow = fast;
  GetParam().change(slow);
  DramTiming a(fast);
  DramTiming b(slow);
  std::uint64_t later = 0;
  for (const StreamRequest& r : random_stream(20'000, 11, 25)) {
    const std::uint64_t fast_end = a.access(r.address, 64, r.write, r.arrival * kPsPerNs).end;
    const std::uint64_t slow_end = b.access(r.address, 64, r.write, r.arrival * kPsPerNs).end;
    ASSERT_GE(slow_end, fast_end);
    later += slow_end > fast_end;
  }
  EXPECT_GT(later, 0U);
}

INSTANTIATE_TEST_SUITE_P(
    OneParameter, SlowerDram,
    testing::Values(Slower{"Cl", [](auto& d) { d.t_cl_ns += 3; }},
                    Slower{"Cwl", [](auto& d) { d.t_cwl_ns += 3; }},
                    Slower{"Rcd", [](auto& d) { d.t_rcd_ns += 3; }},
                    Slower{"Rp", [](auto& d) { d.t_rp_ns += 3; }},
                    Slower{"Ras", [](auto& d) { d.t_ras_ns += 9; }},
                    Slower{"Rtp", [](auto& d) { d.t_rtp_ns += 20; }},
                    Slower{"Wr", [](auto& d) { d.t_wr_ns += 5; }},
                    Slower{"Wtr", [](auto& d) { d.t_wtr_ns += 5; }},
                    Slower{"CcdL", [](auto& d) { d.t_ccd_l_ns += 3; }},
                    Slower{"RrdS", [](auto& d) { d.t_rrd_s_ns += 3; }},
                    Slower{"RrdL", [](auto& d) { d.t_rrd_l_ns += 3; }},
                    Slower{"Faw", [](auto& d) { d.t_faw_ns += 30; }},
                    Slower{"Controller", [](auto& d) { d.controller_ns += 1; }},
                    Slower{"Transfers", [](auto& d) { d.mega_transfers = 2133; }}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(DramTiming, StreamsReadsAtTheBusRateLessRefresh) {
  const Machine::Dram d;
  DramTiming t(d);
  const std::uint64_t bytes = 8U << 20;
  const std::uint64_t end = t.access(0, bytes, false, 0).end;
  const double gigabytes = static_cast<double>(bytes) / (static_cast<double>(end) / 1000.0);
  const double peak = 19.2 * (1.0 - d.t_rfc_ns / d.t_refi_ns);
  EXPECT_LT(gigabytes, peak);
  EXPECT_GT(gigabytes, 0.985 * peak);
}

}  // namespace
}  // namespace systole::hw
