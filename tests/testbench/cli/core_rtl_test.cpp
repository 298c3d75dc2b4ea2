/// `systole run --rtl core`: the core in RTL beside the model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "support/program/program_run.h"
#include "support/temp_directory.h"
#include "support/tlm/fst_reader.h"
#include "support/tlm/rtl_wave.h"
#include "testbench/report/report_gates.h"

namespace systole::testbench {
namespace {

using nlohmann::json;

constexpr const char* kLayer =
    "run -m tiny --model bert-base --layers 1 --d 8 --ffn 16 --rtl core ";

/// The statistics of a run without an error.
json gates_run(const std::string& arguments, const std::string& directory = ".") {
  const ProgramRun run = run_systole(words_of(arguments + " --json"), directory);
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  return document_of(run.out);
}

void expect_equal_bytes(const json& document) {
  const json& gates = document["gates"];
  EXPECT_GT(gates["compared_bytes"], 0);
  EXPECT_EQ(gates["mismatched_bytes"], 0);
  EXPECT_EQ(document["rtl"]["core"]["mismatches"], 0);
  EXPECT_EQ(document["mismatched_bytes"], 0);
}

// Signals of gates and model are in one waveform, on one axis of time: a command that starts in the
// same cycle in both does so at one time there.
TEST(CoreInRtl, ShowsItsSignalsBesideTheModels) {
  const TempDirectory directory;
  const json document =
      gates_run(std::string(kLayer) + "-l 8 --heads 1 --wave run.fst", directory.path("."));
  const test::Vcd vcd = test::read_fst(directory.path("run.fst"));
  const std::uint64_t period = 1000;
  test::expect_a_clock(vcd, "core", period);
  const std::uint64_t begin = test::operations(vcd, "core").at(0);
  std::size_t index = 0, matmuls = 0, shown = 0;
  for (const json& command : document["gates"]["commands"]) {
    const std::size_t here = index++;
    const bool is_matmul = command["opcode"] == "matmul";
    const std::uint64_t unit = command["opcode"] == "load" ? 0 : is_matmul ? 1 : 2;
    const std::uint64_t start = command["gates"]["started"];
    const auto bits = vcd.at(test::port_of("core", "started_o"), begin + start * period);
    ASSERT_TRUE(bits);
    EXPECT_EQ(*bits >> unit & 1U, 1U) << command;
    if (!is_matmul || command["model"]["started"] != start) continue;
    ++matmuls;
    const std::string model = "system.core.array.command";
    if (vcd.at(model, begin + start * period) == here) ++shown;
  }
  EXPECT_GE(matmuls, 5U);
  EXPECT_EQ(shown, matmuls);
}

// A window leaves out what is before and after it.
TEST(CoreInRtl, ShowsAWindow) {
  const TempDirectory directory;
  gates_run(std::string(kLayer) + "-l 8 --heads 1 --wave run.fst --wave-from 3000 --wave-to 3500",
            directory.path("."));
  const test::Vcd vcd = test::read_fst(directory.path("run.fst"));
  const std::uint64_t period = 1000;
  const auto& clock = vcd.changes(test::port_of("core", "clk_i"));
  EXPECT_EQ(std::count_if(clock.begin(), clock.end(), [](const auto& c) { return c.value == 1U; }),
            500);
  EXPECT_GE(clock.at(1).time, 3000 * period);
  EXPECT_LE(clock.back().time, 3500 * period);
}

TEST(CoreInRtl, SaysWhenEachCommandRanInGatesAndModel) {
  const json document = gates_run(std::string(kLayer) + "-l 5 --heads 2 --check -n 2");
  expect_equal_bytes(document);
  const json& gates = document["gates"];
  EXPECT_EQ(gates["compared_bytes"], 2 * 5 * 8);
  ASSERT_EQ(document["rtl"]["core"]["operations"], 2 * gates["commands"].size());
  json kinds = json::object();
  std::uint64_t last = 0;
  for (const json& command : gates["commands"]) {
    const json& is = command["gates"];
    EXPECT_LE(is["dispatched"], is["started"]);
    EXPECT_LT(is["started"], is["completed"]);
    last = std::max(last, is["completed"].get<std::uint64_t>());
    json& kind = kinds[command["opcode"].get<std::string>()];
    if (kind.is_null()) kind = {{"commands", 0}, {"gates", 0}, {"model", 0}};
    kind["commands"] = kind["commands"].get<int>() + 1;
    for (const char* side : {"gates", "model"}) {
      const json& times = command[side];
      kind[side] =
          kind[side].get<int>() + times["completed"].get<int>() - times["started"].get<int>();
    }
  }
  EXPECT_EQ(gates["cycles"], last);
  EXPECT_GE(gates["model_cycles"], document["cycles_min"].get<int>() * 9 / 10);
  ASSERT_EQ(gates["kinds"].size(), kinds.size());
  for (auto& [name, kind] : gates["kinds"].items()) {
    const json& worst = gates["commands"][kind["worst"].get<std::size_t>()];
    EXPECT_EQ(worst["opcode"], name);
    kinds[name]["worst"] = kind["worst"];
    EXPECT_EQ(kind, kinds[name]) << name;
  }
}

TEST(CoreInRtl, RunsToTheEndWhereNothingDiffers) {
  const json equal = gates_run(std::string(kLayer) + "-l 8 --heads 1 --exact");
  expect_equal_bytes(equal);
  EXPECT_EQ(equal["gates"]["cycles"], equal["gates"]["model_cycles"]);
}

// A trained network: 965 commands, 21 of them loads to the accumulator. Every command is
// dispatched, begins and ends in the model's cycle.
TEST(CoreInRtl, RunsVisionTransformersWithTheModelsBytesAndCycles) {
  for (const char* model : {"vit17", "vit17-post"}) {
    const json document =
        gates_run("run -m tiny -n 1 --check --rtl core --model " + std::string(model));
    expect_equal_bytes(document);
    const json& gates = document["gates"];
    EXPECT_GT(gates["commands"].size(), 900U);
    EXPECT_GT(gates["kinds"]["load_accumulator"]["commands"], 0);
    EXPECT_EQ(gates["cycles"], gates["model_cycles"]);
    for (const json& command : gates["commands"]) {
      for (const char* moment : {"dispatched", "started", "completed"}) {
        // One of the two counts from where the matmul before has read its operands.
        if (command["opcode"] == "matmul" && moment == std::string("started")) continue;
        ASSERT_EQ(command["gates"][moment], command["model"][moment]) << command;
      }
    }
  }
}

TEST(CoreInRtl, RunsAProgramFile) {
  const TempDirectory directory;
  const std::string matmul =
      "map -m tiny --model bert-base -l 4 --layers 1 --heads 1 --d 8 --ffn 16";
  EXPECT_EQ(run_systole(words_of(matmul + " --out a.prog"), directory.path()).exit_code, 0);
  EXPECT_EQ(run_systole(words_of(std::string(kLayer) + "-l 4 --heads 1 --outputs o.safetensors"),
                        directory.path())
                .exit_code,
            0);
  const json of_file =
      gates_run("run --program a.prog -i o.safetensors --rtl core", directory.path());
  expect_equal_bytes(of_file);
  const json of_network = gates_run(std::string(kLayer) + "-l 4 --heads 1");
  EXPECT_EQ(of_file["gates"]["commands"], of_network["gates"]["commands"]);
}

TEST(CoreInRtl, PrintsCommandsAndKinds) {
  const ProgramRun run = run_systole(words_of(std::string(kLayer) + "-l 4 --heads 1"));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  for (const char* text : {"core in RTL: ", "0 of 32 bytes differ", "worst: gates and model",
                           "0 load ", "21 store "}) {
    EXPECT_NE(run.out.find(text), std::string::npos) << text << " in\n" << run.out;
  }
}

TEST(CoreInRtl, AByteThatDiffersIsAMismatch) {
  GatesRun gates;
  gates.commands.resize(1);
  gates.outputs = {{1, 2, 3}, {4, 5, 6}};
  SimulationResult model;
  model.traces.resize(1);
  model.outputs = gates.outputs;
  EXPECT_EQ(compare_gates(gates, model).counts().mismatches, 0U);
  model.outputs[1][2] = 7;
  const GatesComparison other = compare_gates(gates, model);
  EXPECT_EQ(other.differing, 1U);
  EXPECT_EQ(other.counts().mismatches, 1U);
  gates.failed = true;
  EXPECT_EQ(compare_gates(gates, model).counts().mismatches, 2U) << "an assertion";
}

}  // namespace
}  // namespace systole::testbench
