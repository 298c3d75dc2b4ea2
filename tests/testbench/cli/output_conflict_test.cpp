#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/paths.h"
#include "support/program/bad_input.h"
#include "support/temp_directory.h"
#include "support/text_lines.h"

namespace systole::testbench {
namespace {

namespace fs = std::filesystem;

/// Two options of one command that name the same file.
struct Conflict {
  std::string name;
  Words arguments;  ///< run in a directory with the files below
  std::string first;
  std::string second;
};
void PrintTo(const Conflict& conflict, std::ostream* out) { *out << conflict.name; }

/// Files whose contents do not matter: nothing is read before they are compared.
const Words kFiles{"c.safetensors",      "d.int8.safetensors", "m.npy",         "m.toml",
                   "pictures/0.pgm",     "pictures/1.ppm",     "plots/old.png", "p.s",
                   "data/models/n.toml", "vocab.json",         "t.txt"};

class OutputConflict : public testing::TestWithParam<Conflict> {
 protected:
  OutputConflict() {
    for (const char* folder : {"pictures", "plots", "data", "data/models"}) {
      fs::create_directory(directory_.path(folder));
    }
    for (const std::string& file : kFiles) directory_.write(file, file);
    directory_.write("data/models/known.int8.safetensors", "known");
    fs::create_symlink("d.int8.safetensors", directory_.path("link.json"));
    fs::create_symlink("new.json", directory_.path("dangling.json"));
    fs::create_symlink("../m.npy", directory_.path("plots/link.png"));
    fs::create_hard_link(directory_.path("d.int8.safetensors"), directory_.path("hard.json"));
    fs::create_directory_symlink(".", directory_.path("here"));
  }
  /// Every file with its contents.
  [[nodiscard]] std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> contents;
    for (const auto& entry : fs::recursive_directory_iterator(directory_.path())) {
      const bool is_file = fs::is_regular_file(entry.path());
      contents[entry.path()] = is_file ? read_file(entry.path()) : "";
    }
    return contents;
  }
  TempDirectory directory_;
};

TEST_P(OutputConflict, IsRefusedInOneLineAndNothingIsTouched) {
  const auto before = contents();
  const ProgramRun run = run_systole(GetParam().arguments, directory_.path(),
                                     {{"SYSTOLE_DATA", directory_.path("data")}});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(lines_of(run.err).size(), 1U) << run.err;
  EXPECT_THAT(run.err, testing::HasSubstr("expected one each"));
  EXPECT_THAT(run.err, testing::HasSubstr(GetParam().first));
  EXPECT_THAT(run.err, testing::HasSubstr(GetParam().second));
  EXPECT_EQ(contents(), before);
}

/// What output_conflicts.txt lists.
const std::vector<Conflict>& conflicts() {
  static const std::vector<Conflict> conflicts = [] {
    std::vector<Conflict> all;
    for (const Words& row : rows_of("tests/testbench/cli/output_conflicts.txt")) {
      all.push_back({row.at(0), words_of(row.at(1)), row.at(2), row.at(3)});
    }
    return all;
  }();
  return conflicts;
}

INSTANTIATE_TEST_SUITE_P(Options, OutputConflict, testing::ValuesIn(conflicts()),
                         [](const auto& conflict) { return conflict.param.name; });

/// The options of a command with a value that is a file or a folder.
std::set<std::string> file_options(const std::string& command) {
  std::set<std::string> found;
  for (const std::string& line : lines_of(output_of({command, "--help"}))) {
    if (line.rfind("  ", 0) != 0 || line.rfind("   ", 0) == 0) continue;
    std::istringstream words(line);
    std::string option, type;
    words >> option >> type;
    if (type.rfind("BLOCK", 0) == 0) continue;  // a folder of RTL, in which only rtl add writes
    const bool has_short_form = option.back() == ',' || option.find(',') != std::string::npos;
    if (has_short_form) option = option.substr(option.find(',') + 1);
    for (const char* kind : {"FILE", "DIR", ".npy", ".safetensors"}) {
      if (type.find(kind) != std::string::npos) found.insert(option);
    }
  }
  return found;
}

TEST(OutputConflicts, EveryFileOfACommandThatWritesFilesIsAmongThem) {
  std::map<std::string, std::set<std::string>> covered;
  for (const Conflict& conflict : conflicts()) {
    covered[conflict.arguments.front()].insert({conflict.first, conflict.second});
  }
  for (const auto& [command, options] : covered) {
    EXPECT_EQ(options, file_options(command)) << command;
  }
  // The others write none.
  EXPECT_EQ(file_options("machine"), std::set<std::string>{"machine"});
  EXPECT_EQ(file_options("vectors"), std::set<std::string>{"file"});
}

TEST(OutputConflicts, DifferentFilesAreNone) {
  const TempDirectory directory;
  fs::create_directory(directory.path("plots"));
  const Words arguments{"matmul", "8x8x8", "-m", "./m.toml", "--stats", "plots/m.toml"};
  directory.write("m.toml", read_file(source_path("traces/machines/tiny.toml")));
  EXPECT_EQ(run_systole(arguments, directory.path()).exit_code, 0);
}

TEST(OutputConflicts, DevicesAreNone) {
  const ProgramRun run = run_systole(
      {"map", "-m", "tiny", "--model", "vit17", "--out", "/dev/null", "--asm", "/dev/null"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

}  // namespace
}  // namespace systole::testbench
