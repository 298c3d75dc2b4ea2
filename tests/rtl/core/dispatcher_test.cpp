#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "Vdispatcher_4x4x2_checked.h"
#include "base/error.h"
#include "hw/program/dispatch.h"
#include "testbench/rtl/core/dispatcher_rtl.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "tests/rtl/drive/expected_assertions.h"

namespace systole::testbench {
namespace {

using hw::DispatchItem;
using hw::Range;
using hw::Space;
using hw::Unit;

using Random = std::mt19937_64;

const RtlOptions kDispatcherChecks{true, "", 7};

std::uint64_t below(Random& random, std::uint64_t limit) { return random() % limit; }

/// A range of a memory of `size`: now and then empty, or all of it.
Range random_range(Random& random, Space space, std::uint64_t size, bool write) {
  if (below(random, 40) == 0) return {space, 0, size, write};
  const std::uint64_t begin = below(random, size);
  const std::uint64_t longest = std::max<std::uint64_t>(1, size / (1 + below(random, 12)));
  return {space, begin, std::min(size, begin + below(random, longest + 1)), write};
}

/// What a command of the unit has, in a memory so small that hazards of every kind are frequent.
DispatchItem random_item(Random& random, std::uint64_t size) {
  DispatchItem item;
  item.unit = static_cast<Unit>(below(random, hw::kStations));
  const auto add = [&](Space space, bool write) {
    item.ranges.push_back(random_range(random, space, size, write));
  };
  switch (item.unit) {
    case Unit::kLoad:
      add(Space::kDram, false);
      add(below(random, 3) == 0 ? Space::kAccumulator : Space::kScratchpad, true);
      break;
    case Unit::kCompute:
      add(Space::kScratchpad, false);
      add(Space::kScratchpad, below(random, 20) == 0);
      add(Space::kAccumulator, true);
      break;
    default:
      add(Space::kAccumulator, false);
      if (below(random, 2) == 0) add(Space::kScratchpad, false);
      if (below(random, 2) == 0) add(Space::kStatistics, below(random, 2) == 0);
      for (std::uint64_t i = below(random, DispatcherRtl::kDramRanges); i > 0; --i) {
        add(Space::kDram, false);
      }
      add(below(random, 3) == 0 ? Space::kScratchpad : Space::kDram, true);
  }
  item.occupied = 1 + below(random, below(random, 2) == 0 ? 4 : 60);
  item.completed = item.occupied + below(random, 40);
  item.released = 1 + below(random, item.completed);
  return item;
}

std::vector<DispatchItem> random_program(Random& random) {
  const std::uint64_t size = std::uint64_t{64} << below(random, 8);
  const std::uint64_t gap = below(random, 3) == 0 ? 30 : 1;
  std::vector<DispatchItem> items(1 + below(random, 120));
  std::uint64_t arrival = below(random, 50);
  for (DispatchItem& item : items) {
    item = random_item(random, size);
    arrival += below(random, gap);
    // Fetches bring several commands in one cycle.
    item.arrival = arrival;
  }
  return items;
}

class Dispatcher : public testing::TestWithParam<std::size_t> {
 protected:
  const std::array<std::uint32_t, hw::kStations> sizes_ = kDispatcherSizes.at(GetParam());
};

TEST_P(Dispatcher, MeetsTheContractOnRandomPrograms) {
  const auto dispatcher = make_dispatcher(sizes_, kDispatcherChecks);
  Random random(GetParam() + 1);
  RtlCounts counts;
  std::uint64_t blocked = 0;
  for (int i = 0; i < 200; ++i) {
    const std::vector<DispatchItem> items = random_program(random);
    check_dispatcher(*dispatcher, items, sizes_, counts);
    ASSERT_EQ(counts.mismatches, 0U) << "program " << i;
    for (const hw::DispatchTimes& time : hw::dispatch_times(items, sizes_)) {
      blocked += time.started > time.dispatched ? 1 : 0;
    }
  }
  EXPECT_GT(counts.operations, 5'000U);
  EXPECT_GT(blocked, counts.operations / 2);
}

/// Two commands, the second of which begins where the first ends, or a unit before or after.
TEST_P(Dispatcher, RangesMeetFromTheirFirstToTheirLastUnit) {
  const auto dispatcher = make_dispatcher(sizes_, kDispatcherChecks);
  for (const Space space :
       {Space::kDram, Space::kScratchpad, Space::kAccumulator, Space::kStatistics}) {
    for (const bool older_writes : {false, true}) {
      for (const bool younger_writes : {false, true}) {
        for (const int offset : {-1, 0, 1}) {
          for (const bool upwards : {false, true}) {
            const std::uint64_t top = space == Space::kDram ? (std::uint64_t{1} << 36) : 1 << 22;
            const Range low{space, top - 8, top - 4, upwards ? older_writes : younger_writes};
            const std::uint64_t begin = low.end + static_cast<std::uint64_t>(offset + 1) - 1;
            const Range high{space, begin, begin + 3, upwards ? younger_writes : older_writes};
            DispatchItem older, younger;
            older.unit = Unit::kLoad;
            younger.unit = Unit::kStore;
            older.ranges = {upwards ? low : high};
            younger.ranges = {upwards ? high : low};
            older.occupied = older.completed = 20;
            older.released = 10;
            const std::vector<hw::DispatchTimes> times = dispatcher->run({older, younger});
            const bool waits = offset < 0 && (older_writes || younger_writes);
            const std::uint64_t expected =
                waits ? times[0].started + (older_writes ? 20 : 10) : times[1].dispatched;
            ASSERT_EQ(times[1].started, expected) << static_cast<int>(space) << ' ' << older_writes
                                                  << younger_writes << ' ' << offset;
          }
        }
      }
    }
  }
  EXPECT_FALSE(dispatcher->failed());
}

INSTANTIATE_TEST_SUITE_P(Stations, Dispatcher, testing::Values(std::size_t{0}, std::size_t{1}));

TEST(DispatcherSizes, AreThoseThatAreBuilt) {
  EXPECT_THROW((void)make_dispatcher({8, 16, 5}), hw::InputError);
  const auto dispatcher = make_dispatcher(kDispatcherSizes[1]);
  DispatchItem item;
  item.ranges.assign(3, Range{Space::kScratchpad, 0, 1, false});
  EXPECT_THROW((void)dispatcher->run({item}), std::invalid_argument);
}

/// A dispatcher without commands: pins begin at random.
struct QuietDispatcher : VerilatedDut<Vdispatcher_4x4x2_checked> {
  QuietDispatcher() : VerilatedDut(kDispatcherChecks) {
    auto& pins = **this;
    pins.valid_i = pins.unit_i = pins.start_ready_i = 0;
    pins.released_i = pins.completed_i = 0;
    reset();
  }
};

TEST(DispatcherProtocol, AssertionFiresWhenACommandIsWithdrawn) {
  QuietDispatcher dut;
  dut->valid_i = 1;
  dut->unit_i = 2;  // the store station has two entries
  expect_assertion("CommandHeld_A", dut, 4, [&] { dut->valid_i = 0; });
}

TEST(DispatcherProtocol, AssertionFiresWhenAnEmptyEntryCompletes) {
  QuietDispatcher dut;
  expect_assertion("CompletedUsed_A", dut, 2, [&] { dut->completed_i = 1; });
}

}  // namespace
}  // namespace systole::testbench
