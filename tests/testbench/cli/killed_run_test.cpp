#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/program/program_run.h"
#include "support/program/running_program.h"
#include "support/temp_directory.h"

namespace systole {
namespace {

using Clock = std::chrono::steady_clock;

/// A command with all files that it writes; those of a --wave have its name.
struct Writer {
  const char* name;
  std::string command;
  std::vector<std::string> files;
  std::string folder;  ///< made by the command; empty: none
};

const std::vector<Writer> kWriters = {
    {"run",
     "run -m tiny --model bert-base --layers 1 --d 16 --heads 2 --ffn 32 --length 8 "
     "--stats stats.json --action-counts counts.yaml --outputs out.safetensors "
     "--timeline line.json --pipeline pipe.kanata --transactions view.ftr --trace bus.csv.gz "
     "--commands commands.csv --wave run.vcd --report page.html",
     {"stats.json", "counts.yaml", "out.safetensors", "line.json", "pipe.kanata", "view.ftr",
      "bus.csv.gz", "commands.csv", "run.vcd", "page.html"},
     ""},
    {"reproduce",
     "reproduce survey --part analysis --stats stats.json --report page.html --plots pictures",
     {"stats.json", "page.html", "pictures/survey_latency.png", "pictures/survey_lengths.png"},
     "pictures"}};

/// What a file says but for times and the command line, to compare two runs.
std::string comparable(const std::string& name, const std::string& bytes) {
  // A page has the times of its run.
  if (name == "page.html") return bytes.substr(bytes.rfind("</html>"));
  if (name != "stats.json") return bytes;
  nlohmann::json document = nlohmann::json::parse(bytes);
  document.erase("wall_seconds");
  document.erase("cycles_per_second");
  return document.dump();
}

class KilledRun : public testing::TestWithParam<Writer> {};

TEST_P(KilledRun, LeavesWholeFilesOnly) {
  const Writer& writer = GetParam();
  const TempDirectory whole;
  const auto begin = Clock::now();
  ASSERT_EQ(run_systole(words_of(writer.command), whole.path()).exit_code, 0);
  const auto took = std::chrono::duration<double>(Clock::now() - begin);

  std::mt19937 random(7);
  int kept = 0, replaced = 0;
  constexpr int kRuns = 16;
  for (int run = 0; run < kRuns; ++run) {
    const TempDirectory directory;
    if (!writer.folder.empty()) std::filesystem::create_directory(directory.path(writer.folder));
    for (const std::string& name : writer.files) directory.write(name, "old");
    RunningProgram program(words_of(writer.command), directory.path());
    // Half of them near the end, when files take their places.
    std::uniform_real_distribution<double> part(run % 2 == 0 ? 0.0 : 0.8, 1.1);
    std::this_thread::sleep_for(took * part(random));
    program.send(SIGKILL);
    program.wait();
    for (const std::string& name : writer.files) {
      const std::string found = read_file(directory.path(name));
      if (found == "old") {
        ++kept;
      } else {
        ++replaced;
        EXPECT_EQ(comparable(name, found), comparable(name, read_file(whole.path(name)))) << name;
      }
    }
  }
  EXPECT_GT(kept, 0) << "no run was killed before its end";
}

INSTANTIATE_TEST_SUITE_P(Commands, KilledRun, testing::ValuesIn(kWriters),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace systole
