/// `systole rtl` and --rtl BLOCK=DIR: RTL of a user's own in place of a block.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/paths.h"
#include "support/program/program_run.h"
#include "support/temp_directory.h"

namespace systole::testbench {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kProduct = {"matmul", "-m", "tiny", "9x10x11", "--json"};

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

/// The example, with a text of one of its files replaced.
void write_example(const TempDirectory& directory, const std::string& file = "",
                   const std::string& what = "", const std::string& by = "") {
  for (const std::string name : {"rtl.toml", "my_requantizer.sv", "adapter.h"}) {
    const std::string text = read_file(source_path("examples/own_rtl/requantizer/" + name));
    directory.write(name, name == file ? replaced(text, what, by) : text);
  }
}

/// Builds what is in the directory, and multiplies with it.
ProgramRun built_and_run(const TempDirectory& directory) {
  const ProgramRun built = run_systole({"rtl", "add", directory.path()});
  EXPECT_EQ(built.exit_code, 0) << built.err;
  std::vector<std::string> arguments = kProduct;
  arguments.insert(arguments.end(), {"--rtl", "requantizer=" + directory.path()});
  return run_systole(arguments);
}

std::uint64_t cycles_in(const ProgramRun& run) { return document_of(run.out)["cycles"]; }
nlohmann::json counts_in(const ProgramRun& run) {
  return document_of(run.out)["rtl"]["requantizer"];
}

/// Exit code 2 and one line.
void expect_refusal(const std::vector<std::string>& arguments, const std::string& text) {
  const ProgramRun run = run_systole(arguments);
  EXPECT_EQ(run.exit_code, 2) << text;
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  EXPECT_THAT(run.err, testing::HasSubstr(text));
}

TEST(OwnRtl, OtherPortsAndAnAdapterTakeTheBlocksPlace) {
  const TempDirectory directory;
  write_example(directory);
  const ProgramRun run = built_and_run(directory);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_GT(counts_in(run)["operations"], 0);
  EXPECT_EQ(counts_in(run)["mismatches"], 0);
  EXPECT_EQ(counts_in(run)["source"], directory.path());
  EXPECT_EQ(cycles_in(run), cycles_in(run_systole(kProduct)));

  const std::vector<std::string> other_lanes = {
      "matmul", "-m", "transformer", "9x10x11", "--rtl", "requantizer=" + directory.path()};
  expect_refusal(other_lanes, "requantizer has 4 lanes, expected postop.lanes of the machine, 16");
  const auto own = [&](const std::string& block) {
    std::vector<std::string> arguments = kProduct;
    arguments.insert(arguments.end(), {"--rtl", block + "=" + directory.path()});
    return arguments;
  };
  expect_refusal(own("i_gelu"), "rtl.toml is of requantizer, expected i_gelu");
  expect_refusal(own("systolic_array"), "expected BLOCK=DIR with one of requantizer");
  // Whoever changes a source has to add it again.
  fs::last_write_time(directory.path("adapter.h"),
                      fs::file_time_type::clock::now() + std::chrono::hours(1));
  expect_refusal(own("requantizer"), "adapter.h: changed after its library was built");
  fs::remove_all(directory.path("systole_build"));
  expect_refusal(own("requantizer"), "has not been built, expected: systole rtl add");
}

TEST(OwnRtl, ACopyOfOursNeedsNoMapping) {
  const TempDirectory directory;
  directory.write("copy.sv", replaced(read_file(source_path("rtl/postop/systole_requantizer.sv")),
                                      "module systole_requantizer", "module renamed"));
  directory.write("rtl.toml",
                  "block = \"requantizer\"\ntop = \"renamed\"\nlanes = 4\n"
                  "sources = [\"copy.sv\"]\nparameters = { Lanes = 4 }\n");
  const ProgramRun run = built_and_run(directory);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_GT(counts_in(run)["operations"], 0);
  EXPECT_EQ(counts_in(run)["mismatches"], 0);
}

TEST(OwnRtl, AWrongValueIsReported) {
  const TempDirectory directory;
  write_example(directory, "my_requantizer.sv", "below + 65'sd1", "below");
  const ProgramRun run = built_and_run(directory);
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_GT(counts_in(run)["mismatches"], 0);
  EXPECT_EQ(cycles_in(run), cycles_in(run_systole(kProduct)));
}

TEST(OwnRtl, ACycleTooManyIsReportedAndSpent) {
  const TempDirectory directory;
  write_example(directory, "rtl.toml", "Stages = 5", "Stages = 6");
  const ProgramRun run = built_and_run(directory);
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_EQ(counts_in(run)["mismatches"], counts_in(run)["operations"]);
  EXPECT_GT(cycles_in(run), cycles_in(run_systole(kProduct)));
}

TEST(OwnRtl, BadManifestsAreOneLine) {
  struct Case {
    const char *what, *by, *says;
  };
  const Case cases[] = {
      {"\"requantizer\"", "\"dma\"", "rtl.toml:2:11: found \"dma\", expected one of requantizer"},
      {"block   = \"requantizer\"", "", "block is missing"},
      {"lanes   = 4", "lanes = 0", "found 0, expected 1 to 31"},
      {"my_requantizer.sv", "none.sv", "found \"none.sv\", expected a file below"},
      {"\"my_requantizer\"", "\"my-top\"", "found \"my-top\", expected a name of letters"},
      {"[adapter]", "[adaptor]", "adaptor: unknown key, expected one of block"},
      {"Stages = 5", "Stages = \"five\"", "found \"five\", expected an integer"},
      {"\"low\"", "3", "found 3, expected a text"},
      {"[ports]", "[ports", "rtl.toml:"},
  };
  for (const Case& one : cases) {
    const TempDirectory directory;
    write_example(directory, "rtl.toml", one.what, one.by);
    expect_refusal({"rtl", "add", directory.path()}, one.says);
    EXPECT_FALSE(fs::exists(directory.path("systole_build")));
  }
  const TempDirectory empty;
  expect_refusal({"rtl", "add", empty.path()}, "rtl.toml");
  expect_refusal({"rtl", "ports", "dma"}, "rtl ports: found dma, expected one of requantizer");
}

TEST(OwnRtl, PortsThatDoNotFitAreOneLine) {
  struct Case {
    const char *file, *what, *by, *says;
  };
  const Case cases[] = {
      {"rtl.toml", "\"s_tkeep\"", "\"s_keep\"", "my_requantizer has no port s_keep, expected one"},
      {"rtl.toml", "Lanes  = 4", "Lanes = 8",
       "port s_tkeep of my_requantizer: found an input of 8"},
      {"my_requantizer.sv", "aclk,\n", "aclk, input logic test_mode,\n", "test_mode of my_requant"},
  };
  for (const Case& one : cases) {
    const TempDirectory directory;
    write_example(directory, one.file, one.what, one.by);
    // Without its adapter, which may do what the check cannot know.
    std::string manifest = read_file(directory.path("rtl.toml"));
    manifest = replaced(manifest.substr(0, manifest.find("[adapter]")), "[ports]",
                        "[ports]\nrst_ni = \"areset\"");
    directory.write("rtl.toml", manifest);
    expect_refusal({"rtl", "add", directory.path()}, one.says);
  }
}

TEST(OwnRtl, PortsAreThoseOfTheBlock) {
  const std::string ports = output_of({"rtl", "ports", "requantizer", "--lanes", "8"});
  EXPECT_THAT(ports, testing::ContainsRegex("\nmultiplier_i +input +256\n"));
  EXPECT_THAT(ports, testing::ContainsRegex("\nmask_o +output +8\n"));
}

}  // namespace
}  // namespace systole::testbench
