#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "hw/memory/dram_timing.h"

// What a channel's queue of writes does.
namespace systole::hw {
namespace {

constexpr std::uint64_t kNanosecond = 1000;

/// Of eight places, six start a move, which leaves two. A burst takes 4 ns, a hit of a read
/// 5 + 10 + 4; the bus turns from a read to a write and back in 2 + 4 + 6 + 10 ns.
Machine::Dram eight_places() {
  Machine::Dram d;
  d.mib = 64;
  d.banks = 8;
  d.bank_groups = 2;
  d.row_bytes = 1024;
  d.mega_transfers = 2000;
  d.t_cl_ns = 10;
  d.t_cwl_ns = 8;
  d.t_rcd_ns = 20;
  d.t_rp_ns = 30;
  d.t_ras_ns = 70;
  d.t_wtr_ns = 6;
  d.t_ccd_l_ns = 7;
  d.t_refi_ns = 0;
  d.controller_ns = 5;
  d.write_queue = 8;
  d.write_high_percent = 75;
  d.write_low_percent = 25;
  return d;
}

/// Bursts in the order of their data.
class Bursts final : public DramWatch {
 public:
  explicit Bursts(DramTiming& timing) : accounts_(timing.channels()) { timing.watch(*this); }
  void burst(const DramBurst& burst) override { all.push_back(burst); }
  void refresh(std::uint32_t, std::uint64_t, std::uint64_t) override {}
  AccountWatch& channel(std::size_t index) override { return accounts_[index]; }

  std::vector<DramBurst> all;

 private:
  struct Unwatched final : AccountWatch {
    void spend(std::uint64_t, std::uint64_t, std::uint8_t) override {}
  };
  std::vector<Unwatched> accounts_;
};

struct WriteQueue : testing::Test {
  std::uint64_t read(std::uint64_t burst, std::uint64_t ns) {
    return timing.access(burst * 64, 64, false, ns * kNanosecond).end;
  }
  std::uint64_t write(std::uint64_t burst, std::uint64_t ns) {
    return timing.access(burst * 64, 64, true, ns * kNanosecond).end;
  }
  DramTiming timing{eight_places()};
  Bursts bursts{timing};
};

TEST_F(WriteQueue, AnswersAWriteWhenItIsInTheQueue) {
  EXPECT_EQ(write(0, 100), 105 * kNanosecond);
  EXPECT_TRUE(bursts.all.empty());
}

TEST_F(WriteQueue, LetsReadsPass) {
  read(0, 0);
  write(100, 998);
  EXPECT_EQ(read(2, 1000), (1000 + 5 + 10 + 4) * kNanosecond);
  EXPECT_FALSE(bursts.all.back().write);
}

TEST_F(WriteQueue, MovesAtTheHighMarkDownToTheLowOne) {
  read(0, 0);
  read(1, 0);
  for (std::uint64_t i = 0; i < 5; ++i) write(2 + i, 1000 + i);
  EXPECT_EQ(bursts.all.size(), 2U);
  write(7, 1005);
  ASSERT_EQ(bursts.all.size(), 6U);
  // The sixth is there at 1010 ns; every other burst is of the same bank group.
  EXPECT_EQ(bursts.all[2].begin, (1010 + 8) * kNanosecond);
  EXPECT_EQ(bursts.all[5].end, (1010 + 8 + 4 * 4) * kNanosecond);
  EXPECT_EQ(timing.turns(), 1U);
  // A read waits for the writes and for the bus to turn.
  EXPECT_EQ(read(8, 1005), (1034 + 6 + 10 + 4) * kNanosecond);
  EXPECT_EQ(timing.waiting_writes(), 2U);
}

TEST_F(WriteQueue, MovesWritesOnceTheBusHasBeenIdleForATurn) {
  const std::uint64_t end = read(0, 0) / kNanosecond;
  read(1, 0);
  write(2, 10);
  write(3, 10);
  const std::uint64_t idle = end + 4 + 22;  // after the second read
  DramTiming before = timing, after = timing;
  before.access(4 * 64, 64, false, idle * kNanosecond);
  EXPECT_EQ(before.waiting_writes(), 2U) << "a request was there in time";
  after.access(4 * 64, 64, false, idle * kNanosecond + 1);
  EXPECT_EQ(after.waiting_writes(), 1U) << "the second moves when its data can follow";
  write(5, idle + 100);
  EXPECT_EQ(timing.waiting_writes(), 1U) << "a bus that writes does not wait";
  EXPECT_EQ(bursts.all.back().end, (idle + 8 + 2 * 4) * kNanosecond);
}

TEST_F(WriteQueue, MovesAllBeforeAReadOfOneOfThem) {
  read(0, 0);
  read(1, 0);
  for (std::uint64_t i = 2; i < 6; ++i) write(i, 1000);
  EXPECT_EQ(read(6, 1000), (1000 + 5 + 10 + 4) * kNanosecond) << "of another burst";
  read(4, 1000);
  ASSERT_EQ(bursts.all.size(), 8U);
  for (std::size_t i = 3; i < 7; ++i) EXPECT_TRUE(bursts.all[i].write);
  EXPECT_FALSE(bursts.all[7].write);
  EXPECT_EQ(timing.waiting_writes(), 0U);
  EXPECT_EQ(timing.turns(), 1U);
}

TEST_F(WriteQueue, HoldsAWriteBackUntilItHasAPlace) {
  read(0, 0);
  read(1, 0);
  std::vector<std::uint64_t> taken;
  for (std::uint64_t i = 0; i < 40; ++i) taken.push_back(write(2 + i % 30, 1000));
  // The bus moves a burst in 4 ns: in the long run that is what it takes.
  for (std::uint64_t i = 0; i < 8; ++i) EXPECT_EQ(taken[i], 1005 * kNanosecond) << i;
  for (std::size_t i = 8; i < taken.size(); ++i) {
    EXPECT_EQ(taken[i], bursts.all.at(2 + i - 8).end) << i << ": its place is free again";
  }
}

TEST_F(WriteQueue, LeavesAtTheEndWhatHadNoTimeToMove) {
  read(0, 0);
  write(1, 1000);
  write(2, 1000);
  timing.finish(1004 * kNanosecond);
  EXPECT_EQ(timing.waiting_writes(), 2U);
  EXPECT_EQ(timing.account(0).now(), 1004 * kNanosecond);
  timing.finish(2000 * kNanosecond);
  EXPECT_EQ(timing.waiting_writes(), 0U);
  EXPECT_EQ(timing.account(0).time().busy, 3 * 4 * kNanosecond);
}

TEST(WriteQueueSize, IsOfBursts) {
  Machine::Dram d = eight_places();
  d.write_queue = 0;
  DramTiming none(d);
  EXPECT_EQ(none.access(0, 64, true, 0).end, (5 + 20 + 8 + 4) * kNanosecond);
  d.write_queue = 1;
  DramTiming one(d);
  EXPECT_EQ(one.access(0, 64, true, 0).end, 5 * kNanosecond);
  EXPECT_EQ(one.waiting_writes(), 0U) << "a queue of one moves it at once";
  EXPECT_EQ(one.access(0, 128, true, 0).end, (37 + 8 + 4) * kNanosecond)
      << "the second burst waits for the place of the first";
}

/// What a controller owes a stream of requests, whatever its queue.
struct Served {
  std::uint64_t last_read = 0;  ///< end of the data, ps
  std::uint64_t read_latency = 0;
  std::uint64_t turns = 0;
};

Served serve_random(const Machine::Dram& dram, std::uint64_t seed, std::uint64_t gap) {
  std::mt19937_64 random(seed);
  DramTiming timing(dram);
  Bursts bursts(timing);
  Served served;
  std::uint64_t now = 0, read_at = 0, write_at = 1U << 20, count = 0;
  std::vector<std::size_t> taken(timing.channels());  // writes so far
  std::map<std::uint64_t, std::size_t> last_write;    // which of its channel
  for (int i = 0; i < 4000; ++i) {
    now += random() % (gap + 1);
    const bool write = random() % 3 == 0;
    std::uint64_t& stream = write ? write_at : read_at;
    stream = random() % 16 == 0 ? random() % (2U << 20) / 64 * 64 : (stream + 64) % (2U << 20);
    const DramAccess access = timing.access(stream, 64, write, now);
    EXPECT_GE(access.end, now + timing.times().controller);
    if (write) {
      last_write[stream] = ++taken[timing.mapping().locate(stream).channel];
    } else {
      EXPECT_FALSE(bursts.all.back().write);
      EXPECT_EQ(bursts.all.back().end, access.end);
      served.last_read = access.end;
      served.read_latency += access.end - now;
      ++count;
      // Whatever it reads has been written by then.
      const auto of = last_write.find(stream);
      if (of != last_write.end()) {
        const std::uint32_t channel = bursts.all.back().at.channel;
        const auto moved = std::count_if(
            bursts.all.begin(), bursts.all.end(),
            [&](const DramBurst& burst) { return burst.write && burst.at.channel == channel; });
        EXPECT_LE(of->second, static_cast<std::size_t>(moved));
      }
    }
    EXPECT_LE(timing.waiting_writes(), dram.write_queue * dram.channels);
  }
  timing.finish(now + 1'000'000'000);
  EXPECT_EQ(timing.waiting_writes(), 0U);
  std::size_t writes = 0;
  std::vector<std::uint64_t> bus(timing.channels());
  for (const DramBurst& burst : bursts.all) {
    EXPECT_GE(burst.begin, bus[burst.at.channel]) << "data of one channel do not overlap";
    bus[burst.at.channel] = burst.end;
    writes += burst.write ? 1 : 0;
  }
  EXPECT_EQ(writes, std::accumulate(taken.begin(), taken.end(), std::size_t{0}));
  served.turns = timing.turns();
  served.read_latency /= std::max<std::uint64_t>(count, 1);
  return served;
}

// Over random memories, loads and queues: nothing is lost or moved out of its order, what is read
// has been written, and a deeper queue turns the bus less often.
TEST(WriteQueueSweep, KeepsOrderAndTurnsLessOftenTheDeeperItIs) {
  std::uint64_t all = 0, longest = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    Machine::Dram dram = eight_places();
    dram.channels = 1U << random() % 2;
    dram.t_refi_ns = random() % 2 == 0 ? 0 : 3000;
    dram.t_rfc_ns = 100;
    dram.write_high_percent = 85;
    dram.write_low_percent = 50;
    // From more than the bus can carry to a fifth of it.
    const std::uint64_t gap = 4000 + random() % 40'000;
    dram.write_queue = 0;
    const Served none = serve_random(dram, seed, gap);
    std::uint64_t turns = none.turns;
    for (const std::uint32_t places : {8U, 32U, 128U}) {
      dram.write_queue = places;
      const Served served = serve_random(dram, seed, gap);
      EXPECT_LE(served.turns, turns) << "seed " << seed << ", " << places << " places";
      // Writes that wait for an idle bus turn it no more often than without a queue.
      turns = std::max(served.turns, turns * 9 / 10);
      EXPECT_LE(served.last_read, none.last_read + served.last_read / 20) << seed << " " << places;
      if (places != 128) continue;
      all += none.read_latency;
      longest += served.read_latency;
    }
  }
  EXPECT_LT(longest, all) << "reads pass writes";
}

}  // namespace
}  // namespace systole::hw
