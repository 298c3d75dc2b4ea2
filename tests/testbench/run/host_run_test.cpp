#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "hw/host/host_cycles.h"
#include "support/network/vit_run.h"
#include "support/tlm/systemc_test.h"
#include "testbench/run/class_cycles.h"
#include "testbench/run/machine_run.h"
#include "tlm/system.h"

namespace systole::testbench {
namespace {

using test::VitRun;

// The baseline machine, whose host computes what is no matmul.

class HostRun : public testing::Test {
 protected:
  [[nodiscard]] SimulationResult timed() const {
    SimulationOptions options;
    options.functional = false;
    return run_.simulate(options);
  }
  static std::uint64_t host(const SimulationResult& result, const std::string& name) {
    return VitRun::counter(result, "host", name);
  }
  /// Of all operators, conversions included.
  static std::uint64_t computed(const SimulationResult& result) {
    std::uint64_t sum = host(result, "convert_cycles");
    for (const char* op : {"softmax", "gelu", "layernorm", "add"}) {
      sum += host(result, std::string(op) + "_cycles");
    }
    return sum;
  }

  VitRun run_{"gemmini", 2};
};

TEST_F(HostRun, ComputesWhatTheReferenceDoesInCyclesThatNeedNoValues) {
  SimulationOptions options;
  options.check = true;
  const SimulationResult result = run_.simulate(options);
  EXPECT_EQ(result.check.mismatches, 0U) << result.check.first;
  EXPECT_EQ(result.check.operators, 2 * run_.mapping.program.operators.size());
  EXPECT_EQ(result.cycles, timed().cycles);
}

TEST_F(HostRun, TimeIsWorkByContractWaitsOrNothingToDo) {
  const SimulationResult result = timed();
  std::uint64_t cycles = 0, calls = 0, elements = 0;
  for (const hw::Command& command : run_.mapping.program.commands) {
    const auto* const call = command.as<hw::cmd::HostCall>();
    if (call == nullptr) continue;
    const hw::HostFunction& function = run_.mapping.program.host_functions[call->function];
    cycles += hw::host_cycles(function, call->m, call->n, run_.machine.host).total();
    elements += std::uint64_t{call->m} * call->n;
    ++calls;
  }
  EXPECT_GT(calls, 0U);
  EXPECT_EQ(host(result, "busy"), 2 * cycles);
  EXPECT_EQ(computed(result), 2 * cycles);
  EXPECT_EQ(host(result, "calls"), 2 * calls);
  EXPECT_EQ(host(result, "elements"), 2 * elements);
  EXPECT_EQ(result.events.host_cycles, 2 * cycles);
  EXPECT_EQ(result.events.bus_bytes,
            result.traffic.read_bytes + result.traffic.written_bytes + host(result, "bytes"));
  EXPECT_GT(host(result, "wait_cycles"), 0U);
  EXPECT_EQ(host(result, "stalled.memory"), host(result, "wait_cycles"))
      << "inputs and outputs do not count";
  EXPECT_EQ(host(result, "busy") + host(result, "stalled.memory") + host(result, "stalled.core") +
                host(result, "idle"),
            host(result, "total"));
}

TEST_F(HostRun, ClassesAreTheWholeInference) {
  const VitRun one("gemmini", 1);
  const SimulationResult result = one.simulate({});
  const auto classed = [&](TimeClass kind) { return result.classes.of(kind); };
  EXPECT_EQ(classed(TimeClass::kSoftmax), host(result, "softmax_cycles"));
  EXPECT_EQ(classed(TimeClass::kGelu), host(result, "gelu_cycles"));
  EXPECT_EQ(classed(TimeClass::kLayerNorm), host(result, "layernorm_cycles"));
  EXPECT_EQ(classed(TimeClass::kResidual), host(result, "add_cycles"));
  EXPECT_EQ(classed(TimeClass::kConvert), host(result, "convert_cycles"));
  const std::uint64_t waits =
      VitRun::counter(result, "command_processor", "stalled.host_operator") - host(result, "busy");
  EXPECT_EQ(classed(TimeClass::kHostWait), waits);
  // What comes before the first dispatch, and the end, are in no operator's share.
  EXPECT_NEAR(result.classes.total(), static_cast<double>(result.cycles.front()),
              one.machine.core.call_cycles + 300);
}

TEST_F(HostRun, MoreLinesInFlightLeaveLessToWaitFor) {
  const SimulationResult one = timed();
  run_.machine.host.outstanding = 8;
  const SimulationResult eight = timed();
  EXPECT_EQ(host(one, "busy"), host(eight, "busy"));
  EXPECT_EQ(host(one, "requests"), host(eight, "requests"));
  EXPECT_GT(host(one, "wait_cycles"), 2 * host(eight, "wait_cycles"));
}

TEST_F(HostRun, ASlowerHostTakesTheSameCyclesOfItsOwn) {
  const SimulationResult fast = timed();
  run_.machine.host.clock_mhz = 500;
  const SimulationResult slow = timed();
  EXPECT_EQ(host(fast, "busy"), host(slow, "busy"));
  // At half the clock an inference takes its share of the work once more.
  const double work = static_cast<double>(host(fast, "busy")) / 2;
  EXPECT_NEAR(static_cast<double>(slow.cycles.front() - fast.cycles.front()), work, 0.01 * work);
  EXPECT_LT(host(slow, "wait_cycles"), host(fast, "wait_cycles")) << "memory is as fast as it was";
}

TEST_F(HostRun, TheCoreAndTheHostAreNeverAtWorkTogether) {
  std::uint64_t latest = 0, fence = 0, early = 0;
  SimulationOptions options;
  options.functional = false;
  options.observer = [&](const tlm_model::CommandTrace& trace) {
    // In the order of completion: everything before a host command is over.
    if (trace.unit == hw::Unit::kHost) {
      early += trace.started < latest ? 1 : 0;
      fence = trace.completed;
    } else {
      early += trace.started < fence ? 1 : 0;
    }
    latest = std::max(latest, trace.completed);
  };
  static_cast<void>(run_.simulate(options));
  EXPECT_GT(fence, 0U);
  EXPECT_EQ(early, 0U);
}

// Networks on machines with an L2 cache.

class L2RunTest : public test::SystemCTest {
 protected:
  static constexpr std::size_t kImages = 3;

  SimulationResult run(std::uint32_t kib, bool functional = true) {
    vit_.machine.l2.kib = kib;
    SimulationOptions options;
    options.functional = functional;
    options.check = true;
    return vit_.simulate(options);
  }
  static std::uint64_t lines(const SimulationResult& result) {
    return VitRun::counter(result, "l2", "fills") + VitRun::counter(result, "l2", "write_backs");
  }

  VitRun vit_{"transformer", kImages};
};

TEST_F(L2RunTest, NoSizeChangesABitOrDependsOnValues) {
  for (const std::uint32_t kib : {1U, 16U, 256U}) {
    const SimulationResult result = run(kib);
    EXPECT_EQ(result.check.mismatches, 0U) << kib << ": " << result.check.first;
    EXPECT_GT(result.check.bytes, 0U);
    EXPECT_EQ(run(kib, false).cycles, result.cycles) << kib;
  }
}

TEST_F(L2RunTest, ACacheThatHoldsEverythingReadsEachLineOnce) {
  const SimulationResult result = run(4096);
  EXPECT_LE(VitRun::counter(result, "l2", "fills"), vit_.mapping.dram_bytes / 64 + 1);
  EXPECT_EQ(VitRun::counter(result, "l2", "write_backs"), 0U);
  EXPECT_LT(result.cycles[1], result.cycles[0]) << "the weights are there";
  EXPECT_LT(result.cycles[1], run(0).cycles[1]);
}

TEST_F(L2RunTest, MemoryAndEnergyCountWhatPassesTheCache) {
  const SimulationResult none = run(0);
  const SimulationResult result = run(64);
  EXPECT_EQ(result.events.dram_bytes, 64 * lines(result));
  EXPECT_EQ(VitRun::counter(result, "dram", "read_bytes") +
                VitRun::counter(result, "dram", "written_bytes"),
            64 * lines(result));
  EXPECT_EQ(none.events.l2_bytes, 0U);
  EXPECT_GT(result.events.l2_bytes, none.events.dram_bytes) << "all of it, and fills";
  EXPECT_GT(lines(result), lines(run(4096)));
}

class MachineRunTest : public test::SystemCTest {
 protected:
  MachineRunTest()
      : system_("system", machine_, tlm_model::make_models(machine_), 0, image_, functions_,
                false) {}

  const hw::Machine machine_ = hw::find_machine("tiny");
  const hw::MemoryImage image_;
  const std::vector<hw::HostFunction> functions_;
  tlm_model::System system_;
};

TEST_F(MachineRunTest, EndsWithTheWorkOfTheHost) {
  EXPECT_FALSE(system_.done());
  const MachineRun run = run_machine(system_);
  EXPECT_TRUE(system_.done());
  EXPECT_EQ(run.blocks.size(), 6U);
  EXPECT_GT(run.kernel_events, 0U);
  EXPECT_GT(run.wall_seconds, 0.0);
}

TEST_F(MachineRunTest, ADeadlockIsAnError) {
  struct Stuck {
    [[nodiscard]] static bool done() { return false; }
    [[nodiscard]] static std::vector<hw::BlockReport> reports() { return {}; }
  } machine;
  try {
    static_cast<void>(run_machine(machine));
    FAIL() << "expected an error";
  } catch (const std::logic_error& error) {
    EXPECT_NE(std::string(error.what()).find("deadlock"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace systole::testbench
