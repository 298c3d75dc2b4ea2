#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <random>
#include <utility>
#include <vector>

#include "Vring_router_4_checked.h"
#include "testbench/rtl/drive/back_pressure.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "testbench/rtl/ring/ring_router_rtl.h"
#include "testbench/rtl/ring/router_pins.h"
#include "tests/rtl/drive/unit_test.h"
#include "tests/rtl/ring/router_case.h"

namespace systole::testbench {
namespace {

constexpr std::uint64_t kRouterCycles = RingRouterRtl::kCycles;
const RtlOptions kCheckedRouter{true, "", 9};
using RouterDut = VerilatedDut<Vring_router_4_checked>;

bool operator==(const RouterFlit& a, const RouterFlit& b) {
  return a.values == b.values && a.core == b.core && a.hops == b.hops && a.last == b.last;
}
bool operator==(const WrittenFlit& a, const WrittenFlit& b) {
  return a.values == b.values && a.core == b.core && a.index == b.index && a.last == b.last;
}

/// What one way has to do by the contract, cycle by cycle, beside the pins of a router that random
/// packets pass through.
class WayCheck {
 public:
  WayCheck(RouterDut& dut, RouterWay way, const BackPressure& pressure, std::uint64_t seed)
      : dut_(dut), way_(way), random_(seed), injector_(pressure) {}

  /// Before settle().
  void drive(std::uint32_t own_core) {
    if (incoming_.empty()) incoming_ = packet(static_cast<std::uint32_t>(random_() % 64));
    if (sending_.empty()) sending_ = packet(own_core);
    in_.offer(true, &injector_, [&] { drive_link(*dut_, way_, incoming_.front()); });
    own_.offer(true, &injector_, [&] { drive_own(*dut_, way_, sending_.front()); });
    set_way_bit(dut_->valid_i, way_, in_.offered());
    set_way_bit(dut_->own_valid_i, way_, own_.offered());
    set_way_bit(dut_->ready_i, way_, !injector_.refuses());
  }

  /// Between settle() and tick().
  void check(std::uint64_t cycle) {
    const bool ready = way_bit(dut_->ready_i, way_);
    const bool room = buffered_ < 2 * kSmallRouterFlits;
    ASSERT_EQ(way_bit(dut_->ready_o, way_), room);
    full_ += room ? 0 : 1;
    check_delivery(cycle);
    const bool passes =
        !own_packet_ && !waiting_.empty() &&
        hw::forward_cycle(waiting_.front().last_arrival, link_free_, kRouterCycles) <= cycle;
    const bool own = !passes && own_.offered();
    ASSERT_EQ(way_bit(dut_->valid_o, way_), passes || own);
    if (own_.offered()) {
      ASSERT_EQ(way_bit(dut_->own_ready_o, way_), own && ready);
    }
    if (passes) {
      check_passing(cycle, ready);
    } else if (own) {
      ASSERT_TRUE(link_flit(*dut_, way_) == sending_.front());
      own_packet_ = !(ready && sending_.front().last);
      if (own_packet_ || ready) link_free_ = cycle + 1;
    }
    if (own_.take(own && ready)) sending_.pop_front();
    if (in_.take(room)) arrive(cycle);
  }

  [[nodiscard]] std::uint64_t forwarded() const { return forwarded_; }
  [[nodiscard]] std::uint64_t full() const { return full_; }

 private:
  struct Waiting {
    std::uint64_t last_arrival;
    std::deque<RouterFlit> flits;
  };

  std::deque<RouterFlit> packet(std::uint32_t core) {
    const std::size_t size = 1 + random_() % (kSmallRouterFlits * hw::kFlitHalves);
    const std::vector<RouterFlit> flits = flits_of_packet(
        random_part(size, random_), core, 1 + static_cast<std::uint32_t>(random_() % 5));
    return {flits.begin(), flits.end()};
  }

  void arrive(std::uint64_t cycle) {
    RouterFlit flit = incoming_.front();
    incoming_.pop_front();
    deliveries_.emplace_back(hw::delivery_cycle(cycle, kRouterCycles),
                             WrittenFlit{flit.values, flit.core, index_, flit.last});
    index_ = flit.last ? 0 : index_ + 1;
    if (flit.hops == 1) return;
    --flit.hops;
    ++buffered_;
    const bool last = flit.last;
    arrived_.push_back(std::move(flit));
    if (last) waiting_.push_back({cycle, std::move(arrived_)});
    if (last) arrived_.clear();
  }

  void check_delivery(std::uint64_t cycle) {
    const bool due = !deliveries_.empty() && deliveries_.front().first == cycle;
    ASSERT_EQ(way_bit(dut_->write_o, way_), due);
    if (!due) return;
    ASSERT_TRUE(written_flit<kSmallRouterFlits>(*dut_, way_) == deliveries_.front().second);
    deliveries_.pop_front();
  }

  void check_passing(std::uint64_t cycle, bool ready) {
    Waiting& packet = waiting_.front();
    ASSERT_TRUE(link_flit(*dut_, way_) == packet.flits.front());
    if (!ready) return;
    packet.flits.pop_front();
    --buffered_;
    ++forwarded_;
    if (!packet.flits.empty()) return;
    waiting_.pop_front();
    link_free_ = cycle + 1;
  }

  RouterDut& dut_;
  RouterWay way_;
  std::mt19937_64 random_;
  BackPressureInjector injector_;
  OfferedBeat in_, own_;
  std::deque<RouterFlit> incoming_, sending_, arrived_;
  std::deque<std::pair<std::uint64_t, WrittenFlit>> deliveries_;
  std::deque<Waiting> waiting_;
  std::uint32_t index_ = 0;
  std::size_t buffered_ = 0;
  bool own_packet_ = false;  ///< on the link
  std::uint64_t link_free_ = 0;
  std::uint64_t forwarded_ = 0;  ///< flits
  std::uint64_t full_ = 0;       ///< cycles without room
};

TEST(RingRouter, EveryCycleOfBothWaysIsAsTheContractSays) {
  std::mt19937_64 random(81);
  std::uint64_t forwarded = 0;
  std::uint64_t full = 0;
  for (int round = 0; round < 40; ++round) {
    RouterDut dut(kCheckedRouter);
    const auto own_core = static_cast<std::uint32_t>(random() % 64);
    std::vector<WayCheck> ways;
    for (const RouterWay way : kRouterWays) {
      const BackPressure pressure = round == 0 ? BackPressure{} : random_pressure(random);
      ways.emplace_back(dut, way, pressure, random());
    }
    for (std::uint64_t cycle = 0; cycle < 500; ++cycle) {
      for (WayCheck& way : ways) way.drive(own_core);
      dut.settle();
      for (WayCheck& way : ways) {
        way.check(cycle);
        if (HasFatalFailure()) FAIL() << "round " << round << ", cycle " << cycle;
      }
      dut.tick();
    }
    EXPECT_FALSE(dut.failed());
    for (const WayCheck& way : ways) {
      forwarded += way.forwarded();
      full += way.full();
    }
  }
  EXPECT_GT(forwarded, 4000U);
  EXPECT_GT(full, 100U);
}

void expect_routed(RingRouterRtl& router, std::size_t size, std::uint32_t hops,
                   const BackPressure& pressure, std::mt19937_64& random) {
  const std::vector<hw::Half> values = random_part(size, random);
  const auto core = static_cast<std::uint32_t>(random() % RingRouterRtl::kMaxCores);
  const RingRouterRtl::Run run = router.route(values, core, hops, random() % 2 == 0, pressure);
  ASSERT_EQ(run.packet.delivered, values);
  ASSERT_EQ(run.packet.forwarded, hops == 1 ? std::vector<hw::Half>{} : values);
  ASSERT_EQ(run.packet.hops, hops - 1);
  ASSERT_EQ(run.packet.cycles,
            hw::route_cycles(hw::flits_of(size), hops, kRouterCycles) + run.stalled);
}

TEST(RingRouter, PacketsOfEveryLengthTakeTheCyclesOfTheContract) {
  std::mt19937_64 random(82);
  const auto router = make_ring_router();
  for (std::size_t flits = 1; flits <= hw::kMaxPacketFlits; ++flits) {
    const std::size_t padding = flits % 2 == 0 ? random() % hw::kFlitHalves : 0;
    const std::uint32_t hops = 1 + static_cast<std::uint32_t>(flits % 3 == 0 ? 0 : 1 + flits % 62);
    ASSERT_NO_FATAL_FAILURE(
        expect_routed(*router, flits * hw::kFlitHalves - padding, hops, {}, random))
        << flits;
  }
}

TEST(RingRouter, BackPressureCostsItsOwnCyclesAlone) {
  std::mt19937_64 random(83);
  const auto router = make_ring_router(kCheckedRouter);
  for (int i = 0; i < 60; ++i) {
    const std::size_t size = 1 + random() % 400;
    const std::uint32_t hops = i % 4 == 0 ? 1 : 2;
    ASSERT_NO_FATAL_FAILURE(expect_routed(*router, size, hops, random_pressure(random), random));
  }
  EXPECT_FALSE(router->failed());
}

TEST(RingRouter, WhatIsNoPacketIsRefused) {
  const auto router = make_ring_router();
  const std::vector<hw::Half> one(1);
  const std::vector<hw::Half> long_one(hw::kMaxPacketFlits * hw::kFlitHalves + 1);
  EXPECT_THROW((void)router->route({}, 0, 1, true), std::invalid_argument);
  EXPECT_THROW((void)router->route(long_one, 0, 1, true), std::invalid_argument);
  EXPECT_THROW((void)router->route(one, 64, 1, true), std::invalid_argument);
  EXPECT_THROW((void)router->route(one, 0, 0, true), std::invalid_argument);
  EXPECT_THROW((void)router->route(one, 0, 64, true), std::invalid_argument);
}

}  // namespace
}  // namespace systole::testbench
