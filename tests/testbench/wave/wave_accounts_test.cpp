/// What a waveform shows against the statistics of the same run.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/accounting.h"
#include "hw/core/bank_words.h"
#include "hw/description/machine_file.h"
#include "mapper/mapping.h"
#include "support/paths.h"
#include "support/report_values.h"
#include "support/temp_directory.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/systemc_test.h"
#include "support/tlm/vcd_reader.h"
#include "testbench/network/networks.h"
#include "testbench/run/simulation.h"
#include "testbench/wave/wave_signals.h"
#include "tlm/bus/bus_transaction.h"
#include "tlm/common/time.h"
#include "tlm/common/wave_states.h"
#include "tlm/core/core.h"

namespace systole::testbench {
namespace {

using tlm_model::wave_state;

struct Case {
  std::string name, machine;
  std::vector<std::string> settings;
};

std::ostream& operator<<(std::ostream& os, const Case& c) { return os << c.name; }

/// A small network on a machine, recorded.
class WaveAccounts : public test::SystemCTest, public testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    machine = hw::find_machine(GetParam().machine);
    for (const std::string& setting : GetParam().settings) hw::set_key(machine, setting);
    const Network network = load_network("vit17", machine);
    const mapper::Mapping mapping = mapper::map_graph(network.graph, machine);
    const auto simulate_once = [&](const SimulationOptions& options) {
      test::fresh_kernel();
      return simulate(network.graph, mapping, machine, tlm_model::make_models(machine), {{}, {}},
                      options);
    };
    SimulationOptions options;
    options.functional = false;
    plain = simulate_once(options);
    options.wave.path = directory.path("run.vcd");
    options.wave.inferences = 0;
    result = simulate_once(options);
    vcd = test::parse_vcd(read_file(directory.path("run.vcd")));
  }

  /// ps of the recording that a signal spent in each state, idle left out.
  [[nodiscard]] std::map<std::string, std::uint64_t> times(const std::string& path) const {
    std::map<std::string, std::uint64_t> times;
    for (std::size_t i = 1; i < tlm_model::kWaveStates.size(); ++i) {
      const std::uint64_t time = vcd.time_at(path, i);
      if (time != 0) times[std::string(tlm_model::kWaveStates[i])] = time;
    }
    return times;
  }
  /// The same of an account; its time unit is `unit_ps`.
  static std::map<std::string, std::uint64_t> times(const hw::TimeAccount& account,
                                                    std::uint64_t unit_ps) {
    std::map<std::string, std::uint64_t> times;
    if (account.busy != 0) times["busy"] = account.busy * unit_ps;
    for (const hw::TimeAccount::Stall& stall : account.stalled) {
      if (stall.time != 0 && stall.cause != "no_command") times[stall.cause] = stall.time * unit_ps;
    }
    return times;
  }
  [[nodiscard]] std::uint64_t sum_of_last(const std::string& begin, const std::string& end) const {
    std::uint64_t sum = 0;
    for (const auto& [path, variable] : vcd.variables) {
      if (path.rfind(begin, 0) == 0 && path.size() > end.size() &&
          path.compare(path.size() - end.size(), end.size(), end) == 0) {
        sum += *variable.changes.back().value;
      }
    }
    return sum;
  }

  void recording_changes_nothing();
  void units_spend_the_time_of_their_accounts();
  void initiators_move_the_bytes_of_their_accounts();
  void banks_serve_the_words_of_the_account();
  void memories_spend_the_time_of_their_accounts();
  void rows_go_through_the_functional_units();
  /// Rows that a signal shows in [from, to), ps, in their order.
  [[nodiscard]] std::vector<std::uint64_t> rows_in(const std::string& path, std::uint64_t from,
                                                   std::uint64_t to) const;
  [[nodiscard]] std::uint64_t core_ps() const { return 1'000'000 / machine.core.clock_mhz; }
  [[nodiscard]] std::uint64_t bus_ps() const { return 1'000'000 / machine.bus.clock_mhz; }

  hw::Machine machine;
  SimulationResult plain, result;
  test::Vcd vcd;
  TempDirectory directory;
};

// One test, since the runs take the time.
TEST_P(WaveAccounts, AgreeWithTheWave) {
  recording_changes_nothing();
  units_spend_the_time_of_their_accounts();
  initiators_move_the_bytes_of_their_accounts();
  banks_serve_the_words_of_the_account();
  memories_spend_the_time_of_their_accounts();
  rows_go_through_the_functional_units();
}

void WaveAccounts::recording_changes_nothing() {
  EXPECT_EQ(result.cycles, plain.cycles);
  EXPECT_EQ(result.kernel_events, plain.kernel_events);
  ASSERT_EQ(result.blocks.size(), plain.blocks.size());
  for (std::size_t i = 0; i < plain.blocks.size(); ++i) {
    EXPECT_EQ(test::values_of(result.blocks[i]), test::values_of(plain.blocks[i]));
  }
}

// Time counts while the core runs: what the host moves before and after that is in the wave alone.
void WaveAccounts::units_spend_the_time_of_their_accounts() {
  std::size_t compared = 0;
  for (const hw::BlockReport& block : result.blocks) {
    const std::string path = "system.core." + block.name + ".state";
    if (!block.time || vcd.variables.count(path) == 0 || block.name == "processor") continue;
    if (block.name == "attention") continue;  // below
    EXPECT_EQ(times(path), times(*block.time, core_ps())) << path;
    ++compared;
  }
  EXPECT_GE(compared, machine.unroller.loops != 0 ? 4U : 3U);
  if (machine.attention.lines == 0) return;
  // Phases are work and conflicts of banks, which have no times of their own; the rest is stalls.
  for (const hw::BlockReport& block : result.blocks) {
    if (block.name != "attention") continue;
    auto shown = times("system.core.attention.state");
    auto expected = times(*block.time, core_ps());
    const std::uint64_t phases = shown["sddmm"] + shown["spmm"];
    EXPECT_EQ(phases, expected["busy"] + expected["bank_conflict"]);
    for (const char* stall : {"memory", "softmax", "output", "decode"}) {
      EXPECT_EQ(shown[stall], expected[stall]) << stall;
    }
    EXPECT_GT(phases, 0U);
  }
}

void WaveAccounts::initiators_move_the_bytes_of_their_accounts() {
  const tlm_model::Clock bus_clock(machine.bus.clock_mhz);
  std::size_t compared = 0;
  for (const hw::BlockReport& block : result.blocks) {
    if (block.name != "bus") continue;
    for (const hw::BlockReport& part : block.parts) {
      if (part.time) continue;
      const auto values = test::values_of(part);
      const std::string path = "system.bus." + tlm_model::short_name(part.name);
      std::uint64_t read = 0, written = 0, begun = 0;
      for (const auto& change : vcd.changes(path + ".transactions")) {
        if (change.value == 0U) continue;
        ASSERT_EQ(*change.value, ++begun) << path << " at " << change.time;
        const bool write = vcd.at(path + ".direction", change.time) == wave_state("write");
        (write ? written : read) += vcd.at(path + ".bytes", change.time).value();
        EXPECT_EQ(vcd.at(path + ".state", change.time), wave_state("granted"));
      }
      EXPECT_EQ(read, values.at("read_bytes")) << path;
      EXPECT_EQ(written, values.at("written_bytes")) << path;
      EXPECT_EQ(begun, values.at("reads") + values.at("writes")) << path;
      EXPECT_EQ(vcd.last(path + ".in_flight"), 0U);
      // Requests that wait: the sum over time of how many there are.
      std::uint64_t waited = 0;
      const auto& waiting = vcd.changes(path + ".waiting");
      for (std::size_t i = 0; i + 1 < waiting.size(); ++i) {
        waited += *waiting[i].value * (bus_clock.cycle_from_ps(waiting[i + 1].time) -
                                       bus_clock.cycle_from_ps(waiting[i].time));
      }
      EXPECT_EQ(waited, values.at("request_wait")) << path;
      ++compared;
    }
  }
  EXPECT_GE(compared, 5U);
}

void WaveAccounts::banks_serve_the_words_of_the_account() {
  // Others have their own use of the memories.
  if (machine.unroller.loops != 0 || machine.attention.lines != 0) return;
  EXPECT_EQ(
      sum_of_last("system.core.scratchpad.bank", ".words") * hw::scratchpad_word_bytes(machine),
      result.events.scratchpad_bytes);
  // A bank is in use no longer than a client uses it, and idle otherwise.
  for (const auto& [path, variable] : vcd.variables) {
    const std::size_t end = path.rfind(".clients");
    if (end == path.npos) continue;
    const std::string state = path.substr(0, end) + ".state";
    EXPECT_GE(vcd.end - vcd.begin - vcd.time_at(path, 0), vcd.time_at(state, wave_state("in_use")))
        << path;
    for (const auto& change : vcd.changes(state)) {
      // A use that is shown too late begins where what was shown before it ends, in the same
      // instant.
      if (vcd.at(state, change.time) != wave_state("idle")) continue;
      EXPECT_EQ(vcd.at(path, change.time), 0U) << path << " at " << change.time;
    }
  }
}

void WaveAccounts::memories_spend_the_time_of_their_accounts() {
  // While the core runs, as the accounts have it; before, between and after that in the wave too.
  std::size_t compared = 0;
  const auto at_least = [&](const std::string& path, const hw::BlockReport& part,
                            std::uint64_t unit_ps) {
    const auto shown = times(path);
    for (const auto& [state, time] : times(*part.time, unit_ps)) {
      ASSERT_EQ(shown.count(state), 1U) << path << " " << state;
      EXPECT_GE(shown.at(state), time) << path << " " << state;
    }
    ++compared;
  };
  for (const hw::BlockReport& block : result.blocks) {
    for (const hw::BlockReport& part : block.parts) {
      if (!part.time) continue;
      if (block.name == "dram") at_least("system.dram." + part.name + ".state", part, 1);
      if (block.name == "memory") at_least("system.dram.answers", part, bus_ps());
    }
  }
  EXPECT_GE(compared, 1U);
}

std::vector<std::uint64_t> WaveAccounts::rows_in(const std::string& path, std::uint64_t from,
                                                 std::uint64_t to) const {
  std::vector<std::uint64_t> rows;
  for (const auto& change : vcd.changes(path)) {
    if (change.value && change.time >= from && change.time < to) rows.push_back(*change.value);
  }
  return rows;
}

// Every row of a command passes the units that it needs, in order, and leaves a unit no later than
// the chain.
void WaveAccounts::rows_go_through_the_functional_units() {
  std::size_t passed = 0, ahead = 0;
  const std::string row = "system.core.store.row";
  for (const char* name : {"gelu", "exponential", "norm", "rope", "transposer", "divider"}) {
    const std::string unit = std::string("system.core.store.") + name;
    if (vcd.variables.count(unit + ".row") == 0) continue;
    for (const tlm_model::CommandTrace& trace : result.traces) {
      const std::uint64_t from = trace.started * core_ps(), to = trace.released * core_ps();
      if (trace.unit != hw::Unit::kStore || from == to) continue;
      if (vcd.at(unit + ".command", from) != trace.index) {
        EXPECT_TRUE(rows_in(unit + ".row", from, to).empty()) << unit << " " << trace.index;
        continue;
      }
      const std::vector<std::uint64_t> rows = rows_in(unit + ".row", from, to);
      EXPECT_EQ(rows, rows_in(row, from, to)) << unit << " " << trace.index;
      for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i], i);
      for (const auto& change : vcd.changes(row)) {
        if (!change.value || change.time < from || change.time >= to) continue;
        const auto in_unit = vcd.at(unit + ".row", change.time);
        EXPECT_TRUE(!in_unit || *in_unit >= *change.value) << unit << " at " << change.time;
        const auto& shown = vcd.changes(unit + ".row");
        ahead += std::none_of(shown.begin(), shown.end(),
                              [&](const auto& own) { return own.time == change.time; })
                     ? 1
                     : 0;
      }
      ++passed;
    }
  }
  // Stages after a softmax have earlier rows; attention engines have one themselves.
  EXPECT_EQ(ahead > 0, GetParam().machine == "tiny" || GetParam().machine == "transformer");
  // On gemmini the host does what needs them.
  EXPECT_EQ(passed > 0, GetParam().machine != "gemmini");
}

INSTANTIATE_TEST_SUITE_P(
    Machines, WaveAccounts,
    testing::Values(Case{"tiny", "tiny", {}}, Case{"transformer", "transformer", {}},
                    Case{"gemmini", "gemmini", {}}, Case{"vitcod", "vitcod", {}},
                    Case{"single_ports",
                         "transformer",
                         {"scratchpad.ports=1", "scratchpad.banks=2", "array.overlap=none",
                          "accumulator.banks=1"}},
                    Case{"stationary_outputs",
                         "transformer",
                         {"array.dataflow=output-stationary", "array.overlap=preload",
                          "dram.channels=2", "l2.kib=64"}},
                    Case{"translated", "tiny", {"tlb.entries=4", "dma.outstanding_writes=1"}}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace systole::testbench
