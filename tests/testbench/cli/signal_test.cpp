#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "support/program/bad_input.h"
#include "support/program/running_program.h"
#include "support/temp_directory.h"

namespace systole::testbench {
namespace {

/// A run that begins at once and takes a minute.
Words long_run(const Words& more) {
  Words arguments =
      shape("gpt2", {"--length", "16", "--layers", "1", "--functional", "off", "-n", "1000"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// Long runs, ended by a signal.
class EndedBySignal : public testing::TestWithParam<int> {
 protected:
  /// Files of the program that are not in their place yet.
  [[nodiscard]] std::size_t unfinished() const {
    std::size_t count = 0;
    for (const std::string& name : directory_.names()) count += name.rfind(".systole-", 0) == 0;
    return count;
  }
  void expect_ended(RunningProgram& program) const {
    program.send(GetParam());
    const int status = program.wait();
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
    EXPECT_EQ(WTERMSIG(status), GetParam());
  }

  TempDirectory directory_;
};

TEST_P(EndedBySignal, NothingUnfinishedIsLeftAndTheTargetsAreAsBefore) {
  const Words targets{"a.json", "run.gtkw", "run.vcd", "t.json"};
  for (const std::string& target : targets) directory_.write(target, "old");
  RunningProgram program(
      long_run({"--stats", "a.json", "--timeline", "t.json", "--wave", "run.vcd"}),
      directory_.path());
  // Statistics, timeline, waveform, its view and its six tables.
  ASSERT_TRUE(wait_until([&] { return unfinished() == 10; }));
  EXPECT_FALSE(program.ignores(GetParam()));
  expect_ended(program);
  EXPECT_EQ(directory_.names(), targets);
  for (const std::string& target : targets) EXPECT_EQ(read_file(directory_.path(target)), "old");
}

TEST_P(EndedBySignal, NoWaveformOfABlockInRtlIsLeft) {
  directory_.write("run.softmax_unit.fst", "old");
  RunningProgram program({"run", "-m", "tiny", "--model", "vit17", "--rtl", "softmax_unit",
                          "--wave", "run.vcd", "--wave-images", "0"},
                         directory_.path());
  // The waveform of the block, what its writer needs until it is closed, and the files above but
  // two.
  ASSERT_TRUE(wait_until([&] { return unfinished() == 10; }));
  expect_ended(program);
  EXPECT_EQ(directory_.names(), Words{"run.softmax_unit.fst"});
  EXPECT_EQ(read_file(directory_.path("run.softmax_unit.fst")), "old");
}

TEST_P(EndedBySignal, SimulationsBesideItEndToo) {
  RunningProgram program({"reproduce", "dfx", "--stats", "a.json"}, directory_.path());
  std::vector<pid_t> children;
  ASSERT_TRUE(wait_until([&] {
    children = program.children();
    return !children.empty();
  }));
  expect_ended(program);
  for (const pid_t child : children) {
    EXPECT_TRUE(wait_until([&] { return !is_running(child); })) << child;
  }
  EXPECT_THAT(directory_.names(), testing::IsEmpty());
}

TEST_P(EndedBySignal, SoDoesGnuplotAndNoPictureIsLeft) {
  const TempDirectory tools;
  ::chmod(tools.write("gnuplot", "#!/bin/sh\nexec sleep 1000\n").c_str(), 0755);
  std::filesystem::create_directory(directory_.path("pictures"));
  directory_.write("pictures/survey_lengths.png", "old");
  RunningProgram program({"reproduce", "survey", "--part", "analysis", "--plots", "pictures"},
                         directory_.path(), {{"PATH", tools.path() + ":/usr/bin:/bin"}});
  std::vector<pid_t> children;
  ASSERT_TRUE(wait_until([&] {
    children = program.children();
    return !children.empty();
  }));
  expect_ended(program);
  EXPECT_TRUE(wait_until([&] { return !is_running(children.front()); }));
  const std::filesystem::directory_iterator pictures(directory_.path("pictures"));
  EXPECT_EQ(std::distance(begin(pictures), end(pictures)), 1);
  EXPECT_EQ(read_file(directory_.path("pictures/survey_lengths.png")), "old");
}

TEST_P(EndedBySignal, ASignalThatIsIgnoredFromOutsideStaysSo) {
  RunningProgram program(long_run({"--stats", "a.json"}), directory_.path(), {}, GetParam());
  ASSERT_TRUE(wait_until([&] { return unfinished() == 1; }));
  // SIGKILL may overtake a signal that is not ignored.
  EXPECT_TRUE(program.ignores(GetParam()));
  program.send(GetParam());
  program.send(SIGKILL);
  const int status = program.wait();
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_EQ(unfinished(), 1U) << "nothing was cleaned up";
}

INSTANTIATE_TEST_SUITE_P(Signals, EndedBySignal, testing::Values(SIGINT, SIGTERM),
                         [](const auto& signal) {
                           return std::string(::sigabbrev_np(signal.param));
                         });

}  // namespace
}  // namespace systole::testbench
