#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "hw/host/host_cycles.h"
#include "support/network/vit_run.h"
#include "testbench/run/class_cycles.h"

/// The baseline machine, whose host computes what is no matmul.
namespace systole::testbench {
namespace {

using test::VitRun;

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
    if (command.opcode != hw::Opcode::kHost) continue;
    const hw::HostFunction& function = run_.mapping.program.host_functions[command.chain];
    cycles += hw::host_cycles(function, command.m, command.n, run_.machine.host).total();
    elements += std::uint64_t{command.m} * command.n;
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
  // What comes before the first dispatch, and the end, are in nobody's share.
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

}  // namespace
}  // namespace systole::testbench
