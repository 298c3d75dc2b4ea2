#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "support/documented_names.h"
#include "support/program/program_run.h"
#include "support/scratch.h"

namespace systole::testbench {
namespace {

using nlohmann::json;

json explained(Words arguments) {
  arguments.insert(arguments.begin(), "explain");
  return json_of(std::move(arguments));
}

std::uint64_t sum_of(const json& list) {
  std::uint64_t sum = 0;
  for (const json& entry : list) sum += entry["cycles"].get<std::uint64_t>();
  return sum;
}

TEST(ExplainCommand, EveryNameIsDocumentedAndNoOther) {
  test::expect_documented({explained({"-m", "vitcod", "--model", "vit17", "--confirm", "1"})},
                          "docs/explain.md");
}

TEST(ExplainCommand, EveryViewAddsUpToTheCyclesOfTheRun) {
  const json run =
      json_of({"run", "-m", "transformer", "--model", "vit17", "-n", "1", "--functional", "off"});
  const json why = explained({"-m", "transformer", "--model", "vit17", "--no-what-if"});
  EXPECT_EQ(why["cycles"], run["cycles"].get<std::uint64_t>());
  EXPECT_EQ(why["critical_path_cycles"], why["cycles"]);
  EXPECT_EQ(sum_of(why["causes"]), why["cycles"]);
  EXPECT_EQ(sum_of(why["operators"]), why["cycles"]);
  EXPECT_EQ(sum_of(why["path"]), why["cycles"]);
  std::uint64_t at = 0;
  for (const json& step : why["path"]) {
    ASSERT_EQ(step["begin"], at);
    at += step["cycles"].get<std::uint64_t>();
  }
}

/// What the run of a model, or of a program, takes with a change of the machine.
double cycles_with(const json& change, const std::string& preset, const Words& model) {
  const std::string key = change["key"];
  const std::string::size_type dot = key.find('.');
  const json machine = json_of({"machine", preset, "--json"});
  const double before = machine[key.substr(0, dot)][key.substr(dot + 1)];
  const auto after = static_cast<std::uint64_t>(before * change["factor"].get<double>());
  Words run = {
      "run", "-m", preset, "--functional", "off", "--set", key + "=" + std::to_string(after)};
  run.insert(run.end(), model.begin(), model.end());
  return json_of(run)["cycles"];
}

TEST(ExplainCommand, SimulatesEveryChangeOfAShortProgram) {
  const std::string program = test::scratch("kept.program");
  output_of({"map", "-m", "transformer", "--model", "vit17-post", "--out", program});
  const json why = explained({"-m", "transformer", "--model", "vit17-post", "--confirm", "0"});
  std::size_t compared = 0, kept = 0;
  for (const json& change : why["what_if"]) {
    if (change.contains("refused")) continue;
    const bool keeps = change["program"] == "kept";
    kept += keeps ? 1 : 0;
    EXPECT_EQ(keeps, change["kept"].get<double>() < change["predicted"].get<double>()) << change;
    EXPECT_EQ(change[keeps ? "kept" : "predicted"], change["simulated"]) << change;
    EXPECT_TRUE(change["simulated_joules"].is_number()) << change;
    if (compared++ % 4 != 0) continue;
    EXPECT_EQ(change["predicted"],
              cycles_with(change, "transformer", {"--model", "vit17-post", "-n", "1"}));
    EXPECT_EQ(change["kept"], cycles_with(change, "transformer", {"--program", program}));
  }
  EXPECT_GT(compared, 15U);
  EXPECT_GT(kept, 0U);
}

TEST(ExplainCommand, PredictsWhatALongProgramTakes) {
  const Words model = {"--model", "gpt2", "--layers", "4", "--length", "8"};
  Words arguments = {"-m", "survey", "--confirm", "2"};
  arguments.insert(arguments.end(), model.begin(), model.end());
  const json why = explained(arguments);
  std::size_t simulated = 0, different = 0;
  for (const json& change : why["what_if"]) {
    if (change["simulated"].is_null()) continue;
    const auto cycles = change["simulated"].get<double>();
    const json& predicted = change[change["program"] == "kept" ? "kept" : "predicted"];
    EXPECT_NEAR(predicted.get<double>(), cycles, 0.05 * cycles) << change;
    different += predicted == change["simulated"] ? 0 : 1;
    if (change["program"] == "mapped") EXPECT_EQ(cycles, cycles_with(change, "survey", model));
    ++simulated;
  }
  EXPECT_EQ(simulated, 2U);
  EXPECT_EQ(different, 2U);
}

TEST(ExplainCommand, SaysWhyAMachineCannotBe) {
  const json why = explained({"-m", "vitcod", "--model", "vit17", "--confirm", "0"});
  bool found = false;
  for (const json& change : why["what_if"]) {
    if (!change.contains("refused")) continue;
    found = true;
    EXPECT_TRUE(change["predicted"].is_null());
    EXPECT_NE(change["refused"], "");
  }
  EXPECT_TRUE(found);
}

TEST(ExplainCommand, TextFitsATerminal) {
  for (const Words& arguments :
       {Words{"explain", "-m", "vitcod", "--model", "vit17", "--confirm", "1"},
        Words{"explain", "-m", "gemmini", "--model", "vit17", "--no-what-if"},
        Words{"explain", "-m", "transformer", "--model", "gpt2", "--layers", "1", "--decode",
              "--past", "64", "--confirm", "1"}}) {
    std::istringstream lines(output_of(arguments));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  }
}

}  // namespace
}  // namespace systole::testbench
