#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "Vring_router_4_checked.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "testbench/rtl/ring/ring_router_rtl.h"
#include "testbench/rtl/ring/router_pins.h"
#include "tests/rtl/ring/router_case.h"

namespace systole::testbench {
namespace {

constexpr std::uint32_t kRingCores = 4;
constexpr std::uint32_t kRingHops[] = {2, 1};  ///< both ways around, the longer half to the right

/// Four routers, and cores that send their parts of one vector after the other, each as soon as
/// they have all parts of the one before.
class RingOfRouters {
 public:
  using Part = std::vector<hw::Half>;
  using Vector = std::array<Part, kRingCores>;  ///< by core that sends

  /// A link stalls in `refused_per_mille` of the cycles.
  RingOfRouters(std::vector<Vector> vectors, unsigned refused_per_mille, std::uint64_t seed)
      : vectors_(std::move(vectors)), refused_per_mille_(refused_per_mille), random_(seed) {
    for (std::uint32_t i = 0; i < kRingCores; ++i) {
      cores_.push_back(std::make_unique<Core>(i));
      send(*cores_[i]);
    }
  }

  /// Returns the cycles until the last core has the last part; gives up after `limit`.
  std::uint64_t run(std::uint64_t limit) {
    std::uint64_t cycle = 0;
    while (!done() && cycle < limit && !testing::Test::HasFatalFailure()) {
      connect();
      for (const auto& core : cores_) take(*core);
      for (const auto& core : cores_) core->router.tick();
      ++cycle;
    }
    return cycle;
  }

  [[nodiscard]] bool done() const {
    for (const auto& core : cores_) {
      if (core->complete < vectors_.size()) return false;
    }
    return true;
  }

  [[nodiscard]] bool failed() const {
    for (const auto& core : cores_) {
      if (core->router.failed()) return true;
    }
    return false;
  }

 private:
  struct Core {
    explicit Core(std::uint32_t core) : number(core), router({true, "", core + 1}) {}

    std::uint32_t number;
    VerilatedDut<Vring_router_4_checked> router;
    std::array<std::deque<RouterFlit>, 2> own;
    std::array<Part, kRingCores> arriving;
    std::array<std::size_t, kRingCores> parts{};  ///< whole ones, by sender
    std::size_t complete = 0;                     ///< vectors
  };

  void send(Core& core) {
    if (core.complete == vectors_.size()) return;
    for (const RouterWay way : kRouterWays) {
      const auto w = static_cast<std::size_t>(way);
      for (const RouterFlit& flit :
           flits_of_packet(vectors_[core.complete][core.number], core.number, kRingHops[w])) {
        core.own[w].push_back(flit);
      }
    }
  }

  /// Settles all routers, with what their neighbours have for them. A flit goes over a link if the
  /// router after it is ready: what that says depends on nothing that happens in the cycle.
  void connect() {
    for (const auto& core : cores_) {
      for (const RouterWay way : kRouterWays) {
        const bool offered = !core->own[static_cast<std::size_t>(way)].empty();
        set_way_bit(core->router->own_valid_i, way, offered);
        if (offered)
          drive_own(*core->router, way, core->own[static_cast<std::size_t>(way)].front());
        const bool open = random_() % 1000 >= refused_per_mille_;
        set_way_bit(core->router->ready_i, way,
                    open && way_bit(neighbour(*core, way).router->ready_o, way));
      }
      core->router.settle();
    }
    for (const auto& core : cores_) {
      for (const RouterWay way : kRouterWays) {
        Core& next = neighbour(*core, way);
        const bool goes =
            way_bit(core->router->valid_o, way) && way_bit(core->router->ready_i, way);
        set_way_bit(next.router->valid_i, way, goes);
        if (goes) drive_link(*next.router, way, link_flit(*core->router, way));
      }
    }
    for (const auto& core : cores_) core->router.settle();
  }

  void take(Core& core) {
    for (const RouterWay way : kRouterWays) {
      if (way_bit(core.router->own_valid_i, way) && way_bit(core.router->own_ready_o, way)) {
        core.own[static_cast<std::size_t>(way)].pop_front();
      }
      if (way_bit(core.router->write_o, way)) {
        deliver(core, written_flit<kSmallRouterFlits>(*core.router, way));
      }
    }
  }

  void deliver(Core& core, const WrittenFlit& flit) {
    ASSERT_LT(flit.core, kRingCores);
    ASSERT_NE(flit.core, core.number);
    Part& part = core.arriving[flit.core];
    ASSERT_EQ(part.size(), flit.index * hw::kFlitHalves);
    part.insert(part.end(), flit.values.begin(), flit.values.end());
    if (!flit.last) return;
    Part expected = vectors_.at(core.parts[flit.core]++)[flit.core];
    expected.resize(part.size(), hw::kHalfZero);
    ASSERT_EQ(part, expected);
    part.clear();
    for (std::uint32_t other = 0; other < kRingCores; ++other) {
      if (other != core.number && core.parts[other] == core.complete) return;
    }
    ++core.complete;
    send(core);
  }

  Core& neighbour(const Core& core, RouterWay way) {
    return *cores_[(core.number + (way == RouterWay::kRight ? 1 : kRingCores - 1)) % kRingCores];
  }

  std::vector<Vector> vectors_;
  unsigned refused_per_mille_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Core>> cores_;
};

std::vector<RingOfRouters::Vector> random_ring_vectors(std::size_t count, std::mt19937_64& random) {
  std::vector<RingOfRouters::Vector> vectors(count);
  for (RingOfRouters::Vector& vector : vectors) {
    for (RingOfRouters::Part& part : vector) {
      part = random_part(1 + random() % (kSmallRouterFlits * hw::kFlitHalves), random);
    }
  }
  return vectors;
}

TEST(RingOfRouters, EveryPartGetsEverywhere) {
  std::mt19937_64 random(91);
  for (const unsigned refused : {0U, 200U, 700U}) {
    RingOfRouters ring(random_ring_vectors(40, random), refused, random());
    (void)ring.run(20'000);
    EXPECT_TRUE(ring.done()) << refused;
    EXPECT_FALSE(ring.failed());
  }
}

TEST(RingOfRouters, AVectorTakesTheCyclesOfItsLongestWay) {
  std::mt19937_64 random(92);
  for (std::uint64_t flits = 1; flits <= kSmallRouterFlits; ++flits) {
    RingOfRouters::Vector vector;
    for (auto& part : vector) part = random_part(flits * hw::kFlitHalves, random);
    RingOfRouters ring({vector}, 0, 1);
    constexpr std::uint64_t kRouter = RingRouterRtl::kCycles;
    const std::uint64_t own = flits;  // the link is the core's own until then
    const std::uint64_t begin = hw::forward_cycle(own - 1, own, kRouter);
    EXPECT_EQ(ring.run(1000), hw::delivery_cycle(begin + flits - 1, kRouter) + 1);
    EXPECT_TRUE(ring.done());
    EXPECT_FALSE(ring.failed());
  }
}

}  // namespace
}  // namespace systole::testbench
