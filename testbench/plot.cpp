#include "testbench/plot.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "hw/atomic_file.h"
#include "hw/error.h"
#include "hw/printable.h"

namespace systole::testbench {
namespace {

namespace fs = std::filesystem;

constexpr int kCommandNotFound = 127;  // of the shell

/// A gnuplot that has ended must not end this process when more is written to it.
class IgnoreBrokenPipe {
 public:
  IgnoreBrokenPipe() : before_(std::signal(SIGPIPE, SIG_IGN)) {}
  ~IgnoreBrokenPipe() { std::signal(SIGPIPE, before_); }
  IgnoreBrokenPipe(const IgnoreBrokenPipe&) = delete;
  IgnoreBrokenPipe& operator=(const IgnoreBrokenPipe&) = delete;

 private:
  void (*before_)(int);
};

/// Removes a file that was not put in its place.
struct Temporary {
  fs::path path;
  ~Temporary() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
};

/// The exit code of gnuplot on this input.
int run_gnuplot(const std::string& script) {
  const IgnoreBrokenPipe ignore;
  // Its complaints are about scripts, which a user cannot mend: the exit code says enough.
  std::FILE* const pipe = ::popen("gnuplot 2>/dev/null", "w");
  if (pipe == nullptr) return kCommandNotFound;
  const std::size_t written = std::fwrite(script.data(), 1, script.size(), pipe);
  const int status = ::pclose(pipe);
  if (!WIFEXITED(status)) return -1;
  if (WEXITSTATUS(status) == 0 && written != script.size()) return -1;
  return WEXITSTATUS(status);
}

}  // namespace

PlotWriter::PlotWriter(std::string directory) : directory_(std::move(directory)) {
  if (directory_.empty()) return;
  if (hw::printable(directory_) != directory_) {
    throw hw::InputError(hw::printable(directory_) +
                         ": has control characters, expected a folder without them for pictures");
  }
  fs::path place = directory_;
  if (!fs::exists(place)) place = fs::absolute(place).parent_path();
  if (!fs::is_directory(place)) {
    throw hw::InputError(hw::printable(directory_) +
                         ": no folder and cannot become one, expected a folder for pictures");
  }
  const hw::AtomicFile probe((place / "plot.png").string());
}

void PlotWriter::write(const std::vector<Plot>& plots) const {
  if (directory_.empty()) return;
  fs::create_directory(directory_);
  for (const Plot& plot : plots) {
    const fs::path path = fs::path(directory_) / plot.file;
    const Temporary temporary{fs::path(directory_) / (".systole-" + plot.file)};
    const int status = run_gnuplot(fmt::format(
        "set terminal pngcairo noenhanced size {},{} font 'sans,11' background '#ffffff'\n"
        "set output {}\n{}\nunset output\n",
        plot.width, plot.height, gnuplot_quoted(temporary.path.string()), plot.script));
    if (status == kCommandNotFound) {
      throw hw::InputError("gnuplot: not found, expected it installed to draw pictures");
    }
    if (status != 0) {
      throw hw::InputError(hw::printable(path.string()) +
                           ": gnuplot could not draw it (exit code " + std::to_string(status) +
                           "), expected gnuplot 5 with pngcairo");
    }
    std::error_code error;
    fs::rename(temporary.path, path, error);
    if (error) {
      throw hw::InputError(hw::printable(path.string()) + ": cannot write: " + error.message());
    }
  }
}

std::string gnuplot_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    quoted += c;
    if (c == '\'') quoted += c;
  }
  return quoted + "'";
}

}  // namespace systole::testbench
