#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/paths.h"
#include "support/program/program_run.h"
#include "support/temp_directory.h"

namespace systole::testbench {
namespace {

using nlohmann::json;

// `systole vectors --rtl`; what it refuses is in refusals.txt.

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
  json result = document_of(run.out);
  EXPECT_EQ(result["rtl_values"], values);
  json model = document_of(run_systole({"vectors", golden_path(name), "--json"}).out);
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

// `systole vectors` on several files, and on all that the repository has.

std::string datapath_file(const std::string& name) {
  return source_path("tests/golden/datapath/" + name + ".json");
}

std::vector<std::string> vectors(std::vector<std::string> files) {
  files.insert(files.begin(), "vectors");
  return files;
}

/// All files of a folder below tests/golden, as a shell's *.json gives them.
std::vector<std::string> golden_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(source_path("tests/golden/" + folder))) {
    files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(Vectors, EveryFileOfTheRepositoryPassesInOneCall) {
  for (const char* folder : {"datapath", "ibert", "ita"}) {
    std::vector<std::string> arguments = vectors(golden_files(folder));
    ASSERT_GE(arguments.size(), 6U) << folder;
    arguments.emplace_back("--json");
    const ProgramRun run = run_systole(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.out;
    EXPECT_EQ(run.err, "");
    const json files = document_of(run.out)["files"];
    ASSERT_EQ(files.size(), arguments.size() - 2);
    for (const json& file : files) {
      EXPECT_EQ(file["failed"], 0) << file;
      EXPECT_GT(file["passed"], 150) << file["file"];
    }
  }
}

TEST(Vectors, AFileThatFailsOrIsBadDoesNotStopTheOthers) {
  const TempDirectory directory;
  json gelu = json::parse(read_file(datapath_file("gelu")));
  gelu["cases"][1]["out"][5] = gelu["cases"][1]["out"][5].get<int>() + 1;
  const std::string wrong = directory.write("wrong.json", gelu.dump());
  const ProgramRun failed = run_systole(vectors({wrong, datapath_file("exp")}));
  EXPECT_EQ(failed.exit_code, 1) << failed.err;
  EXPECT_NE(failed.out.find(" 1 failed\n  first: cases[1]: out[5]: is "), std::string::npos)
      << failed.out;
  EXPECT_NE(failed.out.find("\n" + datapath_file("exp") + "\nexponential: "), std::string::npos)
      << failed.out;

  const std::string bad = directory.write("bad.json", "{}");
  const ProgramRun refused =
      run_systole(vectors({bad, wrong, directory.path("none.json"), datapath_file("exp")}));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.err.find("systole: " + bad + ": op: missing\nsystole: "), 0U) << refused.err;
  EXPECT_NE(refused.err.find("none.json: not a readable file"), std::string::npos) << refused.err;
  EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 2);
  EXPECT_NE(refused.out.find("exponential: "), std::string::npos) << refused.out;
  EXPECT_NE(refused.out.find(" 1 failed\n"), std::string::npos) << refused.out;
}

TEST(Vectors, RtlTakesThePairsOfTheDefaultDatapath) {
  const std::string roots = datapath_file("isqrt");
  const ProgramRun run = run_systole(vectors({"--rtl", datapath_file("exp"), roots, "--json"}));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("exponential not possible with --rtl"), std::string::npos) << run.err;
  const json files = document_of(run.out)["files"];
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0]["failed"], 0);
  EXPECT_EQ(files[0]["rtl_values"], json::parse(read_file(roots))["cases"].size());
}

}  // namespace
}  // namespace systole::testbench
