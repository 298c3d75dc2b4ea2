#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "hw/program/program.h"
#include "support/documented_names.h"
#include "support/program/program_run.h"

namespace systole::testbench {
namespace {

using nlohmann::json;

std::string analysis_text(Words arguments) {
  arguments.insert(arguments.begin(), "analyse");
  return output_of(arguments);
}

json analysis_of(Words arguments) {
  arguments.insert(arguments.begin(), "analyse");
  return json_of(std::move(arguments));
}

json simulated() {
  return analysis_of({"--model", "vit17", "-m", "transformer", "--simulate", "--bound"});
}

TEST(Analyse, EveryNameIsDocumentedAndNoOther) {
  test::expect_documented(
      {simulated(), analysis_of({"--product", "32x32x32", "--dataflow", "all"})},
      "docs/analyse.md");
}

TEST(Analyse, TextFitsATerminal) {
  for (const Words& arguments :
       {Words{"--model", "gpt2-xl", "--length", "4096"},
        Words{"--model", "bert-large", "-m", "gemmini", "--length", "32", "--projections", "3"},
        Words{"--model", "vit17", "-m", "transformer", "--simulate", "--bound"},
        Words{"--model", "vit65-sparse90-ae", "-m", "vitcod", "--simulate"},
        Words{"--product", "65536x1024x1024", "--dataflow", "all", "-m", "gemmini"}}) {
    std::istringstream lines(analysis_text(arguments));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(Analyse, TheCausesMakeUpTheWholeDifference) {
  const json document = simulated();
  std::uint64_t simulated_cycles = 0;
  double slowest_cycles = 0;
  for (const json& row : document["mapped"]) {
    double causes = 0;
    for (const auto& [name, cycles] : row["causes"].items()) causes += cycles.get<double>();
    const double slowest = row["slowest_cycles"];
    EXPECT_NEAR(slowest + causes, row["simulated_cycles"].get<double>(), 1e-6 * slowest)
        << row["name"];
    EXPECT_GE(slowest + 1e-9, row["array_cycles"].get<double>());
    simulated_cycles += row["simulated_cycles"].get<std::uint64_t>();
    slowest_cycles += slowest;
  }
  EXPECT_EQ(document["mapped_total"]["simulated_cycles"], simulated_cycles);
  EXPECT_NEAR(document["mapped_total"]["slowest_cycles"].get<double>(), slowest_cycles, 1e-3);
  // From the start to the first command, and from the last one to the interrupt.
  EXPECT_GE(document["cycles"].get<std::uint64_t>(), simulated_cycles);
  EXPECT_LE(document["cycles"].get<std::uint64_t>(), simulated_cycles + 500);
}

TEST(Analyse, ExpectsWhatTheMapperExpects) {
  const json map = json_of({"map", "-m", "transformer", "--model", "vit65"});
  const json total =
      analysis_of({"--model", "vit65", "-m", "transformer", "--simulate"})["mapped_total"];
  EXPECT_EQ(total["expected_cycles"], map["expected_cycles"]);
  EXPECT_EQ(total["expected_load_bytes"], map["load_bytes"]);
  // Its replay of the program comes close.
  const auto off = [&](const char* expected, const char* found) {
    return total[expected].get<double>() / total[found].get<double>() - 1;
  };
  EXPECT_NEAR(off("expected_cycles", "simulated_cycles"), 0, 0.05);
  EXPECT_NEAR(off("expected_load_bytes", "load_bytes"), 0, 0.05);
  EXPECT_LT(total["load_bytes"], total["read_bytes"]) << "which has tensor operands and commands";
}

TEST(Analyse, ExpectsTheBytesThatAreMoved) {
  for (const auto& [machine, model] : {std::pair{"transformer", "vit17"},
                                       {"transformer", "vit65"},
                                       {"vitcod", "vit65-sparse90"},
                                       {"vitcod", "vit65-sparse90-ae"}}) {
    const json expected = analysis_of({"-m", machine, "--model", model})["mapped_total"];
    const ProgramRun run = run_systole(
        {"run", "-m", machine, "--model", model, "-n", "1", "--functional", "off", "--json"});
    const json measured = document_of(run.out);
    // The command that ends a program belongs to no operator.
    EXPECT_EQ(expected["read_bytes"].get<std::uint64_t>() + hw::kCommandBytes,
              measured["dram_read_bytes"]);
    EXPECT_EQ(expected["written_bytes"], measured["dram_write_bytes"]);
    // Pruned cells are no work of the attention engines.
    EXPECT_LE(expected["macs"], measured["macs"]);
  }
}

TEST(Analyse, IsNearTheSimulationWhereTheArrayIsTheLimit) {
  // Products of 128 and more rows with all weights streamed, as contracts see it best.
  const json document =
      analysis_of({"--model", "deit-small", "-m", "transformer", "--simulate"})["mapped_total"];
  const double ratio =
      document["simulated_cycles"].get<double>() / document["slowest_cycles"].get<double>();
  EXPECT_GT(ratio, 1.0);
  EXPECT_LT(ratio, 1.2);
}

TEST(Analyse, NothingIsBelowTheBoundAndTheMappingIsOnItsCurve) {
  const json document = analysis_of({"--model", "vit65", "-m", "transformer", "--bound"});
  const double bound = document["bound"];
  EXPECT_EQ(
      bound,
      std::max({document["bound_array"].get<double>(), document["bound_memory"].get<double>(),
                document["bound_postop"].get<double>(), document["bound_latency"].get<double>()}));
  const json run = json_of({"run", "-m", "transformer", "--model", "vit65", "-n", "1"});
  EXPECT_EQ(run["bound"], bound);
  EXPECT_EQ(run["over_bound"].get<double>(), run["cycles"].get<double>() / bound);
  EXPECT_GE(run["over_bound"], 1.0);
  EXPECT_GE(document["mapped_bytes"], document["bound_bytes"]);
  double last = 1e30;
  for (const json& point : document["bound_curve"]) {
    EXPECT_LE(point["bytes"], last) << "more capacity, more traffic";
    last = point["bytes"];
  }
  EXPECT_EQ(document["bound_curve"].size(), 12U);
}

TEST(Analyse, DrawsTheBound) {
  const TempDirectory directory;
  const ProgramRun run = run_systole({"analyse", "--model", "vit17", "-m", "tiny", "--bound",
                                      "--plots", directory.path("pictures")});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("least of any mapping"), std::string::npos);
  EXPECT_EQ(read_file(directory.path("pictures/bound.png")).substr(1, 3), "PNG");
}

}  // namespace
}  // namespace systole::testbench
