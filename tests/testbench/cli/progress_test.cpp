#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/program/program_run.h"

/// What a long command says on a terminal, and that it says nothing elsewhere.
namespace systole::testbench {
namespace {

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
                                              "24",   "--functional", "off"};

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

TEST(ProgressLine, ShowsTheReferenceBeforeTheCommands) {
  const std::string text = on_terminal({"run", "-m", "transformer", "--model", "gpt2-medium", "-l",
                                        "1024", "--layers", "16", "--check"});
  const std::size_t reference = text.find(" operators of the reference");
  EXPECT_NE(reference, std::string::npos) << text;
  EXPECT_LT(reference, text.find(" commands")) << text;
}

TEST(ProgressLine, NamesTheSectionsOfAReproduction) {
  const std::string text = on_terminal({"reproduce", "fusion", "--part", "chains,models"});
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

}  // namespace
}  // namespace systole::testbench
