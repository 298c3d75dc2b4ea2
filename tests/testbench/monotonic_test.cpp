#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "hw/machine_file.h"
#include "hw/machine_rules.h"
#include "support/encoder_run.h"
#include "support/systemc_test.h"

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
      {"accumulator ports", {4, 3, 2, 1}, [](M& m, double v) { m.accumulator.ports = integer(v); }},
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

class MonotonicTest : public test::SystemCTest {};

// Delaying one request of several that share a memory can help: another one finds its row still
// open, or a load no longer takes the scratchpad bank from the matmul that everybody waits for.
// Such anomalies are real, and small; queue lengths have more of them (a longer queue prefetches
// more), so they are not in the list.
constexpr double kAnomaly = 0.01;

TEST_F(MonotonicTest, LessOfAnythingIsNotFaster) {
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
      SCOPED_TRACE(std::string(test.machine) + ", " + knob.name);
      std::uint64_t slowest = 0;
      for (const double value : knob.values) {
        hw::Machine machine = base;
        knob.set(machine, value);
        if (!hw::machine_problems(machine).empty()) continue;
        const std::uint64_t cycles = test.workload.cycles(mapping, machine);
        EXPECT_GE(static_cast<double>(cycles), static_cast<double>(slowest) * (1.0 - kAnomaly))
            << "at " << value;
        slowest = std::max(slowest, cycles);
      }
    }
  }
}

// Knobs that do nothing would pass the test above.
TEST_F(MonotonicTest, EveryKnobMatters) {
  const Workload workload = test::encoder_workload({1, 128, 2, 512, true}, 64, 1);
  const hw::Machine base = hw::find_machine("transformer");
  const mapper::Mapping mapping = mapper::map_graph(workload.graph, base);
  for (const Knob& knob : knobs()) {
    const std::string name = knob.name;
    // Two ports of an accumulator bank serve the array and the post-op unit without conflict, and
    // so does one: they work on different halves.
    if (name == "accumulator ports" || name == "accumulator banks") continue;
    if (name == "DRAM write recovery") continue;  // rows are rarely closed behind a write
    hw::Machine fast = base, slow = base;
    knob.set(fast, knob.values.front());
    knob.set(slow, knob.values.back());
    EXPECT_GT(workload.cycles(mapping, slow), workload.cycles(mapping, fast)) << name;
  }
}

}  // namespace
}  // namespace systole::testbench
