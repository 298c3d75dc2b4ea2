#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/program/program_run.h"
#include "support/program/running_program.h"
#include "support/temp_directory.h"

namespace systole::testbench {
namespace {

// What a long command says on a terminal, and that it says nothing elsewhere.

/// What the program writes to a terminal on its standard error. Its results are dropped.
std::string on_terminal(const std::vector<std::string>& arguments) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0) {
    throw std::runtime_error("no pseudo-terminal");
  }
  const std::string name = ::ptsname(terminal);
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    const int err = ::open(name.c_str(), O_RDWR | O_NOCTTY);
    const int out = ::open("/dev/null", O_WRONLY);
    // A machine with many processors must not be done before the line appears.
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(::sched_getcpu(), &one);
    ::sched_setaffinity(0, sizeof one, &one);
    if (err < 0 || ::dup2(err, STDERR_FILENO) < 0 || ::dup2(out, STDOUT_FILENO) < 0) ::_exit(126);
    become_systole(arguments);
  }
  std::string text;
  char buffer[4096];
  int status = 0;
  bool ended = false;
  for (;;) {
    pollfd readable{terminal, POLLIN, 0};
    if (::poll(&readable, 1, 50) > 0 && (readable.revents & POLLIN) != 0) {
      const ssize_t bytes = ::read(terminal, buffer, sizeof buffer);
      if (bytes > 0) text.append(buffer, static_cast<std::size_t>(bytes));
      continue;
    }
    if (ended) break;  // and all it has written is read
    ended = ::waitpid(child, &status, WNOHANG) == child;
  }
  ::close(terminal);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << text;
  return text;
}

/// The line as it was drawn each time.
std::vector<std::string> drawn(const std::string& text) {
  static const std::string clear = "\r\x1b[K";
  std::vector<std::string> lines;
  for (std::size_t at = text.find(clear); at != std::string::npos;) {
    const std::size_t next = text.find(clear, at + clear.size());
    lines.push_back(text.substr(at + clear.size(), next - at - clear.size()));
    at = next;
  }
  return lines;
}

// Several times the second after which the line appears, for machines that are faster than ours.
const std::vector<std::string> kLongInference{"run",  "-m",           "transformer", "--model",
                                              "gpt2", "--length",     "1024",        "--layers",
                                              "6",    "--functional", "off"};

TEST(ProgressLine, MovesWithinOneInference) {
  const std::vector<std::string> lines = drawn(on_terminal(kLongInference));
  ASSERT_GE(lines.size(), 3U);  // the last clears it
  EXPECT_EQ(lines.back(), "");
  static const std::regex form("\\[#*\\.*\\] ([0-9]+)/([0-9]+) commands");
  long last = 0;
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    std::smatch found;
    ASSERT_TRUE(std::regex_match(lines[i], found, form)) << lines[i];
    EXPECT_GT(std::stol(found[1]), last);
    last = std::stol(found[1]);
    EXPECT_LE(last, std::stol(found[2]));
  }
}

// With more threads the reference is computed beside them.
TEST(ProgressLine, ShowsTheReferenceBeforeTheCommands) {
  const std::string text = on_terminal({"run", "-m", "transformer", "--model", "gpt2-medium", "-l",
                                        "1024", "--layers", "2", "--check", "--threads", "1"});
  const std::size_t reference = text.find(" operators of the reference");
  EXPECT_NE(reference, std::string::npos) << text;
  EXPECT_LT(reference, text.find(" commands")) << text;
}

// The model beside them is done long before.
TEST(ProgressLine, SaysThatTheGatesStillRun) {
  const std::string text =
      on_terminal({"run", "-m", "tiny", "--model", "vit17", "-n", "1", "--rtl", "core"});
  EXPECT_NE(text.find(" s in gates"), std::string::npos) << text;
}

TEST(ProgressLine, NamesTheSectionsOfAReproduction) {
  const std::string text =
      on_terminal({"reproduce", "survey", "--part", "analysis,products,pruning"});
  const std::vector<std::string> lines = drawn(text);
  ASSERT_GE(lines.size(), 3U);
  EXPECT_EQ(lines.back(), "");
  static const std::regex form("[0-9]+ s, [0-9]+/[0-9]+ simulations, section [0-9]+ done: .+");
  bool named = false;
  for (const std::string& line : lines) {
    EXPECT_LT(line.size(), 80U) << line;
    named = named || std::regex_match(line, form);
  }
  EXPECT_TRUE(named) << text;
}

TEST(ProgressLine, IsForTerminalsAlone) { EXPECT_EQ(run_systole(kLongInference).err, ""); }

/// A run that begins at once and takes a minute.
Words long_run(const Words& more) {
  return words_of("run -m gemmini --model gpt2 --length 16 --layers 1 --functional off -n 1000",
                  more);
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
  // Statistics, timeline, waveform, its view and its eight tables.
  ASSERT_TRUE(wait_until([&] { return unfinished() == 12; }));
  EXPECT_FALSE(program.ignores(GetParam()));
  expect_ended(program);
  EXPECT_EQ(directory_.names(), targets);
  for (const std::string& target : targets) EXPECT_EQ(read_file(directory_.path(target)), "old");
}

TEST_P(EndedBySignal, NoWaveformOfABlockInRtlIsLeft) {
  directory_.write("run.softmax_unit.fst", "old");
  RunningProgram program({"run", "-m", "tiny", "--model", "vit17", "--rtl", "softmax_unit",
                          "--wave", "run.fst", "--wave-images", "0"},
                         directory_.path());
  // The waveform of the block, what its writer needs until it is closed, and the files above but
  // two.
  ASSERT_TRUE(wait_until([&] { return unfinished() == 12; }));
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
