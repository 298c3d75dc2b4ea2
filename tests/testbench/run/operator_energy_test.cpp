#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "support/program/program_run.h"
#include "support/temp_directory.h"
#include "support/text_lines.h"

namespace systole::testbench {
namespace {

using nlohmann::json;

/// Joules of all operators by cause.
std::map<std::string, double> by_cause(const json& statistics) {
  std::map<std::string, double> sums;
  for (const json& op : statistics["operators"]) {
    double sum = 0;
    for (const auto& [cause, joules] : op["energy"].items()) {
      EXPECT_GE(joules.get<double>(), 0.0) << op["name"] << " " << cause;
      sums[cause] += joules.get<double>();
      sum += joules.get<double>();
    }
    EXPECT_NEAR(sum, op["energy_joules"].get<double>(), 1e-12 * sum) << op["name"];
  }
  return sums;
}

// Every event of the units happens in a command, so it belongs to an operator: sums are equal, not
// only close. The bus carries commands and page tables besides, and static power does not stop
// between the core's end and the host's.
TEST(OperatorEnergy, OperatorsAndTheRestAreTheRun) {
  const std::vector<std::vector<std::string>> runs = {
      {"-m", "transformer", "--model", "vit17"},
      {"-m", "transformer", "--model", "vit17", "--set", "preop.lanes=16"},
      {"-m", "transformer", "--model", "vit17", "--set", "l2.kib=64"},
      {"-m", "tiny", "--model", "vit17", "--strategy", "search"},
      {"-m", "gemmini", "--model", "vit17"},
      {"-m", "vitcod", "--model", "vit65-sparse90"}};
  for (std::vector<std::string> arguments : runs) {
    arguments.insert(arguments.begin(), "run");
    arguments.insert(arguments.end(), {"-n", "1", "--functional", "off"});
    const json run = json_of(arguments);
    const std::string what = arguments[2] + " " + arguments.at(arguments.size() - 4);
    const std::map<std::string, double> operators = by_cause(run);
    double sum = 0, other = 0;
    for (const auto& [cause, joules] : run["energy"].items()) {
      const double all = joules.get<double>(), theirs = operators.at(cause);
      sum += theirs;
      other += all - theirs;
      if (cause == "bus" || cause == "dram" || cause == "l2" || cause == "leakage") {
        EXPECT_LE(theirs, all * (1 + 1e-12)) << what << " " << cause;
        EXPECT_GE(theirs, 0.7 * all) << what << " " << cause;
      } else {
        EXPECT_NEAR(theirs, all, 1e-12 * all) << what << " " << cause;
      }
    }
    EXPECT_GT(other, 0) << what;
    EXPECT_NEAR(run["energy_other_joules"].get<double>(), other, 1e-9 * sum) << what;
    EXPECT_NEAR(sum + run["energy_other_joules"].get<double>(), run["energy_joules"].get<double>(),
                1e-12 * sum)
        << what;
  }
}

TEST(OperatorEnergy, LoopsOfAnUnrollerHaveAllOfTheirBytes) {
  const json run = json_of({"matmul", "96x64x128", "-m", "gemmini-bare"});
  const std::map<std::string, double> operators = by_cause(run);
  for (const char* cause : {"mac", "postop", "scratchpad", "accumulator", "bus", "dram"}) {
    EXPECT_GT(operators.at(cause), 0.0) << cause;
    EXPECT_NEAR(operators.at(cause), run["energy"][cause].get<double>(),
                1e-12 * operators.at(cause))
        << cause;
  }
}

// The same events, as another tool reads them.
TEST(OperatorEnergy, ActionCountsAreTheEventsOfTheRun) {
  const TempDirectory directory;
  const std::string path = directory.path("counts.yaml");
  const json run = json_of({"run", "-m", "transformer", "--model", "vit17", "-n", "2",
                            "--functional", "off", "--action-counts", path});
  std::map<std::string, double> counts;
  std::string name;
  for (const std::string& line : lines_of(read_file(path))) {
    std::smatch found;
    if (std::regex_search(line, found, std::regex("- name: system\\.([a-z0-9]+)"))) {
      name = found[1];
    } else if (std::regex_search(line, found, std::regex("counts: (\\d+)"))) {
      counts[name] = std::stod(found[1]);
    }
  }
  const json costs = json_of({"machine", "transformer", "--costs"});
  const json& energy = costs["energy"];
  const auto joules = [&](const char* block, const char* key, double bytes) {
    return counts.at(block) * bytes * energy[key].get<double>() * 1e-12;
  };
  const auto expect = [&](const char* cause, double found, double tolerance) {
    const double all = 2 * run["energy"][cause].get<double>();
    EXPECT_NEAR(found, all, tolerance * all) << cause;
  };
  expect("mac", joules("mac", "mac_pj", 1), 1e-12);
  expect("postop", joules("postop", "postop_pj", 1), 1e-12);
  // Words are rounded up.
  expect("scratchpad", joules("scratchpad", "scratchpad_byte_pj", 16), 1e-5);
  expect("accumulator", joules("accumulator", "accumulator_byte_pj", 64), 1e-5);
  expect("bus", joules("bus", "bus_byte_pj", 16), 1e-5);
  expect("dram", joules("dram", "dram_byte_pj", 8), 1e-5);
  EXPECT_EQ(counts.count("l2"), 0U);
  EXPECT_EQ(counts.count("host"), 0U);
}

TEST(OperatorEnergy, AreaIsThatOfTheMachine) {
  const json costs = json_of({"machine", "gemmini", "--costs"});
  const json run =
      json_of({"run", "-m", "gemmini", "--model", "vit17", "-n", "1", "--functional", "off"});
  EXPECT_EQ(run["area"], costs["area"]);
  EXPECT_EQ(run["area_mm2"], costs["area_mm2"]);
  double sum = 0;
  for (const auto& [block, mm2] : costs["area"].items()) sum += mm2.get<double>();
  EXPECT_NEAR(sum, costs["area_mm2"].get<double>(), 1e-12);
  EXPECT_GT(sum, 0);
}

}  // namespace
}  // namespace systole::testbench
