#include "testbench/wave/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "support/network/vit_run.h"
#include "support/temp_directory.h"
#include "support/tlm/systemc_test.h"

namespace systole::testbench {
namespace {

struct Slice {
  std::string name;
  std::int64_t begin, end;  ///< ns
  nlohmann::json arguments;
};

std::int64_t ns(const nlohmann::json& time) { return std::llround(time.get<double>() * 1000); }

/// A timeline by the names of its rows.
struct Events {
  explicit Events(const std::string& path) {
    const nlohmann::json document = nlohmann::json::parse(read_file(path));
    std::map<int, std::string> names;
    for (const auto& event : document.at("traceEvents")) {
      const std::string phase = event.at("ph");
      if (phase == "M" && event.at("name") == "thread_name") {
        names[event.at("tid")] = event.at("args").at("name");
      } else if (phase == "X") {
        const int row = event.at("tid");
        EXPECT_EQ(names.count(row), 1U) << "a slice in a row without a name";
        const std::int64_t begin = ns(event.at("ts"));
        const Slice slice{event.at("name"), begin, begin + ns(event.at("dur")), event.at("args")};
        by_row[row].push_back(slice);
        by_name[names[row]].push_back(slice);
      } else if (phase == "s") {
        EXPECT_TRUE(arrow_begins.emplace(event.at("id"), event).second);
      } else if (phase == "f") {
        EXPECT_TRUE(arrow_ends.emplace(event.at("id"), event).second);
      }
    }
  }

  /// Whether the row has a slice around that time, which an arrow there binds to.
  [[nodiscard]] bool has_slice_at(int row, std::int64_t time) const {
    const auto& slices = by_row.at(row);
    return std::any_of(slices.begin(), slices.end(),
                       [&](const Slice& slice) { return slice.begin <= time && time < slice.end; });
  }

  std::map<int, std::vector<Slice>> by_row;
  std::map<std::string, std::vector<Slice>> by_name;
  std::map<int, nlohmann::json> arrow_begins, arrow_ends;
};

bool is_wait(const Slice& slice) { return slice.name.rfind("wait for ", 0) == 0; }

class TimelineTest : public test::SystemCTest {
 protected:
  SimulationResult simulate(const test::VitRun& run, std::uint64_t inferences = 1) {
    std::ofstream file(path);
    Timeline timeline(file, inferences, run.mapping.program, run.machine.core.clock_mhz);
    SimulationOptions options;
    options.observer = [&](const tlm_model::CommandTrace& trace) { timeline.add(trace); };
    const SimulationResult result = run.simulate(options);
    timeline.end();
    file.close();
    return result;
  }

  TempDirectory directory;
  std::string path = directory.path("run.json");
};

TEST_F(TimelineTest, SlicesOfARowDoNotOverlap) {
  simulate(test::VitRun("transformer", 2), 0);
  const Events events(path);
  EXPECT_GE(events.by_row.size(), 5U);
  for (const auto& [row, slices] : events.by_row) {
    std::int64_t free = 0;
    for (const Slice& slice : slices) {
      EXPECT_GE(slice.begin, free) << "row " << row << ": " << slice.name;
      EXPECT_GE(slice.end, slice.begin);
      free = slice.end;
    }
  }
}

TEST_F(TimelineTest, EveryCommandStandsInTheRowOfItsUnit) {
  const test::VitRun run("tiny");
  simulate(run);
  const Events events(path);
  std::set<std::size_t> seen;
  for (const char* unit : {"load", "array", "post-op and store"}) {
    for (const Slice& slice : events.by_name.at(unit)) {
      if (is_wait(slice)) continue;
      const std::size_t index = slice.arguments.at("command");
      EXPECT_TRUE(seen.insert(index).second) << index;
      const hw::Command& command = run.mapping.program.commands.at(index);
      EXPECT_EQ(slice.name, run.mapping.program.operators[command.op].name);
      EXPECT_EQ(slice.arguments.at("m"), hw::shape_of(command).m);
      EXPECT_EQ(slice.arguments.at("n"), hw::shape_of(command).n);
      EXPECT_EQ(slice.arguments.contains("k"), command.opcode() == hw::Opcode::kMatmul);
    }
  }
  EXPECT_EQ(seen.size(), run.mapping.program.commands.size() - 1);  // all but the end
}

TEST_F(TimelineTest, TimesAreThoseOfTheAccounts) {
  const test::VitRun run("transformer");
  const SimulationResult result = simulate(run);
  const Events events(path);
  const std::map<std::string, std::string> blocks = {
      {"load", "load"}, {"array", "array"}, {"post-op and store", "store"}};
  for (const auto& [row, block] : blocks) {
    std::map<std::string, std::uint64_t> cycles;
    for (const Slice& slice : events.by_name.at(row)) {
      EXPECT_EQ(slice.arguments.at("cycles"), slice.end - slice.begin);  // 1 GHz
      cycles[is_wait(slice) ? slice.name : "in unit"] +=
          slice.arguments.at("cycles").get<std::uint64_t>();
    }
    const auto count = [&, &block = block](const std::string& name) {
      return test::VitRun::counter(result, block, name);
    };
    EXPECT_EQ(cycles["wait for load"], count("stalled.wait_load"));
    EXPECT_EQ(cycles["wait for array"], count("stalled.wait_compute"));
    EXPECT_EQ(cycles["wait for post-op and store"], count("stalled.wait_store"));
    std::uint64_t elsewhere = count("idle") + count("stalled.no_command");
    for (const char* cause : {"wait_load", "wait_compute", "wait_store"}) {
      elsewhere += count(std::string("stalled.") + cause);
    }
    EXPECT_EQ(cycles["in unit"], count("total") - elsewhere) << block;
  }
}

TEST_F(TimelineTest, OneArrowLeadsToTheEndOfEveryWait) {
  simulate(test::VitRun("transformer"));
  const Events events(path);
  std::multiset<std::pair<int, std::int64_t>> wait_ends, arrow_ends;
  for (const auto& [row, slices] : events.by_row) {
    for (const Slice& slice : slices) {
      if (is_wait(slice)) wait_ends.emplace(row, slice.end);
    }
  }
  ASSERT_EQ(events.arrow_begins.size(), events.arrow_ends.size());
  for (const auto& [id, end] : events.arrow_ends) {
    arrow_ends.emplace(end.at("tid"), ns(end.at("ts")));
    const nlohmann::json& begin = events.arrow_begins.at(id);
    EXPECT_LE(ns(begin.at("ts")), ns(end.at("ts")));
    EXPECT_TRUE(events.has_slice_at(begin.at("tid"), ns(begin.at("ts"))));
  }
  EXPECT_FALSE(wait_ends.empty());
  EXPECT_EQ(arrow_ends, wait_ends);
}

TEST_F(TimelineTest, OperatorsSpanTheirCommands) {
  const test::VitRun run("tiny");
  simulate(run);
  const Events events(path);
  std::map<std::string, Slice> operators;
  for (const Slice& slice : events.by_name.at("operators")) {
    EXPECT_TRUE(operators.emplace(slice.name, slice).second) << slice.name;
  }
  EXPECT_EQ(operators.size(), run.mapping.program.operators.size());
  for (const char* unit : {"load", "array", "post-op and store"}) {
    for (const Slice& slice : events.by_name.at(unit)) {
      if (is_wait(slice)) continue;
      EXPECT_LE(operators.at(slice.name).begin, slice.begin);
      EXPECT_GE(operators.at(slice.name).end, slice.end);
    }
  }
}

TEST_F(TimelineTest, RecordsTheFirstInferenceUnlessToldOtherwise) {
  const test::VitRun run("tiny", 3);
  simulate(run);
  EXPECT_EQ(Events(path).by_name.at("inferences").size(), 1U);
  simulate(run, 2);
  EXPECT_EQ(Events(path).by_name.at("inferences").size(), 2U);
  simulate(run, 0);
  EXPECT_EQ(Events(path).by_name.at("inferences").size(), 3U);
}

TEST_F(TimelineTest, RecordingDoesNotChangeTheRun) {
  const test::VitRun run("transformer");
  const SimulationResult recorded = simulate(run);
  const SimulationResult plain = run.simulate();
  EXPECT_EQ(recorded.cycles, plain.cycles);
  EXPECT_EQ(recorded.kernel_events, plain.kernel_events);
}

/// A program of two commands, and what became of them.
hw::Program two_commands(const std::string& name) {
  hw::Program program;
  program.operators.resize(1);
  program.operators[0].name = name;
  program.commands.resize(3);
  hw::cmd::Load load;
  load.m = load.n = 4;
  program.commands[0] = program.commands[1] = {load};
  return program;
}
tlm_model::CommandTrace load(std::uint32_t index, std::uint64_t started, std::uint64_t released,
                             std::uint64_t completed) {
  tlm_model::CommandTrace trace;
  trace.index = index;
  trace.opcode = hw::Opcode::kLoad;
  trace.started = started;
  trace.released = released;
  trace.completed = completed;
  return trace;
}

TEST(EventWriterTest, AnyNameGivesValidJson) {
  const TempDirectory directory;
  const std::string names[] = {"a \"b\" \\ c", "line\nline", "\xff\xfe", "</script>", ""};
  for (const std::string& name : names) {
    const hw::Program program = two_commands(name);
    std::ofstream file(directory.path("t.json"));
    Timeline timeline(file, 1, program, 1000);
    timeline.add(load(0, 1, 5, 9));
    timeline.add(load(1, 5, 7, 11));
    timeline.end();
    file.close();
    EXPECT_EQ(Events(directory.path("t.json")).by_name.at("load").size(), 2U);
  }
}

// 700 MHz: 10/7 ns a cycle. Rounding down moves the edges but opens no gap and no overlap.
TEST(EventWriterTest, CompletionOutOfOrderAndOddClocksKeepRowsInOrder) {
  const TempDirectory directory;
  const hw::Program program = two_commands("op");
  std::ofstream file(directory.path("t.json"));
  Timeline timeline(file, 1, program, 700);
  timeline.add(load(1, 5, 7, 8));
  timeline.add(load(0, 1, 5, 9));
  timeline.end();
  file.close();
  const Events events(directory.path("t.json"));
  const auto& slices = events.by_name.at("load");
  ASSERT_EQ(slices.size(), 2U);
  EXPECT_EQ(slices[0].begin, 1);
  EXPECT_EQ(slices[0].end, 7);
  EXPECT_EQ(slices[1].begin, 7);
  EXPECT_EQ(slices[1].end, 10);
}

}  // namespace
}  // namespace systole::testbench
