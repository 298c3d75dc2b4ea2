#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hw/description/machine_file.h"
#include "hw/description/machine_rules.h"
#include "support/network/encoder_run.h"
#include "support/tlm/port_alone.h"
#include "support/tlm/systemc_test.h"

/// The same program on machines with less and less of one thing.
namespace systole::testbench {
namespace {

using test::Workload;

struct Knob {
  const char* name;
  std::vector<double> values;  ///< from the fastest to the slowest
  std::function<void(hw::Machine&, double)> set;
};

std::uint32_t integer(double value) { return static_cast<std::uint32_t>(value); }

/// All DRAM times longer, and its data bus slower, by a factor.
void slow_down(hw::Machine::Dram& dram, double factor) {
  for (double* time : {&dram.t_cl_ns, &dram.t_cwl_ns, &dram.t_rcd_ns, &dram.t_rp_ns, &dram.t_ras_ns,
                       &dram.t_rtp_ns, &dram.t_wr_ns, &dram.t_wtr_ns, &dram.t_ccd_l_ns,
                       &dram.t_rrd_s_ns, &dram.t_rrd_l_ns, &dram.t_faw_ns}) {
    *time *= factor;
  }
  dram.mega_transfers = integer(dram.mega_transfers / factor);
}

const std::vector<Knob>& knobs() {
  using M = hw::Machine;
  static const std::vector<Knob> all = {
      {"scratchpad ports", {4, 3, 2, 1}, [](M& m, double v) { m.scratchpad.ports = integer(v); }},
      {"accumulator ports", {4, 3, 2}, [](M& m, double v) { m.accumulator.ports = integer(v); }},
      {"accumulator memories",
       {4, 2, 1},
       [](M& m, double v) { m.accumulator.memories = integer(v); }},
      {"scratchpad banks",
       {16, 8, 4, 2, 1},
       [](M& m, double v) { m.scratchpad.banks = integer(v); }},
      {"accumulator banks", {8, 4, 2, 1}, [](M& m, double v) { m.accumulator.banks = integer(v); }},
      {"DRAM transfers",
       {6400, 3200, 1600, 800, 400, 200},
       [](M& m, double v) { m.dram.mega_transfers = integer(v); }},
      {"DRAM CL", {5, 10, 15, 20, 25}, [](M& m, double v) { m.dram.t_cl_ns = v; }},
      {"DRAM write recovery", {5, 10, 15, 20}, [](M& m, double v) { m.dram.t_wr_ns = v; }},
      {"DRAM controller", {0, 20, 40, 60, 80}, [](M& m, double v) { m.dram.controller_ns = v; }},
      {"DRAM channels", {4, 2, 1}, [](M& m, double v) { m.dram.channels = integer(v); }},
      {"DRAM", {1, 2, 3, 4}, [](M& m, double v) { slow_down(m.dram, v); }},
      {"bus width",
       {64, 32, 16, 8, 4, 2, 1},
       [](M& m, double v) { m.bus.width_bytes = integer(v); }},
      {"bus latency",
       {0, 5, 10, 15, 20, 25},
       [](M& m, double v) { m.bus.request_latency = m.bus.response_latency = integer(v); }},
      {"outstanding reads",
       {32, 16, 8, 4, 2, 1},
       [](M& m, double v) { m.dma.outstanding_reads = integer(v); }},
      {"outstanding writes",
       {32, 16, 8, 4, 2, 1},
       [](M& m, double v) { m.dma.outstanding_writes = integer(v); }},
      {"lanes", {64, 32, 16, 8, 4, 2, 1}, [](M& m, double v) { m.postop.lanes = integer(v); }},
      {"overlap",
       {2, 1, 0},
       [](M& m, double v) { m.array.overlap = static_cast<hw::ArrayOverlap>(integer(v)); }},
  };
  return all;
}

// Fewer ports or a slower memory delay some command, and delaying one of several that share a
// memory can help the whole: another request finds its row still open or the bus still free, or a
// load no longer takes the scratchpad bank from the matmul that everybody waits for. Such
// scheduling anomalies are real and small; longer queues prefetch more and have more of them, so
// queue lengths are not in the list. With one initiator there are none.
// Operators that run in turns share the memory more often: a layer of 19 tokens on `transformer`
// gains 3.5 % by a slower CL. One of the random machines gains about 7 % by a slower CL, a longer
// write recovery, or a longer way of the bus.
constexpr double kAnomalyOnPresets = 0.04;
constexpr double kAnomalyAnywhere = 0.065, kWorstAnomaly = 0.075;
constexpr std::size_t kMostMachines = 1;

class MonotonicTest : public test::SystemCTest {
 protected:
  /// The largest part of its time that less of something saves.
  static double worst_anomaly(const Workload& workload, const hw::Machine& base,
                              const mapper::Mapping& mapping, const Knob& knob) {
    std::uint64_t slowest = 0;
    double worst = 0;
    for (const double value : knob.values) {
      hw::Machine machine = base;
      knob.set(machine, value);
      if (!hw::machine_problems(machine).empty()) continue;
      const std::uint64_t cycles = workload.cycles(mapping, machine);
      slowest = std::max(slowest, cycles);
      worst = std::max(worst, 1 - static_cast<double>(cycles) / static_cast<double>(slowest));
    }
    return worst;
  }
};

TEST_F(MonotonicTest, LessIsNeverFasterForOneInitiator) {
  const std::vector<std::string> exact = {"DRAM transfers", "DRAM CL",     "DRAM controller",
                                          "bus width",      "bus latency", "outstanding reads"};
  for (const char* name : {"gemmini", "tiny"}) {
    for (const Knob& knob : knobs()) {
      if (std::count(exact.begin(), exact.end(), knob.name) == 0) continue;
      SCOPED_TRACE(std::string(name) + ", " + knob.name);
      std::uint64_t before = 0, first = 0;
      for (const double value : knob.values) {
        hw::Machine machine = hw::find_machine(name);
        machine.dram.t_refi_ns = 0;  // whether a run meets one more refresh is a matter of luck
        knob.set(machine, value);
        const std::uint64_t cycles = test::cycles_of_port_alone(machine, false);
        EXPECT_GE(cycles, before) << "at " << value;
        before = cycles;
        if (first == 0) first = cycles;
      }
      EXPECT_GT(before, first);
    }
  }
}

TEST_F(MonotonicTest, FewerWritesInFlightAreNeverFasterForOneInitiator) {
  std::uint64_t before = 0, first = 0;
  for (const std::uint32_t outstanding : {64U, 32U, 16U, 8U, 4U, 2U, 1U}) {
    hw::Machine machine = hw::find_machine("gemmini");
    machine.dram.t_refi_ns = 0;
    machine.dma.outstanding_writes = outstanding;
    const std::uint64_t cycles = test::cycles_of_port_alone(machine, true);
    EXPECT_GE(cycles, before) << outstanding;
    before = cycles;
    if (first == 0) first = cycles;
  }
  EXPECT_GT(before, 3 * first);
}

TEST_F(MonotonicTest, LessIsHardlyEverFasterOnRandomMachines) {
  const Workload workload = test::encoder_workload({1, 32, 2, 64, true}, 19, 1);
  test::Random random(7);
  std::vector<std::pair<hw::Machine, mapper::Mapping>> fits;
  for (int i = 0; i < 15; ++i) fits.push_back(test::random_fit(random, workload.graph));
  std::set<std::size_t> with_anomalies;
  std::string all;
  for (std::size_t i = 0; i < fits.size(); ++i) {
    const auto& [base, mapping] = fits[i];
    for (const Knob& knob : knobs()) {
      const double worst = worst_anomaly(workload, base, mapping, knob);
      EXPECT_LE(worst, kWorstAnomaly) << "machine " << i << ", " << knob.name;
      if (worst <= kAnomalyAnywhere) continue;
      with_anomalies.insert(i);
      all += std::to_string(i) + ", " + knob.name + ": " + std::to_string(worst) + "\n";
    }
  }
  EXPECT_LE(with_anomalies.size(), kMostMachines) << all;
}

TEST_F(MonotonicTest, LessIsHardlyEverFasterOnThePresets) {
  struct Case {
    const char* machine;
    Workload workload;
  };
  const Workload small = test::encoder_workload({1, 32, 2, 64, true}, 19, 1);
  const Workload large = test::encoder_workload({1, 128, 2, 512, true}, 64, 1);
  for (const Case& test : {Case{"gemmini", small},
                           {"gemmini", large},
                           {"transformer", small},
                           {"transformer", large},
                           {"tiny", small}}) {
    const hw::Machine base = hw::find_machine(test.machine);
    const mapper::Mapping mapping = mapper::map_graph(test.workload.graph, base);
    for (const Knob& knob : knobs()) {
      EXPECT_LE(worst_anomaly(test.workload, base, mapping, knob), kAnomalyOnPresets)
          << test.machine << ", " << knob.name;
    }
  }
}

TEST_F(MonotonicTest, MuchLessIsMuchSlower) {
  const Workload workload = test::encoder_workload({1, 128, 2, 512, true}, 64, 1);
  const hw::Machine base = hw::find_machine("transformer");
  const mapper::Mapping mapping = mapper::map_graph(workload.graph, base);
  for (const Knob& knob : knobs()) {
    const std::vector<std::string> large = {"DRAM transfers",    "bus width", "lanes",
                                            "outstanding reads", "overlap",   "DRAM"};
    if (std::count(large.begin(), large.end(), knob.name) == 0) continue;
    hw::Machine fast = base, slow = base;
    knob.set(fast, knob.values.front());
    knob.set(slow, knob.values.back());
    EXPECT_GT(workload.cycles(mapping, slow), workload.cycles(mapping, fast) * 3 / 2) << knob.name;
  }
}

}  // namespace
}  // namespace systole::testbench
