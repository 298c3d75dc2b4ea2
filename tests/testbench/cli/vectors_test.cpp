#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/paths.h"
#include "support/program/program_run.h"
#include "support/temp_directory.h"

/// `systole vectors` on several files, and on all that the repository has.
namespace systole::testbench {
namespace {

using nlohmann::json;

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
    const json files = json::parse(run.out);
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
  const json files = json::parse(run.out);
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0]["failed"], 0);
  EXPECT_EQ(files[0]["rtl_values"], json::parse(read_file(roots))["cases"].size());
}

}  // namespace
}  // namespace systole::testbench
