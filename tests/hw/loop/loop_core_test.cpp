#include "hw/loop/loop_core.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include "base/round.h"
#include "hw/memory/fixed_memory.h"

namespace systole::hw::loop {
namespace {

class OneLatency final : public Memory {
 public:
  OneLatency(std::uint32_t latency, std::uint32_t beat_cycles) : beat_cycles_(beat_cycles) {
    params_.latency = latency;
    params_.read_beat_cycles = beat_cycles;
    memory_.emplace(params_, 16);
  }
  std::uint64_t send(const Request& request) override {
    return memory_->accept(request.cycle, request.write, request.address, request.bytes).last;
  }
  [[nodiscard]] std::uint32_t beat_cycles() const override { return beat_cycles_; }

 private:
  Machine::Memory params_;
  std::optional<FixedMemory> memory_;
  std::uint32_t beat_cycles_;
};

struct Product {
  std::uint32_t m, n, k;
  bool bias = false, sums = false;
  std::uint32_t latency = 40, beat_cycles = 1, gap = 4;
};

/// The loops of tiles of at most 5 x 5 x 48 blocks; operands begin at multiples of a page.
std::vector<LoopCall> calls_of(const Product& p) {
  constexpr std::uint64_t kPage = 4096;
  constexpr std::uint32_t kTile = 5 * 16, kDepth = 48 * 16;
  const std::uint64_t a = kPage, b = round_up(a + std::uint64_t{p.m} * p.k, kPage),
                      d = round_up(b + std::uint64_t{p.k} * p.n, kPage),
                      c = round_up(d + std::uint64_t{p.m} * p.n * 4, kPage);
  const std::uint32_t element = p.sums ? 4 : 1;
  std::vector<LoopCall> calls;
  for (std::uint32_t row = 0; row < p.m; row += kTile) {
    for (std::uint32_t col = 0; col < p.n; col += kTile) {
      for (std::uint32_t k0 = 0; k0 < p.k; k0 += kDepth) {
        const std::uint32_t m = std::min(kTile, p.m - row), n = std::min(kTile, p.n - col),
                            k = std::min(kDepth, p.k - k0);
        LoopCall call;
        call.m = narrow(ceil_div(m, 16));
        call.n = narrow(ceil_div(n, 16));
        call.k = narrow(ceil_div(k, 16));
        call.m_pad = call.m * 16 - m;
        call.n_pad = call.n * 16 - n;
        call.k_pad = call.k * 16 - k;
        call.a = a + std::uint64_t{row} * p.k + k0;
        call.b = b + std::uint64_t{k0} * p.n + col;
        call.d = p.bias && k0 == 0 ? d + (std::uint64_t{row} * p.n + col) * 4 : 0;
        call.c = k0 + k == p.k ? c + (std::uint64_t{row} * p.n + col) * element : 0;
        call.a_pitch = p.k;
        call.b_pitch = p.n;
        call.d_pitch = p.n * 4;
        call.c_pitch = p.n * element;
        call.c_bytes = element;
        call.accumulate = p.bias || k0 != 0;
        calls.push_back(call);
      }
    }
  }
  return calls;
}

struct Outcome {
  std::uint64_t cycles = 0;
  MemoryPort::Counts moved;
  ExecutePath::Counts array;
};

Outcome run(const Product& product) {
  Machine machine;
  machine.unroller.loops = 2;
  machine.unroller.command_cycles = product.gap;
  OneLatency memory(product.latency, product.beat_cycles);
  LoopCore core(machine, memory);
  core.begin_call();
  for (const LoopCall& call : calls_of(product)) core.push(call);
  while (core.busy() && core.cycle() < 10'000'000) core.step();
  EXPECT_FALSE(core.busy()) << "it hangs";
  return {core.cycle(), core.port().counts(), core.execute().counts()};
}

TEST(LargestPacket, MovesMostOfTheNextBytes) {
  const PathShape shape;
  const auto packet = [&](std::uint64_t address, std::uint32_t left) {
    const Packet p = largest_packet(shape, address, left);
    return std::make_tuple(p.size, p.shift, p.bytes);
  };
  EXPECT_EQ(packet(0, 64), std::make_tuple(64U, 0U, 64U));
  EXPECT_EQ(packet(0, 16), std::make_tuple(16U, 0U, 16U));
  EXPECT_EQ(packet(16, 64), std::make_tuple(64U, 16U, 48U));
  EXPECT_EQ(packet(36, 64), std::make_tuple(32U, 4U, 28U));  // 64 bytes would bring no more
  EXPECT_EQ(packet(60, 64), std::make_tuple(16U, 12U, 4U));
  EXPECT_EQ(packet(8, 16), std::make_tuple(32U, 8U, 16U));
  EXPECT_EQ(packet(40, 20), std::make_tuple(32U, 8U, 20U));
}

TEST(ReservationStation, HoldsACommandUntilWhatItTouchesHasEnded) {
  ReservationStation station({2, 2, 2});
  Command load;
  load.kind = Kind::kLoad;
  load.rows = load.cols = 16;
  load.row = 32;
  Command compute;
  compute.kind = Kind::kCompute;
  compute.rows = 16;
  compute.row = 47;  // the load's last row
  station.end_cycle(&load, {}, {});
  station.end_cycle(&compute, {}, {});
  ASSERT_NE(station.ready(kLoadClass), nullptr);
  EXPECT_EQ(station.ready(kComputeClass), nullptr);
  station.end_cycle(nullptr, {}, {true, false, false});
  EXPECT_EQ(station.ready(kLoadClass), nullptr) << "it has issued";
  EXPECT_EQ(station.ready(kComputeClass), nullptr) << "issued is not ended";
  station.end_cycle(nullptr, {true, kLoadClass, 0}, {});
  EXPECT_NE(station.ready(kComputeClass), nullptr);
  compute.row = 48;  // beyond the load
  station.end_cycle(&compute, {}, {false, true, false});
  EXPECT_NE(station.ready(kComputeClass), nullptr);
}

TEST(ReservationStation, IsFullUntilACommandHasEnded) {
  ReservationStation station({1, 1, 1});
  Command load;
  load.kind = Kind::kLoad;
  load.rows = load.cols = 16;
  EXPECT_TRUE(station.has_room(load));
  station.end_cycle(&load, {}, {});
  EXPECT_FALSE(station.has_room(load));
  station.end_cycle(nullptr, {}, {true, false, false});
  EXPECT_FALSE(station.has_room(load)) << "an issued command keeps its entry";
  station.end_cycle(nullptr, {true, kLoadClass, 0}, {});
  EXPECT_TRUE(station.has_room(load));
}

// Of our own runs: any change of a cycle shows. The comparison with RTL is GemminiRtl.
TEST(LoopCore, KeepsItsCycles) {
  const auto cycles = [](const Product& product) { return run(product).cycles; };
  EXPECT_EQ(cycles({16, 16, 16}), 320U);
  EXPECT_EQ(cycles({48, 80, 96}), 2779U);
  EXPECT_EQ(cycles({50, 90, 70, true, false, 20}), 4651U);
  EXPECT_EQ(cycles({90, 33, 129, false, true, 80, 2}), 6837U);
  EXPECT_EQ(cycles({1, 100, 1000}), 15776U);
}

TEST(LoopCore, WaitsForTenCommandsBeforeTheFirstLoad) {
  const Product fast{64, 64, 64, false, false, 40, 1, 1};
  Product slow = fast;
  slow.gap = 101;
  EXPECT_EQ(run(slow).cycles - run(fast).cycles, 10 * 100U);
}

TEST(LoopCore, RequestsDependOnTheShapeAlone) {
  const MemoryPort::Counts moved = run({100, 100, 100}).moved;
  EXPECT_EQ(moved.written_bytes, 10000U);
  for (const auto& [latency, beat, gap] :
       {std::tuple{7U, 1U, 1U}, std::tuple{90U, 3U, 4U}, std::tuple{33U, 1U, 50U}}) {
    const MemoryPort::Counts other = run({100, 100, 100, false, false, latency, beat, gap}).moved;
    EXPECT_EQ(other.reads, moved.reads);
    EXPECT_EQ(other.read_bytes, moved.read_bytes);
    EXPECT_EQ(other.writes, moved.writes);
  }
}

TEST(LoopCore, IsNeverFasterThanItsArrayItsPortAndItsLatency) {
  std::mt19937 random(11);
  const auto pick = [&random](std::uint32_t most) {
    return static_cast<std::uint32_t>(1 + random() % most);
  };
  for (int i = 0; i < 300; ++i) {
    Product p{pick(150), pick(150), pick(250)};
    p.bias = pick(3) == 1;
    p.sums = pick(3) == 1;
    p.latency = pick(100);
    p.beat_cycles = pick(3);
    SCOPED_TRACE(testing::Message() << p.m << "x" << p.n << "x" << p.k << " latency " << p.latency
                                    << " beat " << p.beat_cycles);
    const Outcome outcome = run(p);
    const std::uint64_t beats = outcome.moved.read_bytes / 16 + outcome.moved.writes;
    EXPECT_GE(outcome.cycles * 256, std::uint64_t{p.m} * p.n * p.k);
    EXPECT_GE(outcome.cycles, outcome.array.rows);
    EXPECT_GE(outcome.cycles, beats * p.beat_cycles);
    EXPECT_GE(outcome.cycles, 2 * p.latency);
    EXPECT_GE(outcome.moved.read_bytes, std::uint64_t{p.m} * p.k + std::uint64_t{p.k} * p.n);
    EXPECT_EQ(outcome.moved.written_bytes, std::uint64_t{p.m} * p.n * (p.sums ? 4 : 1));
  }
}

}  // namespace
}  // namespace systole::hw::loop
