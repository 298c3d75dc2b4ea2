#include "hw/core/sum_traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "hw/dma/read_dma.h"
#include "hw/dma/sum_loads.h"
#include "support/array/model_array.h"

namespace systole::hw {
namespace {

/// Requests of loads to the accumulator, with elements of two bytes.
std::vector<ReadRequest> random_loads(std::mt19937_64& random, std::uint64_t beat) {
  std::vector<ReadRequest> loads(random() % 40);
  std::uint64_t done = 0;
  for (ReadRequest& load : loads) {
    load.address = random() % 64;
    load.bytes = 1 + random() % 16;
    load.to = random() % 6000;
    const std::uint64_t beats = blocks_touched(load.address, load.bytes, beat);
    done += beats + (random() % 3 == 0 ? random() % 200 : random() % 4);
    load.done = done + 6;
  }
  return loads;
}

std::vector<LoadedSums> beats_of(const std::vector<ReadRequest>& loads, std::uint64_t beat) {
  std::vector<LoadedSums> beats;
  for (const ReadRequest& load : loads) {
    for (const LocalWrite& write : local_writes(load, beat)) {
      beats.push_back({write.cycle, write.to / 2, (write.to + write.bytes - 1) / 2});
    }
  }
  return beats;
}

/// A read in a cycle, and whether it can be.
struct SumRead {
  std::uint64_t cycle = 0;
  SumRange sums;
  bool can = false;
};

class SumTrafficTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kMatmuls = 4;

  void make(std::mt19937_64& random) {
    test_ = random_case(random, kMatmuls);
    const std::uint32_t memories = 1U << random() % 3;
    test_.machine.accumulator = {16, 2, 2, Protection::kNone, memories};
    ready_ = random_starts(random, kMatmuls);
    loads_ = random_loads(random, beat());
    traffic_.emplace(test_.machine);
    requests_.clear();
    reads_.clear();
    shown_ = seen_ = free_until_ = 0;
  }
  [[nodiscard]] std::uint64_t beat() const { return test_.machine.array.cols; }
  [[nodiscard]] SumMemories memories() const {
    const std::uint64_t cols = test_.machine.array.cols;
    const Machine::Accumulator& sums = test_.machine.accumulator;
    return {cols, 2, 16 * 1024 / 4 / 2 / cols, sums.memories};
  }

  /// Looks whenever the array may have gone on.
  void run() {
    ModelArray model(test_, ready_,
                     [&](std::uint64_t now, OperandStream& stream, const BankService& banks) {
                       look(now, stream, banks);
                     });
    (void)model.run();
  }
  /// All loads are known at the first look, and then reads of the cycles that are.
  void look(std::uint64_t now, OperandStream& stream, const BankService& banks) {
    traffic_->know(stream, banks, now);
    for (; shown_ < loads_.size(); ++shown_) {
      ReadRequest& load = loads_[shown_];
      load.done += now;
      requests_.push_back(traffic_->add(load.address, load.bytes, beat(), load.to, 2, load.done));
    }
    for (; seen_ < traffic_->known_before(); ++seen_) {
      for (int i = 0; i < 2; ++i) {
        const std::uint64_t at = random_() % 3000;
        const std::uint64_t rows = 1 + random_() % test_.machine.accumulator.memories;
        const SumRange sums{at, at + rows * test_.machine.array.cols - 1};
        const std::optional<bool> can = traffic_->can_read(seen_, sums.first, sums.last);
        ASSERT_TRUE(can);
        if (seen_ < free_until_ && sums.last / 2048 == 0) EXPECT_TRUE(*can) << "it said so";
        reads_.push_back({seen_, sums, *can});
      }
    }
    if (test_.machine.accumulator.ports == 2) EXPECT_FALSE(traffic_->can_read(seen_, 0, 0));
    traffic_->keep_from(seen_);
    traffic_->know(stream, banks, now);
    free_until_ = traffic_->free(seen_, 0, 2047).until;
  }

  ReadsCase test_;
  std::vector<std::uint64_t> ready_;
  std::vector<ReadRequest> loads_;
  std::optional<SumTraffic> traffic_;
  std::vector<SumTraffic::Request> requests_;
  std::vector<SumRead> reads_;
  std::size_t shown_ = 0;
  std::uint64_t seen_ = 0, free_until_ = 0;
  std::mt19937_64 random_{3};
};

// Every beat, and every vector that a store might read.
TEST_F(SumTrafficTest, IsThatOfTheGates) {
  std::mt19937_64 random(16);
  std::size_t waits = 0, late = 0;
  for (int i = 0; i < 1'500; ++i) {
    make(random);
    ASSERT_TRUE(traffic_->serves());
    run();
    const FoldSchedule schedule = gates_from(test_, ready_);
    const SumLoads loads(memories(), schedule.sums, beats_of(loads_, beat()));
    std::size_t written = 0;
    for (std::size_t l = 0; l < loads_.size(); ++l) {
      written += local_writes(loads_[l], beat()).size();
      const std::uint64_t placed = loads.writes()[written - 1].cycle + 1;
      const SumTraffic::Placed found = traffic_->placed(requests_[l]);
      if (placed < seen_) ASSERT_TRUE(found.is_final) << i << " load " << l;
      if (found.is_final) ASSERT_EQ(found.cycle, placed) << i << " load " << l;
      if (!found.is_final) EXPECT_LE(found.cycle, placed) << i << " load " << l;
      late += placed != loads_[l].done + kSumLoadCycles ? 1 : 0;
    }
    const SumPorts ports(memories(), schedule.sums, loads.writes());
    for (const SumRead& read : reads_) {
      ASSERT_EQ(read.can, !ports.none(read.cycle, read.sums)) << i << " cycle " << read.cycle;
      waits += read.can ? 0 : 1;
    }
  }
  EXPECT_GT(late, 1'000U);
  EXPECT_GT(waits, 10'000U);
}

// With three ports they have one of their own.
TEST_F(SumTrafficTest, ReadersWaitWhereTheArrayLeavesThemTooFewPorts) {
  std::mt19937_64 random(17);
  const auto waits = [&](std::uint32_t ports) {
    std::size_t waits = 0;
    for (int i = 0; i < 60; ++i) {
      make(random);
      test_.machine.accumulator.ports = ports;
      test_.machine.accumulator.memories = 1;
      traffic_.emplace(test_.machine);
      run();
      for (const SumRead& read : reads_) waits += read.can ? 0 : 1;
    }
    return waits;
  };
  EXPECT_GT(waits(2), 0U);
  EXPECT_EQ(waits(3), 0U);
}

TEST_F(SumTrafficTest, ServesAllButPortsForEverybodyAndStationarySums) {
  Machine machine;
  EXPECT_TRUE(SumTraffic(machine).serves());
  machine.accumulator.ports = 3;
  EXPECT_TRUE(SumTraffic(machine).serves());
  machine.accumulator.ports = 4;
  EXPECT_FALSE(SumTraffic(machine).serves());
  machine.accumulator.ports = 2;
  machine.array.dataflow = Dataflow::kOutputStationary;
  EXPECT_FALSE(SumTraffic(machine).serves());
}

}  // namespace
}  // namespace systole::hw
