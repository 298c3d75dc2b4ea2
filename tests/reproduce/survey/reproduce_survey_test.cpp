#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "reproduce/survey/survey.h"
#include "support/paths.h"
#include "support/program/program_run.h"
#include "support/temp_directory.h"
#include "tests/reproduce/reproduction_rows.h"

namespace systole::testbench {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// The command `systole reproduce survey`.

TEST(ReproduceSurvey, TheAnalysisIsAsPrinted) {
  const ProgramRun run = run_systole({"reproduce", "survey", "--part", "analysis", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.out << run.err;
  const json document = document_of(run.out);
  expect_good_rows(document);
  EXPECT_EQ(document["failed"], 0);
  std::map<std::string, int> passed, references;
  for (const json& row : document["rows"]) {
    const std::string source = row["source"];
    ++(row["verdict"] == "pass" ? passed : references)[source];
  }
  // Five classes by three figures, and four shares by two; less three cells that contradict others.
  EXPECT_EQ(passed["survey, tab. 3"], 3 * (5 * 3 + 4 * 2) - 3);
  EXPECT_EQ(references["survey, tab. 3"], 3);
  EXPECT_EQ(references["Horowitz, ISSCC 2014: 64 bits of a cache, 45 nm"], 3);
  EXPECT_EQ(references["Gemmini, DAC 2021, Intel 22 nm, second-hand"], 4);
  EXPECT_EQ(passed["survey, tab. 5"], 3 * 7);
  EXPECT_EQ(passed["survey, tab. 10"], 3 * 5);
  EXPECT_EQ(passed["survey, tab. 11"], 3 * (5 * 3 - 2) - 1);
  EXPECT_EQ(passed["survey, tab. 12"], 12 * 3);
  // One label of each is smaller than its last digit is worth.
  EXPECT_EQ(passed["survey, fig. 32"], 3 * 6 - 1);
  EXPECT_EQ(passed["survey, fig. 5"], 3 * 6 - 1);
  EXPECT_EQ(references["survey, fig. 5"], 7) << "and BERT-Large with all projections";
  for (const char* figure : {"survey, fig. 4", "survey, fig. 6"}) {
    EXPECT_EQ(passed[figure], 3 * 6) << figure;
    EXPECT_EQ(references[figure], 6) << figure << ": BERT-Large with all projections";
  }
}

double ours(const json& document, const std::string& name) {
  return row_of(document, name)["ours"];
}

/// Shares of what is pruned are those that `systole sparsify` says accuracy lasts for.
void expect_pruned_as_sparsify_says(const json& document) {
  for (const std::string structure : {"heads", "neurons", "tokens"}) {
    const ProgramRun pruned = run_systole(
        {"sparsify", "words", "-i", source_path("traces/data/words.safetensors"), "--structure",
         structure, "--curve", "0.1,0.2,0.3,0.4,0.5", "-m", "transformer", "--json"});
    ASSERT_EQ(pruned.exit_code, 0) << pruned.err;
    const json curve = document_of(pruned.out);
    const json& points = curve["curve"];
    const double whole = points[0]["accuracy"];
    json last = points[0];
    for (const json& point : points) {
      if (point["accuracy"].get<double>() < whole - 0.02) break;
      last = point;
    }
    EXPECT_LT(last["wanted"].get<double>(), 0.5) << "the end lies within these shares";
    EXPECT_DOUBLE_EQ(
        ours(document, structure + " gone" + (structure == "tokens" ? ", 30 at least" : "")),
        100.0 * last["gone"].get<double>() / curve["parts"].get<double>());
    EXPECT_DOUBLE_EQ(ours(document, structure + " gone: % of cycles left"),
                     100.0 * last["cycles"].get<double>() / points[0]["cycles"].get<double>());
    EXPECT_DOUBLE_EQ(ours(document, "accuracy of the whole, %"), 100.0 * whole);
  }
}

TEST(ReproduceSurvey, TheWholeMeetsItsBoundsAndDrawsPictures) {
  const TempDirectory directory;
  const bool draws = std::system("gnuplot --version >/dev/null 2>&1") == 0;
  std::vector<std::string> arguments{"reproduce", "survey", "--stats", "a.json"};
  if (draws) arguments.insert(arguments.end(), {"--plots", "pictures"});
  const ProgramRun run = run_systole(arguments, directory.path());
  ASSERT_EQ(run.exit_code, 0) << run.out << run.err;

  const json document = document_of(read_file(directory.path("a.json")));
  expect_good_rows(document);
  EXPECT_EQ(document["failed"], 0);
  EXPECT_EQ(row_of(document, "softmax reads, a layer")["bound"], "equal");
  // Deferred, a row is read once for its maximum and once on its way out.
  EXPECT_EQ(ours(document, "deferred: softmax reads"),
            ours(document, "softmax reads, a layer") * 2 / 3);
  EXPECT_LT(ours(document, "all fused: a layer"), ours(document, "BERT: a layer"));
  EXPECT_EQ(row_of(document, "the same, as the text has it")["verdict"], "reference") << "36 %";
  EXPECT_EQ(row_of(document, "baseline to optimised")["verdict"], "pass");
  EXPECT_EQ(row_of(document, "cases of the same sign")["verdict"], "pass");

  expect_pruned_as_sparsify_says(document);

  std::istringstream lines(run.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  EXPECT_EQ(run.out.find(".."), std::string::npos) << "a name was cut short:\n" << run.out;
  EXPECT_THAT(run.out, HasSubstr("231.93     231.93  GFLOP"));
  EXPECT_THAT(run.out, HasSubstr("0.0031     0.0031  GB"));
  EXPECT_THAT(run.out, HasSubstr("The host's costs are fitted"));
  EXPECT_THAT(run.out, HasSubstr("That cannot follow from the"));
  for (const char* name : {"lengths", "latency", "splits", "shares"}) {
    if (!draws) break;
    const std::string png =
        read_file(directory.path(std::string("pictures/survey_") + name + ".png"));
    EXPECT_EQ(png.substr(1, 3), "PNG") << name;
    EXPECT_GT(png.size(), 5000U) << name;
  }
}

// Cycles of the RTL (FireSim, artifact of DOSA), by M x N x K.
TEST(GemminiMatmul, TakesTheCyclesOfTheRtl) {
  struct Measured {
    MatmulShape shape;
    double cycles, tolerance;
  };
  const Measured measured[] = {{{128, 768, 768}, 345'931, 0.05},
                               {{128, 3072, 768}, 1'533'044, 0.05},
                               {{128, 768, 3072}, 1'518'059, 0.05},
                               {{128, 128, 64}, 6'706, 0.05},
                               {{128, 64, 128}, 7'517, 0.05}};
  const SplitRun run = run_measured_products();
  ASSERT_EQ(run.products.size(), 5U);
  for (const ProductRun& product : run.products) {
    bool known = false;
    for (const Measured& m : measured) {
      const MatmulShape& shape = product.product.shape;
      if (shape.m != m.shape.m || shape.n != m.shape.n || shape.k != m.shape.k) continue;
      known = true;
      EXPECT_NEAR(static_cast<double>(product.cycles), m.cycles, m.cycles * m.tolerance)
          << shape.n << " x " << shape.k;
    }
    EXPECT_TRUE(known);
  }
}

}  // namespace
}  // namespace systole::testbench
