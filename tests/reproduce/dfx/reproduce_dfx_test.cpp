/// The command `systole reproduce dfx`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "support/paths.h"
#include "support/program/program_run.h"
#include "support/temp_directory.h"
#include "tests/reproduce/reproduction_rows.h"

namespace systole::testbench {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json rows_of(const std::string& parts) {
  const ProgramRun run = run_systole({"reproduce", "dfx", "--part", parts, "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  json document = document_of(run.out);
  expect_good_rows(document);
  EXPECT_EQ(document["failed"], 0);
  return document;
}

double dfx_ours(const json& document, const std::string& name) {
  return row_of(document, name)["ours"];
}

TEST(ReproduceDfx, ATokenCostsTheBoardsForItsPass) {
  const json document = rows_of("energy");
  EXPECT_EQ(document["failed"], 0);
  EXPECT_EQ(document["by_class"]["published"]["passed"], 0) << "no evidence";
  EXPECT_EQ(document["by_class"]["calibrated"]["passed"], 1);
  // 45 W; a pass of 345M is within 8 % of the published ones.
  EXPECT_NEAR(dfx_ours(document, "345M x1: a token"), 45 * 5.371, 0.08 * 45 * 5.371);
  EXPECT_NEAR(dfx_ours(document, "345M x4: a token"), 4 * 45 * 2.409, 0.08 * 4 * 45 * 2.409);
  // 707 MB at 160 pJ a byte, and half as many products at 1.5 pJ.
  EXPECT_NEAR(dfx_ours(document, "345M x1: HBM, by event"), 706.9 * 0.160, 0.02 * 706.9 * 0.160);
  EXPECT_NEAR(dfx_ours(document, "345M x1: products, by event"), 353.4e-3 * 1.5, 0.01);
  EXPECT_NEAR(dfx_ours(document, "throughput x power of the boards"), 3.78 * 47.5 / 45, 1e-9);
  EXPECT_NEAR(dfx_ours(document, "1.5B on four V100s: a token"), 4 * 47.5 * 75.47, 1e-6);
  EXPECT_NEAR(dfx_ours(document, "GPU's price, if by latency"), 8.21 / 5.58, 1e-9);
}

TEST(ReproduceDfx, ABatchGainsWhereWeightsOrTimeAreShared) {
  const json document = rows_of("batch");
  EXPECT_EQ(document["by_class"]["follows"]["passed"], 6);
  const double one = dfx_ours(document, "serial, 1 text");
  EXPECT_NEAR(dfx_ours(document, "serial, 32 texts"), one, 0.02 * one);
  EXPECT_GT(dfx_ours(document, "shared, 32 texts"), 1.05 * one);
  EXPECT_GT(dfx_ours(document, "pipelined, 32 texts"), dfx_ours(document, "shared, 32 texts"));
  EXPECT_LT(dfx_ours(document, "pipelined, 1 text"), one / 2);
  // A token of a text takes a step; 32 of them are generated in it.
  EXPECT_NEAR(dfx_ours(document, "pipelined, 32 texts: a step"),
              32e3 / dfx_ours(document, "pipelined, 32 texts"), 1e-6);
  // Two rings share the host's link alone.
  EXPECT_NEAR(dfx_ours(document, "two rings"), 2 * dfx_ours(document, "one ring"), 0.5);
  EXPECT_NEAR(dfx_ours(document, "one ring: the last request"),
              2 * dfx_ours(document, "two rings: the last request"), 0.01);
  EXPECT_LT(dfx_ours(document, "at 0.1 GB/s: two over one"), 1.95);
  EXPECT_GT(dfx_ours(document, "drawn: two rings over one"), 1.99);
}

TEST(ReproduceDfx, BoundsAreThoseOfTheSizes) {
  const json document = rows_of("bounds");
  // Two figures of a tenth of a percent or less are printed too coarsely to be met.
  EXPECT_EQ(document["passed"], document["rows"].size() - 2);
  EXPECT_EQ(document["by_class"]["follows"]["passed"].get<int>() +
                document["by_class"]["published"]["passed"].get<int>(),
            document["passed"]);
  EXPECT_EQ(dfx_ours(document, "345M x1: a token"), 345184);
  EXPECT_EQ(dfx_ours(document, "1.5B x4: a token"), 350640);
  EXPECT_EQ(row_of(document, "774M x2: a layer")["bound"], "equal");
  // 24 layers of 12 x 1024 x 1024 weights and 50272 columns, which are whole slices.
  EXPECT_DOUBLE_EQ(dfx_ours(document, "345M: weights"),
                   2e-6 * (24 * 12 * 1024.0 * 1024.0 + 50272 * 1024.0));
}

/// The bounds, with a file in which `from` is `to`.
ProgramRun bounds_with(const std::string& from, const std::string& to) {
  namespace fs = std::filesystem;
  const TempDirectory directory;
  fs::copy(source_path("traces/machines"), directory.path("machines"));
  fs::create_directory(directory.path("published"));
  std::string text = read_file(source_path("traces/published/dfx.toml"));
  text.replace(text.find(from), from.size(), to);
  directory.write("published/dfx.toml", text);
  return run_systole({"reproduce", "dfx", "--part", "bounds"}, ".",
                     {{"SYSTOLE_DATA", directory.path()}});
}

TEST(ReproduceDfx, AFigureOfTheFileThatIsNotMetFails) {
  EXPECT_EQ(bounds_with("12288", "12288").exit_code, 0);
  const ProgramRun run = bounds_with("12288", "12289");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, HasSubstr("FAILS follows ="));
}

TEST(ReproduceDfx, ARowOfNoKnownSizeOrCoresIsRefused) {
  for (const char* name : {"345N x1", "345M x", "345", "345M x1x", "x9"}) {
    const ProgramRun run = bounds_with("345M x1\", 1024", std::string(name) + "\", 1024");
    EXPECT_EQ(run.exit_code, 2) << name;
    EXPECT_EQ(run.err, "systole: published/dfx.toml: found '" + std::string(name) +
                           "', expected a size and cores: 345M x4\n");
  }
}

TEST(ReproduceDfx, ExchangesAndBytesAreExact) {
  const json document = rows_of("checks");
  for (const char* name : {"345M x4: exchanges of a layer", "1.5B x8: over a link",
                           "1.5B x4, all-reduce: over a link"}) {
    EXPECT_EQ(row_of(document, name)["bound"], "equal") << name;
  }
  EXPECT_EQ(dfx_ours(document, "345M x1: exchanges of a layer"), 0);
  EXPECT_EQ(dfx_ours(document, "345M x1: over a link"), 0);
  EXPECT_EQ(dfx_ours(document, "1.5B x4, all-reduce: over a link"), 9216);
  EXPECT_GT(dfx_ours(document, "345M x4: hop 2 us"), dfx_ours(document, "345M x2: hop 2 us"));
}

TEST(ReproduceDfx, PredictsSizesAndTellsWhereTheTimeGoes) {
  const TempDirectory directory;
  const ProgramRun run = run_systole(
      {"reproduce", "dfx", "--part", "shares,sizes", "--stats", "a.json"}, directory.path());
  ASSERT_EQ(run.exit_code, 0) << run.out << run.err;
  const json document = document_of(read_file(directory.path("a.json")));
  expect_good_rows(document);
  EXPECT_EQ(row_of(document, "norm and residual, time to operations")["verdict"], "reference");
  EXPECT_EQ(row_of(document, "dfx: V, K, Q: a layer")["verdict"], "pass");
  EXPECT_LT(dfx_ours(document, "dfx: V, K, Q: exposed"),
            dfx_ours(document, "dfx: Q, K, V: exposed"));
  EXPECT_LT(dfx_ours(document, "1.5B x4: a pass"), dfx_ours(document, "1.5B x2: a pass"));
  EXPECT_LT(dfx_ours(document, "1.5B x4: a pass"), dfx_ours(document, "1.5B, 25 heads x4: a pass"));

  std::istringstream lines(run.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  EXPECT_EQ(run.out.find(".."), std::string::npos) << "a name was cut short:\n" << run.out;
  EXPECT_THAT(run.out, HasSubstr("calibrated on 345M alone"));
}

}  // namespace
}  // namespace systole::testbench
