#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "hw/description/machine_file.h"
#include "hw/ring/ring_map.h"
#include "support/tlm/systemc_test.h"
#include "tlm/ring/ring_host.h"
#include "tlm/ring/ring_system.h"

namespace systole::tlm_model::dfx {
namespace {

using hw::dfx::Collective;
using hw::dfx::Opcode;
using hw::dfx::Pass;

constexpr std::uint32_t kElements = 3072;

hw::Machine ring_of(std::uint32_t cores) {
  hw::Machine machine = hw::find_machine("dfx-ideal");
  machine.dfx.cores = cores;
  return machine;
}

class DfxRing : public test::SystemCTest {
 protected:
  /// One exchange of kElements among the cores, who begin with `value(core, element)`.
  template <typename Value>
  void exchange(const hw::Machine& machine, Value value) {
    const std::uint32_t cores = machine.dfx.cores;
    hw::dfx::Exchange exchange;
    for (std::uint32_t i = 0; i <= cores; ++i) exchange.first.push_back(kElements * i / cores);
    exchange.sums = machine.ring.collective == Collective::kAllReduce;
    pass_.exchanges = {exchange};
    pass_.instructions.resize(1);
    pass_.instructions[0].op = Opcode::kSync;
    std::vector<RingPlace> places(cores);
    for (RingPlace& place : places) place.register_elements = kElements;
    system_ = std::make_unique<RingSystem>("system", machine, std::move(places), true,
                                           [&, first = true](RingHost&) mutable {
                                             std::vector<const Pass*> next;
                                             if (first) next.assign(machine.dfx.cores, &pass_);
                                             first = false;
                                             return next;
                                           });
    for (std::uint32_t i = 0; i < cores; ++i) {
      const bool own = exchange.sums;
      const std::uint32_t begin = own ? 0 : exchange.first[i];
      const std::uint32_t end = own ? kElements : exchange.first[i + 1];
      for (std::uint32_t e = begin; e < end; ++e) {
        system_->core(i).vector_data()[e] = hw::to_half(value(i, e));
      }
    }
    sc_core::sc_start();
  }
  [[nodiscard]] std::uint64_t pass_ps() const {
    return system_->host.ends()[1] - system_->host.ends()[0];
  }
  /// Of four cores, but for clock edges. The host accesses four registers of each, one after the
  /// other, in part while others work.
  void expect_pass(double ns, double edges_ns) const {
    constexpr double kAccessNs = 5.0 * tlm_model::CoreRegisters::kAnswerCycles;
    const double pass = static_cast<double>(pass_ps()) / 1e3;
    EXPECT_GE(pass, ns + 8 * kAccessNs - edges_ns);
    EXPECT_LE(pass, ns + 16 * kAccessNs + edges_ns);
  }

  Pass pass_;
  std::unique_ptr<RingSystem> system_;
};

class DfxRingOf : public DfxRing, public testing::WithParamInterface<std::uint32_t> {};

TEST_P(DfxRingOf, GathersTheSameVectorEverywhere) {
  const std::uint32_t cores = GetParam();
  hw::Machine machine = ring_of(cores);
  machine.ring.directions = 1 + cores % 2;
  const auto value = [](std::uint32_t, std::uint32_t e) { return static_cast<float>(e % 2048); };
  exchange(machine, value);
  for (std::uint32_t i = 0; i < cores; ++i) {
    for (std::uint32_t e = 0; e < kElements; ++e) {
      ASSERT_EQ(hw::to_float(system_->core(i).vector_data()[e]), value(0, e)) << i << ' ' << e;
    }
    // Each part passes all links but one, in whichever direction.
    if (cores > 1 && kElements % cores == 0) {
      EXPECT_EQ(system_->link_bytes(i), 2 * kElements / cores * (cores - 1));
    }
  }
}

TEST_P(DfxRingOf, ReducesToTheSameSumsEverywhere) {
  const std::uint32_t cores = GetParam();
  hw::Machine machine = ring_of(cores);
  machine.ring.collective = Collective::kAllReduce;
  const auto value = [](std::uint32_t i, std::uint32_t e) {
    return static_cast<float>((e * (i + 1)) % 64);
  };
  exchange(machine, value);
  for (std::uint32_t e = 0; e < kElements; ++e) {
    float sum = 0;
    for (std::uint32_t i = 0; i < cores; ++i) sum += value(i, e);
    for (std::uint32_t i = 0; i < cores; ++i) {
      ASSERT_EQ(hw::to_float(system_->core(i).vector_data()[e]), sum) << i << ' ' << e;
    }
  }
  if (cores > 1 && kElements % (2 * cores) == 0) {
    EXPECT_EQ(system_->link_bytes(0), 2 * 2 * kElements / cores * (cores - 1));
  }
}

INSTANTIATE_TEST_SUITE_P(Cores, DfxRingOf, testing::Values(2, 3, 4, 8));

// A vector's own time on the line and a hop, as often as it is passed on, with routers between.
TEST_F(DfxRing, TakesSerialisationAndHops) {
  hw::Machine machine = ring_of(4);
  machine.ring.directions = 1;
  exchange(machine, [](std::uint32_t, std::uint32_t) { return 1.0F; });
  const double line_ns = 768 * 2 * 8 / (100.0 * 64 / 66), hop_ns = 300, router_ns = 4 * 5;
  expect_pass(3 * (line_ns + hop_ns + router_ns), 3 * 5.0);
}

TEST_F(DfxRing, TwoWaysAreShorter) {
  exchange(ring_of(4), [](std::uint32_t, std::uint32_t) { return 1.0F; });
  const double line_ns = 768 * 2 * 8 / (100.0 * 64 / 66), hop_ns = 300, router_ns = 4 * 5;
  expect_pass(2 * (line_ns + hop_ns + router_ns), 2 * 5.0);
}

// A core that cannot run its program ends the run.
TEST_F(DfxRing, TheHostStopsAtAFault) {
  expect_report("/systole/ring");
  const hw::Machine machine = ring_of(2);
  std::vector<RingPlace> places(2);
  for (RingPlace& place : places) place.register_elements = kElements;
  Pass beyond;
  beyond.instructions.resize(1);
  beyond.instructions[0].elements = kElements + 1;
  int asked = 0;
  RingSystem system("system", machine, std::move(places), false, [&](RingHost&) {
    std::vector<const Pass*> next;
    if (++asked < 3) next.assign(2, &beyond);
    return next;
  });
  sc_core::sc_start();
  EXPECT_TRUE(system.done());
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(system.fault().find("system.core0: pass: instruction 0: add: "), 0U) << system.fault();
}

// The host stops before it starts a core without one.
TEST_F(DfxRing, SaysThatAProgramDoesNotFit) {
  const hw::Machine machine = ring_of(2);
  std::vector<RingPlace> places(2);
  for (RingPlace& place : places) place.register_elements = kElements;
  places[1].program = hw::dfx::ddr_bytes(machine) - 100;
  pass_.instructions.resize(1);
  pass_.instructions[0].elements = 1;
  int asked = 0;
  RingSystem system("system", machine, std::move(places), false, [&](RingHost&) {
    ++asked;
    return std::vector<const Pass*>(2, &pass_);
  });
  sc_core::sc_start();
  EXPECT_TRUE(system.done());
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(system.fault().find("dram.mib: found 100 bytes after the tables of a core, expected "),
            0U)
      << system.fault();
  EXPECT_EQ(system.core(0).timing().instructions(hw::dfx::Unit::kVector), 0U);
}

}  // namespace
}  // namespace systole::tlm_model::dfx
