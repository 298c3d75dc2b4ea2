#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/paths.h"
#include "support/program/program_run.h"
#include "support/temp_directory.h"

/// `systole vectors --rtl`; what it refuses stands in bad_input_test.cpp.
namespace systole::testbench {
namespace {

using nlohmann::json;

std::string golden_path(const std::string& name) {
  return source_path("tests/golden/ibert/" + name + ".json");
}

json golden(const std::string& name) { return json::parse(read_file(golden_path(name))); }

/// Expects that the golden file passes, compares as much as without RTL, and takes `values` from
/// it.
void expect_passes(const std::string& name, std::size_t values) {
  const ProgramRun run = run_systole({"vectors", golden_path(name), "--rtl", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err << run.out;
  EXPECT_EQ(run.err, "");
  json result = json::parse(run.out);
  EXPECT_EQ(result["rtl_values"], values);
  json model = json::parse(run_systole({"vectors", golden_path(name), "--json"}).out);
  EXPECT_TRUE(model["rtl_values"].is_null());
  result.erase("rtl_values");
  model.erase("rtl_values");
  EXPECT_EQ(result, model);
}

TEST(VectorsOnRtl, SquareRootsPass) {
  const std::size_t roots = golden("isqrt")["cases"].size();
  ASSERT_GT(roots, 100U);
  expect_passes("isqrt", roots);
}

TEST(VectorsOnRtl, RequantisationsOfBothBranchesPass) {
  const json vectors = golden("requant");
  std::size_t values = 0;
  std::size_t residuals = 0;
  for (const json& entry : vectors["cases"]) {
    values += entry["x_int"].size();
    if (entry.contains("identity_int")) residuals += entry["identity_int"].size();
  }
  ASSERT_GT(residuals, 100U);
  expect_passes("requant", values + residuals);
}

TEST(VectorsOnRtl, WrongRootFails) {
  json vectors = golden("isqrt");
  vectors["cases"][3][1] = vectors["cases"][3][1].get<std::uint64_t>() + 1;
  const TempDirectory directory;
  const ProgramRun run =
      run_systole({"vectors", directory.write("bad.json", vectors.dump()), "--rtl"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_NE(run.out.find("\n  first: cases[3] root: is 2, expected 3\n"), std::string::npos)
      << run.out;
  EXPECT_NE(run.out.find(" passed, 1 failed\n"), std::string::npos) << run.out;
  const std::string counted = std::to_string(vectors["cases"].size()) + " values from the RTL\n";
  EXPECT_NE(run.out.find(counted), std::string::npos) << run.out;
}

TEST(VectorsOnRtl, WrongRequantisationFails) {
  json vectors = golden("requant");
  json& residual = vectors["cases"][4];
  ASSERT_TRUE(residual.contains("identity_int"));
  residual["identity_int"][7] = residual["identity_int"][7].get<std::int64_t>() + 100000;
  const TempDirectory directory;
  const ProgramRun run =
      run_systole({"vectors", directory.write("bad.json", vectors.dump()), "--rtl"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_NE(run.out.find("\n  first: q_exact[7]: is "), std::string::npos) << run.out;
  EXPECT_NE(run.out.find(" passed, 1 failed\n"), std::string::npos) << run.out;
}

TEST(VectorsOnRtl, TakesTheEdgesOfItsReach) {
  const json requantisation = {{"op", "fixedpoint_mul (QuantAct requantisation)"},
                               {"cases",
                                {{{"name", "longest shift"},
                                  {"bit_num", 32},
                                  {"S_in", 0x1p-33},
                                  {"S_out", 1.0},
                                  {"m", 1 << 30},
                                  {"e", 63},
                                  {"x_int", {2147483647, -2147483648LL, 1}},
                                  {"q_exact", {0, 0, 0}}},
                                 {{"name", "32-bit results, ties to even"},
                                  {"bit_num", 32},
                                  {"S_in", {1.0, 0.5}},
                                  {"S_out", 1.0},
                                  {"m", {1 << 30, 1 << 30}},
                                  {"e", {30, 31}},
                                  {"x_int", {2147483647, 5, -2147483648LL, -3}},
                                  {"q_exact", {2147483647, 2, -2147483648LL, -2}}}}}};
  const json root = {{"op", "I-Sqrt (paper Algorithm 4)"},
                     {"cases", {{18446744073709551615ULL, 4294967295ULL, 2}, {0, 0, 0}}}};
  const TempDirectory directory;
  for (const json& vectors : {requantisation, root}) {
    const ProgramRun run =
        run_systole({"vectors", directory.write("edge.json", vectors.dump()), "--rtl"});
    EXPECT_EQ(run.exit_code, 0) << run.err << run.out;
  }
}

}  // namespace
}  // namespace systole::testbench
