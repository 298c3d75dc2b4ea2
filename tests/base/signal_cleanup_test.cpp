#include "base/signal_cleanup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "tests/support/temp_directory.h"

namespace systole::hw {
namespace {

using testing::ElementsAre;

/// Runs `work` in a copy of this process and returns the signal that ended it; 0: it ended itself.
int signal_that_ends(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

class SignalCleanup : public testing::TestWithParam<int> {
 protected:
  TempDirectory directory_;
};

TEST_P(SignalCleanup, RemovesUnfinishedFilesAndEndsTheProcess) {
  const std::string path = directory_.write("old", "old");
  EXPECT_EQ(signal_that_ends([&] {
              install_signal_cleanup();
              AtomicFile replaced(path), made(directory_.path("new"));
              replaced.stream() << "half" << std::flush;
              ::raise(GetParam());
            }),
            GetParam());
  EXPECT_THAT(directory_.names(), ElementsAre("old"));
  EXPECT_EQ(read_file(path), "old");
}

TEST_P(SignalCleanup, LeavesFinishedFiles) {
  EXPECT_EQ(signal_that_ends([&] {
              install_signal_cleanup();
              write_file_atomically(directory_.path("whole"), "x");
              ::raise(GetParam());
            }),
            GetParam());
  EXPECT_THAT(directory_.names(), ElementsAre("whole"));
}

TEST_P(SignalCleanup, WaitsWhileSignalsAreHeld) {
  EXPECT_EQ(signal_that_ends([&] {
              install_signal_cleanup();
              const std::string path = directory_.path("late");
              const HeldSignals held;
              ::raise(GetParam());
              const RememberedFile remembered(path);
              directory_.write("late", "x");
            }),
            GetParam());
  // `remembered` ends before `held`: at the time of the signal nothing is remembered.
  EXPECT_THAT(directory_.names(), ElementsAre("late"));
}

TEST_P(SignalCleanup, LeavesAnIgnoredSignalIgnored) {
  EXPECT_EQ(signal_that_ends([&] {
              std::signal(GetParam(), SIG_IGN);
              install_signal_cleanup();
              ::raise(GetParam());
            }),
            0);
}

TEST_P(SignalCleanup, ACopyLeavesTheFilesOfTheOriginal) {
  AtomicFile file(directory_.path("out"));
  EXPECT_EQ(signal_that_ends([&] {
              install_signal_cleanup();
              forget_remembered_files();
              ::raise(GetParam());
            }),
            GetParam());
  EXPECT_EQ(directory_.names().size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Signals, SignalCleanup, testing::Values(SIGHUP, SIGINT, SIGPIPE, SIGTERM),
                         [](const auto& signal) {
                           return std::string(::sigabbrev_np(signal.param));
                         });

TEST(RememberedFile, ThereAreNotEndlesslyMany) {
  std::vector<std::unique_ptr<RememberedFile>> files;
  EXPECT_THROW(for (;;) files.push_back(std::make_unique<RememberedFile>("x")), std::logic_error);
  files.pop_back();
  EXPECT_NO_THROW(RememberedFile("x"));
  EXPECT_THROW(RememberedFile(std::string(5000, 'x')), std::logic_error);
}

}  // namespace
}  // namespace systole::hw
