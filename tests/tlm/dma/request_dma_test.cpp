#include "tlm/dma/request_dma.h"

#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <vector>

#include "hw/dma/result_rows.h"
#include "support/tlm/fixed_target.h"
#include "support/tlm/systemc_test.h"
#include "support/tlm/tlm_driver.h"
#include "tlm/common/time.h"

namespace systole::tlm_model {
namespace {

using test::FixedTarget;

hw::Machine machine_of(std::uint32_t request_bytes, std::uint32_t mhz = 1000) {
  hw::Machine machine;
  machine.dma.request_bytes = request_bytes;
  machine.core.clock_mhz = mhz;
  return machine;
}

class RequestDmaTest : public test::SystemCTest {
 protected:
  /// At 1 GHz a cycle is a nanosecond.
  [[nodiscard]] std::vector<std::uint64_t> cycles() const { return memory_.cycles(); }
  FixedTarget memory_{"memory", 8192};
};

TEST_F(RequestDmaTest, SplitsAtMultiplesOfTheRequestSize) {
  RequestDma port("port", machine_of(64), 16);
  port.socket.bind(memory_.socket);
  test::run_body([&] {
    port.read(100, nullptr, 200);
    port.read(128, nullptr, 64);
    port.read(191, nullptr, 2);
    port.write(5, nullptr, 1);
  });
  const std::vector<std::pair<std::uint64_t, unsigned>> expected = {
      {100, 28}, {128, 64}, {192, 64}, {256, 44}, {128, 64}, {191, 1}, {192, 1}, {5, 1}};
  ASSERT_EQ(memory_.addresses.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(memory_.addresses[i], expected[i].first);
    EXPECT_EQ(memory_.lengths[i], expected[i].second);
    EXPECT_EQ(memory_.commands[i], i == 7 ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
  }
  EXPECT_EQ(port.stats().requests, 8U);
  EXPECT_EQ(port.stats().bytes, 200U + 64 + 2 + 1);
}

TEST_F(RequestDmaTest, IssuesOneRequestACycleAndKeepsItsWindow) {
  RequestDma port("port", machine_of(16), 4);
  port.socket.bind(memory_.socket);
  test::run_body([&] {
    EXPECT_EQ(port.read(0, nullptr, 10 * 16), 21U + 10);
    EXPECT_EQ(port.next_issue(), 22U);
  });
  EXPECT_EQ(cycles(), (std::vector<std::uint64_t>{0, 1, 2, 3, 10, 11, 12, 13, 20, 21}));
  EXPECT_EQ(port.stats().window_wait_cycles, 6U + 6);
}

class DmaSettlingTest : public RequestDmaTest, public ::testing::WithParamInterface<unsigned> {};

// Of whole requests, which issue as a stream, and of a row that begins in one.
TEST_P(DmaSettlingTest, KeepsASlotUntilWhatItBroughtIsThere) {
  RequestDma port("port", machine_of(16), 2);
  port.socket.bind(memory_.socket);
  DmaPort::Rows rows{GetParam(), 0, nullptr, 0, 1, 6 * 16 - GetParam()};
  rows.settling = 2;
  test::run_body([&] { EXPECT_EQ(port.read_rows(rows, {}), 25U + 10); });
  EXPECT_EQ(cycles(), (std::vector<std::uint64_t>{0, 1, 12, 13, 24, 25}));
}

INSTANTIATE_TEST_SUITE_P(Begins, DmaSettlingTest, ::testing::Values(0U, 4U));

/// A row of 80 bytes whose pieces of four come in the cycles 80 to 99.
class RowPace final : public DmaPort::Pace {
 public:
  explicit RowPace(const hw::Machine& machine)
      : rows_(hw::ResultFlow(), {1, 1, 8, 4}, {}), queue_(machine) {
    rows_.begin_made(0, 80, 80);
  }
  std::optional<std::uint64_t> next(std::uint64_t address, std::uint64_t bytes) override {
    if (address >= known) return std::nullopt;
    return rows_.request(bytes, queue_, {});
  }
  void issued(std::uint64_t cycle, std::uint64_t address, std::uint64_t bytes) override {
    rows_.issued(cycle, address, bytes, queue_);
  }
  [[nodiscard]] std::uint64_t stalled() const { return rows_.free() - 100; }
  std::uint64_t known = 80;  ///< requests from this address on are not

 private:
  hw::ResultRows rows_;
  hw::StoreQueue queue_;
};

// Beats of four bytes, requests of 16: each issues when its own bytes are there, and the queue has
// room for two.
TEST_F(RequestDmaTest, WritesARowAsItComesAndStallsWhereItsQueueIsFull) {
  hw::Machine machine = machine_of(16);
  machine.bus.width_bytes = 4;
  RequestDma port("port", machine, 1);
  port.socket.bind(memory_.socket);
  test::run_body([&] {
    RowPace pace(machine);
    pace.known = 32;
    const DmaPort::Written some = port.write_row(0, nullptr, 5 * 16, 0, pace);
    EXPECT_EQ(some.bytes, 32U);
    EXPECT_EQ(some.done, 94U + 10);
    EXPECT_EQ(port.write_row(0, nullptr, 5 * 16, 32, pace).bytes, 32U) << "nothing is known";
    pace.known = 80;
    const DmaPort::Written row = port.write_row(0, nullptr, 5 * 16, 32, pace);
    EXPECT_EQ(row.bytes, 80U);
    EXPECT_EQ(row.done, 124U + 10) << "a slot every 10 cycles";
    // The last request's last beat finds room when the third one's, which issues in cycle 104, has
    // left in 108: it could have come in 99.
    EXPECT_EQ(pace.stalled(), 110U - 100);
  });
  EXPECT_EQ(cycles(), (std::vector<std::uint64_t>{84, 94, 104, 114, 124}));
}

TEST_F(RequestDmaTest, SplitsLongRowsIntoPieces) {
  hw::Machine machine = machine_of(64);
  machine.dma.row_bytes = 64;
  RequestDma port("port", machine, 16);
  port.socket.bind(memory_.socket);
  // Rows of 80 bytes as Gemmini moves them: 64 columns and 16, each on its own.
  test::run_body([&] { port.read_rows({16, 160, nullptr, 0, 2, 80}, {}); });
  const std::vector<std::pair<std::uint64_t, unsigned>> expected = {
      {16, 48}, {64, 16}, {80, 16}, {176, 16}, {192, 48}, {240, 16}};
  ASSERT_EQ(memory_.addresses.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(memory_.addresses[i], expected[i].first);
    EXPECT_EQ(memory_.lengths[i], expected[i].second);
  }
}

class DmaSlotsTest : public RequestDmaTest, public ::testing::WithParamInterface<hw::SlotOrder> {};

// The first request takes 20 cycles, the others 10.
TEST_P(DmaSlotsTest, ComeBackInOrderOfIssueOrAsTheyEnd) {
  hw::Machine machine = machine_of(16);
  machine.dma.slots = GetParam();
  memory_.slow_end = 16;
  RequestDma port("port", machine, 2);
  port.socket.bind(memory_.socket);
  test::run_body([&] { port.read(0, nullptr, 6 * 16); });
  const bool in_order = GetParam() == hw::SlotOrder::kIssue;
  EXPECT_EQ(cycles(), in_order ? (std::vector<std::uint64_t>{0, 1, 20, 21, 30, 31})
                               : (std::vector<std::uint64_t>{0, 1, 11, 20, 21, 30}));
}

INSTANTIATE_TEST_SUITE_P(Orders, DmaSlotsTest,
                         ::testing::Values(hw::SlotOrder::kIssue, hw::SlotOrder::kCompletion));

TEST_F(RequestDmaTest, TheWindowSpansReadsOfDifferentCommands) {
  RequestDma port("port", machine_of(16), 2);
  port.socket.bind(memory_.socket);
  test::run_body([&] {
    EXPECT_EQ(port.read(0, nullptr, 16), 10U);
    EXPECT_EQ(port.read(64, nullptr, 16), 11U);
    EXPECT_EQ(port.read(128, nullptr, 16), 20U) << "the first slot is free at 10";
  });
}

class DmaBandwidthTest : public RequestDmaTest, public ::testing::WithParamInterface<unsigned> {};

TEST_P(DmaBandwidthTest, IsTheWindowOverTheLatency) {
  constexpr std::uint64_t kWindows = 200;
  memory_.latency = from_ps(std::uint64_t{GetParam()} * 1000);
  RequestDma port("port", machine_of(64), 16);
  port.socket.bind(memory_.socket);
  test::run_body([&] {
    std::uint64_t done = 0;
    for (std::uint64_t i = 0; i < kWindows; ++i) done = port.read(0, nullptr, 1024);
    // 1024 bytes per latency; the requests of the last window leave one a cycle.
    EXPECT_EQ(done, kWindows * GetParam() + 15);
  });
}

INSTANTIATE_TEST_SUITE_P(Latencies, DmaBandwidthTest, ::testing::Values(16, 17, 50, 100, 333));

TEST_F(RequestDmaTest, AWriteIsDoneWhenItIsAcknowledged) {
  RequestDma port("port", machine_of(64), 16);
  port.socket.bind(memory_.socket);
  const std::vector<std::uint8_t> data(100, 0xab);
  test::run_body([&] { EXPECT_EQ(port.write(30, data.data(), data.size()), 2U + 10); });
  EXPECT_EQ(cycles(), (std::vector<std::uint64_t>{0, 1, 2})) << "34, 64 and 2 bytes";
  EXPECT_EQ(memory_.bytes[29], 30);
  EXPECT_EQ(memory_.bytes[30], 0xab);
  EXPECT_EQ(memory_.bytes[129], 0xab);
  EXPECT_EQ(memory_.bytes[130], 131);
}

TEST_F(RequestDmaTest, MovesEveryByteToItsPlace) {
  RequestDma port("port", machine_of(16), 3);
  port.socket.bind(memory_.socket);
  std::vector<std::uint8_t> data(101, 0);
  test::run_body([&] { port.read(55, data.data() + 1, 99); });
  EXPECT_EQ(data.front(), 0);
  EXPECT_EQ(data.back(), 0);
  for (std::size_t i = 0; i < 99; ++i) ASSERT_EQ(data[i + 1], memory_.bytes[55 + i]) << i;
}

TEST_F(RequestDmaTest, WaitsUntilItMayBegin) {
  RequestDma port("port", machine_of(16), 4);
  port.socket.bind(memory_.socket);
  test::run_body([&] {
    EXPECT_EQ(port.read(0, nullptr, 16, 7), 17U);
    EXPECT_EQ(port.read(0, nullptr, 16, 3), 18U) << "8 is the first cycle that is free";
    sc_core::wait(100, sc_core::SC_NS);
    EXPECT_EQ(port.read(0, nullptr, 16), 118U) << "not before now";
    EXPECT_EQ(port.read(0, nullptr, 0), 109U) << "nothing to move";
  });
}

TEST_F(RequestDmaTest, ReturnsWhenItsLastRequestHasIssued) {
  RequestDma port("port", machine_of(16), 1024);
  port.socket.bind(memory_.socket);
  test::run_body([&] {
    port.read(0, nullptr, 6 * 16);  // cycles 0 to 5
    EXPECT_EQ(sc_core::sc_time_stamp(), from_ps(5000));
    port.read(0, nullptr, 16);
    EXPECT_EQ(sc_core::sc_time_stamp(), from_ps(6000));
    port.synchronise();
    EXPECT_EQ(sc_core::sc_time_stamp(), from_ps(7000));
  });
  EXPECT_EQ(cycles(), (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST_F(RequestDmaTest, WaitsOnlyForThoseWhoAct) {
  RequestDma port("port", machine_of(16), 1024);
  port.socket.bind(memory_.socket);
  std::uint64_t seen = 0;
  sc_core::sc_spawn([&] {
    sc_core::wait(300, sc_core::SC_NS);
    seen = cycles().back();
  });
  test::run_body([&] {
    port.read(0, nullptr, 500 * 16);
    EXPECT_EQ(sc_core::sc_time_stamp(), from_ps(499000));
  });
  EXPECT_EQ(seen, 299U) << "what else happens in a cycle comes before its request";
  std::vector<std::uint64_t> expected(500);
  std::iota(expected.begin(), expected.end(), 0U);
  EXPECT_EQ(cycles(), expected);
  EXPECT_LT(sc_core::sc_delta_count(), 10U) << "waits in which nothing happens";
}

TEST_F(RequestDmaTest, IssuesAtEdgesOfItsOwnClock) {
  RequestDma port("port", machine_of(16, 333), 2);
  port.socket.bind(memory_.socket);
  test::run_body([&] {
    // Edges at floor(n x 3003.003 ps). 10 ns after edge 0 is between edges 3 and 4.
    EXPECT_EQ(port.read(0, nullptr, 3 * 16), 8U);
  });
  ASSERT_EQ(memory_.addresses.size(), 3U);
  EXPECT_EQ(to_ps(memory_.arrivals[0]), 0U);
  EXPECT_EQ(to_ps(memory_.arrivals[1]), 3003U);
  EXPECT_EQ(to_ps(memory_.arrivals[2]), 12012U);
}

TEST_F(RequestDmaTest, ReportsAnErrorOfTheMemory) {
  RequestDma port("port", machine_of(64), 4);
  port.socket.bind(memory_.socket);
  expect_report("/systole/dma");
  test::run_body([&] {
    EXPECT_THROW(port.read(8190, nullptr, 4), sc_core::sc_report);
    EXPECT_NO_THROW(port.read(8188, nullptr, 4));
  });
}

}  // namespace
}  // namespace systole::tlm_model
