#include "testbench/wave/wave.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <systemc>
#include <vector>

#include "support/input_error.h"
#include "support/network/vit_run.h"
#include "support/paths.h"
#include "support/report_values.h"
#include "support/temp_directory.h"
#include "support/tlm/systemc_test.h"
#include "support/tlm/vcd_reader.h"
#include "testbench/wave/gtkw.h"
#include "testbench/wave/wave_signals.h"
#include "tlm/common/wave_states.h"

namespace systole::testbench {
namespace {

/// Full names that a GTKWave save file shows: the lines after a "+{label} ".
std::multiset<std::string> shown_signals(const std::string& gtkw) {
  std::multiset<std::string> names;
  std::istringstream in(gtkw);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("+{", 0) == 0) names.insert(line.substr(line.find("} ") + 2));
  }
  return names;
}

/// Translate filter files that a save file names.
std::set<std::string> named_tables(const std::string& gtkw) {
  std::set<std::string> names;
  std::istringstream in(gtkw);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("^1 ", 0) == 0) names.insert(line.substr(3));
  }
  return names;
}

/// Text by value of a translate filter file, without the colours.
std::map<std::string, std::string> parse_table(const std::string& text) {
  std::map<std::string, std::string> table;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const std::size_t space = line.find(' '), colour_end = line.find('?', space + 2);
    EXPECT_EQ(line.at(space + 1), '?') << line;
    EXPECT_TRUE(table.emplace(line.substr(0, space), line.substr(colour_end + 1)).second) << line;
  }
  return table;
}

class WaveTest : public test::SystemCTest {
 protected:
  static SimulationOptions recording(const std::string& path) {
    SimulationOptions options;
    options.wave.path = path;
    return options;
  }
  [[nodiscard]] test::Vcd read_vcd() const {
    return test::parse_vcd(read_file(directory.path("run.vcd")));
  }

  TempDirectory directory;
};

TEST_F(WaveTest, RecordingDoesNotChangeTheRun) {
  const test::VitRun run("tiny", 2);
  const SimulationResult plain = run.simulate();
  const SimulationResult recorded = run.simulate(recording(directory.path("run.vcd")));
  EXPECT_EQ(recorded.cycles, plain.cycles);
  EXPECT_EQ(recorded.outputs, plain.outputs);
  EXPECT_EQ(recorded.total_cycles, plain.total_cycles);
  EXPECT_EQ(recorded.kernel_events, plain.kernel_events);
  ASSERT_EQ(recorded.blocks.size(), plain.blocks.size());
  for (std::size_t i = 0; i < plain.blocks.size(); ++i) {
    EXPECT_EQ(test::values_of(recorded.blocks[i]), test::values_of(plain.blocks[i]));
  }
}

TEST_F(WaveTest, TracesAreThoseOfTheFirstInference) {
  const SimulationResult one = test::VitRun("tiny", 1).simulate();
  const SimulationResult two = test::VitRun("tiny", 2).simulate();
  ASSERT_EQ(two.traces.size(), one.traces.size());
  for (std::size_t i = 0; i < one.traces.size(); ++i) {
    EXPECT_EQ(two.traces[i].index, i);
    EXPECT_EQ(two.traces[i].started, one.traces[i].started);
    EXPECT_EQ(two.traces[i].completed, one.traces[i].completed);
  }
}

TEST_F(WaveTest, SameRunGivesSameBytes) {
  const test::VitRun run("transformer");
  run.simulate(recording(directory.path("run.vcd")));
  const std::string first = read_file(directory.path("run.vcd"));
  run.simulate(recording(directory.path("run.vcd")));
  EXPECT_EQ(read_file(directory.path("run.vcd")), first);
}

TEST_F(WaveTest, ViewShowsExactlyWhatIsRecorded) {
  test::VitRun("tiny").simulate(recording(directory.path("run.vcd")));
  const test::Vcd vcd = read_vcd();
  std::multiset<std::string> recorded;
  for (const auto& [path, variable] : vcd.variables) {
    recorded.insert(variable.width == 1 ? path
                                        : path + "[" + std::to_string(variable.width - 1) + ":0]");
  }
  const std::string gtkw = read_file(directory.path("run.gtkw"));
  EXPECT_EQ(shown_signals(gtkw), recorded);
  EXPECT_EQ(gtkw.find("Others"), gtkw.npos);
  // A group that the machine has nothing of is left out.
  EXPECT_NE(gtkw.find("\n-Scratchpad\n"), gtkw.npos);
  EXPECT_EQ(gtkw.find("\n-L2 cache\n"), gtkw.npos);
}

TEST(WaveLabelTest, StarsStandForWhatDiffers) {
  const WaveSignal bank{"dram.channel*.bank*.row", "channel * bank *: row", {}, {}, {}};
  EXPECT_EQ(label_of(bank, "dram.channel1.bank12.row"), "channel 1 bank 12: row");
  const WaveSignal state{"bus.*.state", "*", {}, {}, {}};
  EXPECT_EQ(label_of(state, "bus.core.load.dma.state"), "core.load.dma");
  for (const char* other : {"dram.channel1.bank12.state", "dram.channel1.row",
                            "dram.channel.bank.row", "dram.channel1.bank12.row.more", ""}) {
    EXPECT_FALSE(label_of(bank, other)) << other;
  }
  EXPECT_FALSE(label_of(state, "bus.state"));
  const WaveSignal channel{"dram.channel*.state", "channel *", {}, {}, {}};
  EXPECT_EQ(label_of(channel, "dram.channel12.state"), "channel 12");
  EXPECT_FALSE(label_of(channel, "dram.channel1.bank12.state"));
  const WaveSignal plain{"bus.request", "request channel", {}, {}, {}};
  EXPECT_EQ(label_of(plain, "bus.request"), "request channel");
  EXPECT_FALSE(label_of(plain, "bus.requests"));
}

TEST_F(WaveTest, TablesNameEveryValue) {
  const test::VitRun run("tiny");
  run.simulate(recording(directory.path("run.vcd")));
  const test::Vcd vcd = read_vcd();
  const std::set<std::string> tables = named_tables(read_file(directory.path("run.gtkw")));
  EXPECT_EQ(tables.size(), wave_tables().size() - 2);  // a ring's
  std::map<WaveText, std::map<std::string, std::string>> texts;
  for (const WaveTable& table : wave_tables()) {
    const std::string path = directory.path("run" + table.suffix);
    if (table.text == WaveText::kInstruction || table.text == WaveText::kPhase) continue;
    EXPECT_EQ(tables.count(path), 1U) << path;
    texts[table.text] = parse_table(read_file(path));
  }
  const auto check = [&](const WaveSignal& signal, const std::string& path) {
    if (signal.text == WaveText::kNone || !label_of(signal, path.substr(path.find('.') + 1)))
      return;
    for (const auto& change : vcd.changes(path)) {
      const std::string value = change.value ? std::to_string(*change.value) : "XXX";
      EXPECT_EQ(texts[signal.text].count(value), 1U) << path << " = " << value;
    }
  };
  for (const WaveGroup& group : wave_groups()) {
    for (const WaveSignal& signal : group.signals) {
      for (const auto& variable : vcd.variables) check(signal, variable.first);
    }
  }
  const auto& operators = run.mapping.program.operators;
  EXPECT_EQ(texts[WaveText::kOperator].size(), operators.size() + 1);
  for (std::size_t op = 0; op < operators.size(); ++op) {
    EXPECT_EQ(texts[WaveText::kOperator][std::to_string(op)], operators[op].name);
  }
  EXPECT_EQ(texts[WaveText::kCommand].size(), run.mapping.program.commands.size() + 1);
  EXPECT_EQ(texts[WaveText::kState]["1"], "busy");
  EXPECT_EQ(texts[WaveText::kClients]["5"], "load + post-op");
  EXPECT_EQ(texts[WaveText::kInitiator]["0"], "host");
}

TEST_F(WaveTest, AgreesWithCommandsAndCounters) {
  const test::VitRun run("tiny");
  const SimulationResult result = run.simulate(recording(directory.path("run.vcd")));
  const test::Vcd vcd = read_vcd();

  const char* const units[] = {"load", "array", "store"};
  std::uint64_t in_unit[3] = {};
  for (const tlm_model::CommandTrace& trace : result.traces) {
    const std::string path = std::string("system.core.") + units[static_cast<int>(trace.unit)];
    in_unit[static_cast<int>(trace.unit)] += trace.released - trace.started;
    if (trace.started == trace.released) continue;
    const std::uint64_t while_busy = 1000 * (trace.released - 1);  // 1 GHz
    EXPECT_EQ(vcd.at(path + ".command", while_busy), trace.index);
    EXPECT_EQ(vcd.at(path + ".operator", while_busy), trace.op);
    EXPECT_NE(vcd.at(path + ".state", while_busy), tlm_model::wave_state("idle"));
  }
  for (int unit = 0; unit < 3; ++unit) {
    const std::string state = std::string("system.core.") + units[unit] + ".state";
    std::uint64_t waits = 0;
    for (const char* cause : {"wait_load", "wait_compute", "wait_store"}) {
      waits += vcd.time_at(state, tlm_model::wave_state(cause));
    }
    const std::uint64_t idle = vcd.time_at(state, tlm_model::wave_state("idle"));
    EXPECT_EQ(vcd.end - vcd.begin - idle - waits, 1000 * in_unit[unit]) << state;
  }
  EXPECT_EQ(vcd.last("system.core.load.dma.bytes"),
            test::VitRun::counter(result, "load", "read_bytes"));
  EXPECT_EQ(vcd.last("system.core.store.write_dma.bytes"),
            test::VitRun::counter(result, "store", "written_bytes"));
  EXPECT_EQ(vcd.last("system.core.processor.dispatched"), result.traces.size());
  for (const char* rows : {"row_hits", "row_misses", "row_conflicts"}) {
    EXPECT_EQ(vcd.last(std::string("system.dram.") + rows),
              test::VitRun::counter(result, "dram", rows));
  }
  for (const auto& change : vcd.changes("system.core.load.dma.outstanding")) {
    EXPECT_LE(*change.value, run.machine.dma.outstanding_reads);
  }
}

TEST_F(WaveTest, RecordsTheFirstInferenceUnlessToldOtherwise) {
  const test::VitRun run("tiny", 3);
  SimulationOptions options = recording(directory.path("run.vcd"));
  run.simulate(options);
  EXPECT_EQ(read_vcd().last("system.host.inferences"), 1U);
  options.wave.inferences = 2;
  run.simulate(options);
  EXPECT_EQ(read_vcd().last("system.host.inferences"), 2U);
  options.wave.inferences = 0;
  const SimulationResult result = run.simulate(options);
  EXPECT_EQ(read_vcd().last("system.host.inferences"), 3U);
  EXPECT_EQ(read_vcd().end, 1000 * result.total_cycles);
}

TEST_F(WaveTest, WindowIsAPieceOfTheWhole) {
  const test::VitRun run("tiny");
  SimulationOptions options = recording(directory.path("run.vcd"));
  run.simulate(options);
  const test::Vcd whole = read_vcd();
  options.wave.from_cycle = 20'001;
  options.wave.to_cycle = 30'003;
  run.simulate(options);
  const test::Vcd piece = read_vcd();
  EXPECT_EQ(piece.begin, 20'001'000U);
  EXPECT_EQ(piece.end, 30'003'000U);
  for (const auto& [path, variable] : piece.variables) {
    EXPECT_EQ(variable.changes.front().value, whole.at(path, piece.begin)) << path;
    for (const auto& change : variable.changes) {
      EXPECT_EQ(change.value, whole.at(path, change.time)) << path << " at " << change.time;
    }
    const auto& all = whole.changes(path);
    const auto inside = std::count_if(all.begin(), all.end(), [&](const auto& change) {
      return change.time > piece.begin && change.time <= piece.end;
    });
    EXPECT_EQ(variable.changes.size(), static_cast<std::size_t>(inside) + 1) << path;
  }
}

TEST_F(WaveTest, StopsAtItsSizeLimit) {
  SimulationOptions options = recording(directory.path("run.vcd"));
  options.wave.max_bytes = 20'000;
  const test::VitRun run("tiny");
  const SimulationResult result = run.simulate(options);
  const std::size_t size = read_file(directory.path("run.vcd")).size();
  EXPECT_GE(size, 20'000U);
  EXPECT_LT(size, 21'000U);
  EXPECT_LT(read_vcd().end, 1000 * result.total_cycles);
  EXPECT_TRUE(result.wave_is_cut_short);
}

/// Where a view begins, and the pixels that a time takes in it: the zoom is the logarithm of the
/// time of 200 of them.
struct Opening {
  explicit Opening(const std::string& gtkw)
      : begin(std::stoull(gtkw.substr(gtkw.find("[timestart] ") + 12))),
        zoom(std::stod(gtkw.substr(gtkw.find("\n*") + 2))) {}
  [[nodiscard]] double pixels(std::uint64_t ps) const {
    return 200 * std::pow(2.0, zoom) * static_cast<double>(ps);
  }
  std::uint64_t begin;
  double zoom;
};

TEST_F(WaveTest, ViewOpensOnTheFirstOperator) {
  const test::VitRun run("tiny");
  SimulationOptions options = recording(directory.path("run.vcd"));
  const SimulationResult result = run.simulate(options);
  std::uint64_t first = ~std::uint64_t{0}, last = 0;
  for (const tlm_model::CommandTrace& trace : result.traces) {
    if (trace.op != result.traces.front().op) continue;
    first = std::min(first, 1000 * trace.dispatched);
    last = std::max(last, 1000 * trace.completed);
  }
  const Opening opening(read_file(directory.path("run.gtkw")));
  EXPECT_LE(opening.begin, first);
  EXPECT_GT(opening.pixels(last - opening.begin), 900);
  EXPECT_LT(opening.pixels(last - opening.begin), 1200);
  // Where the operator is not recorded, on all that is.
  options.wave.from_cycle = last / 1000 + 10'000;
  run.simulate(options);
  const Opening later(read_file(directory.path("run.gtkw")));
  EXPECT_EQ(later.begin, 1000 * options.wave.from_cycle);
  EXPECT_GT(later.pixels(read_vcd().end - later.begin), 900);
}

TEST_F(WaveTest, NothingIsLeftWhenAFileCannotBeWritten) {
  directory.write("blocked.txt", "");
  const test::VitRun run("tiny");
  EXPECT_NE(
      input_error_of([&] { run.simulate(recording("run.wav")); }).find("ends in .fst or .vcd"),
      std::string::npos);
  EXPECT_NE(input_error_of([&] { run.simulate(recording(directory.path("none/run.vcd"))); }),
            "no error");
  std::filesystem::create_directory(directory.path("run.operators.txt"));
  const std::string error =
      input_error_of([&] { run.simulate(recording(directory.path("run.vcd"))); });
  EXPECT_NE(error.find("run.operators.txt"), std::string::npos) << error;
  EXPECT_EQ(directory.names(), (std::vector<std::string>{"blocked.txt", "run.operators.txt"}));
}

TEST_F(WaveTest, AnEmptyWindowIsRefused) {
  SimulationOptions options = recording(directory.path("run.vcd"));
  options.wave.from_cycle = 5;
  options.wave.to_cycle = 5;
  EXPECT_NE(input_error_of([&] { test::VitRun("tiny").simulate(options); }).find("later end"),
            std::string::npos);
  EXPECT_TRUE(directory.names().empty());
}

/// A user's module: one signal that a view does not know, one that is not recorded.
class Stranger : public sc_core::sc_module {
 public:
  explicit Stranger(const sc_core::sc_module_name& name) : sc_module(name) {
    SC_HAS_PROCESS(Stranger);
    SC_METHOD(step);
  }
  void trace(sc_core::sc_trace_file* file) const override {
    sc_core::sc_trace(file, level_, std::string(name()) + ".level", 4);
    sc_core::sc_trace(file, signed_, std::string(name()) + ".signed");
  }

 private:
  void step() {
    level_ = step_ == kSteps ? 0xffff : step_;
    if (step_++ < kSteps) next_trigger(10, sc_core::SC_NS);
  }
  static constexpr std::uint16_t kSteps = 20;
  std::uint16_t step_ = 0;
  std::uint16_t level_ = 0;
  std::int32_t signed_ = 0;
};

TEST_F(WaveTest, RecordsStrangersToo) {
  Stranger stranger("stranger");
  expect_report("/systole/wave");
  {
    const hw::Program program;
    Wave wave({directory.path("run.vcd")}, program, 1000);
    sc_core::sc_start(155, sc_core::SC_NS);
    wave.write();
  }
  EXPECT_EQ(read_vcd().at("stranger.level", 85'000), 8U);
  const std::string gtkw = read_file(directory.path("run.gtkw"));
  EXPECT_NE(gtkw.find("-Others\n"), gtkw.npos);
  EXPECT_EQ(shown_signals(gtkw), (std::multiset<std::string>{"stranger.level[3:0]"}));
}

TEST_F(WaveTest, ValuesBeyondTheWidthAreUnknownAndTheLargestIsNone) {
  Stranger stranger("stranger");
  expect_report("/systole/wave");
  const hw::Program program;
  Wave wave({directory.path("run.vcd")}, program, 1000);
  sc_core::sc_start();
  wave.write();
  const std::string vcd = read_file(directory.path("run.vcd"));
  EXPECT_NE(vcd.find("#150000\nb1111 !\n#160000\nbx !\n#200000\nbz !\n"), vcd.npos) << vcd;
}

TEST_F(WaveTest, WithoutWriteThereIsNoFile) {
  Stranger stranger("stranger");
  expect_report("/systole/wave");
  {
    const hw::Program program;
    Wave wave({directory.path("run.vcd")}, program, 1000);
    sc_core::sc_start();
  }
  EXPECT_TRUE(directory.names().empty());
}

TEST_F(WaveTest, AFullDiskIsNoticed) {
  std::filesystem::create_symlink("/dev/full", directory.path("run.vcd"));
  Stranger stranger("stranger");
  expect_report("/systole/wave");
  const hw::Program program;
  Wave wave({directory.path("run.vcd")}, program, 1000);
  sc_core::sc_start();
  EXPECT_NE(input_error_of([&] { wave.write(); }).find("run.vcd"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(directory.path("run.gtkw")));
}

TEST(WaveTableTest, ForeignNamesKeepToTheirLine) {
  hw::Program program;
  program.operators.resize(1);
  program.operators[0].name = "a\n^>1 b";
  const std::string table = wave_table(WaveText::kOperator, program, {});
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 2);
}

TEST(WaveDocumentTest, EverySignalIsDescribed) {
  const std::string document = read_file(source_path("docs/waveforms.md"));
  for (const WaveText kind : {WaveText::kHost, WaveText::kProcessor, WaveText::kState,
                              WaveText::kInstruction, WaveText::kPhase}) {
    for (const auto& [value, text] : parse_table(wave_table(kind, {}, {}))) {
      if (value == "XXX") continue;  // no value
      EXPECT_NE(document.find("| `" + text + "` | "), document.npos) << "missing: " << text;
    }
  }
  for (const WaveGroup& group : wave_groups()) {
    std::string part = "### " + group.title + "\n\n| signal | label | meaning |\n|---|---|---|\n";
    for (const WaveSignal& signal : group.signals) {
      part += "| `" + signal.path + "` | " + signal.label + " | " + signal.meaning + " |\n";
    }
    EXPECT_NE(document.find(part), document.npos) << "docs/waveforms.md needs:\n" << part;
  }
}

}  // namespace
}  // namespace systole::testbench
