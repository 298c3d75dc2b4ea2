#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "support/documented_names.h"
#include "support/program/program_run.h"

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

TEST(ExplainCommand, PredictsWhatARunOfTheChangedMachineTakes) {
  const json why = explained({"-m", "transformer", "--model", "vit17", "--confirm", "3"});
  std::size_t simulated = 0;
  for (const json& change : why["what_if"]) {
    if (change["simulated"].is_null()) continue;
    ++simulated;
    const auto cycles = change["simulated"].get<double>();
    const std::string key = change["key"];
    // Beside a faster core, bus and memory are slower ones: the path does not say in which order
    // their requests then come.
    const double near = key == "core.clock_mhz" ? 0.1 : 0.05;
    EXPECT_NEAR(change["predicted"].get<double>(), cycles, near * cycles) << change;
    const json machine = json_of({"machine", "transformer", "--json"});
    const std::string::size_type dot = key.find('.');
    const double before = machine[key.substr(0, dot)][key.substr(dot + 1)];
    const auto after = static_cast<std::uint64_t>(before * change["factor"].get<double>());
    EXPECT_EQ(json_of({"run", "-m", "transformer", "--model", "vit17", "-n", "1", "--functional",
                       "off", "--set", key + "=" + std::to_string(after)})["cycles"],
              cycles);
  }
  EXPECT_EQ(simulated, 3U);
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
