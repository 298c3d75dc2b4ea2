#include "testbench/report/plot.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <utility>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/printable.h"
#include "testbench/common/external_program.h"

namespace systole::testbench {
namespace {

namespace fs = std::filesystem;

/// How every PNG file begins, and its last chunk.
constexpr std::string_view kPngBegin = "\x89PNG\r\n\x1a\n";
constexpr std::string_view kPngEnd("\0\0\0\0IEND\xae\x42\x60\x82", 12);

bool is_whole_png(std::string_view bytes) {
  return bytes.size() >= kPngBegin.size() + kPngEnd.size() &&
         bytes.substr(0, kPngBegin.size()) == kPngBegin &&
         bytes.substr(bytes.size() - kPngEnd.size()) == kPngEnd;
}

/// The picture's bytes. gnuplot does not write the file itself: it does not notice a full disk.
std::string draw_plot(const Plot& plot, const std::string& path) {
  const ProgramOutput drawn = run_external_program(
      "gnuplot",
      fmt::format(
          "set terminal pngcairo noenhanced size {},{} font 'sans,11' background '#ffffff'\n"
          "{}\nunset output\n",
          plot.width, plot.height, plot.script));
  if (drawn.exit_code == ProgramOutput::kNotFound) {
    throw hw::InputError("gnuplot: not found, expected it installed to draw pictures");
  }
  const auto fail = [&](const std::string& how) {
    throw hw::InputError(hw::printable(path) + ": gnuplot could not draw it (" + how +
                         "), expected gnuplot 5 with pngcairo");
  };
  if (drawn.exit_code != 0) fail("exit code " + std::to_string(drawn.exit_code));
  if (!is_whole_png(drawn.output)) {
    fail(std::to_string(drawn.output.size()) + " bytes, not a whole picture");
  }
  return drawn.output;
}

}  // namespace

PlotWriter::PlotWriter(std::string directory) : directory_(std::move(directory)) {
  if (directory_.empty()) return;
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
    const std::string path = (fs::path(directory_) / plot.file).string();
    hw::write_file_atomically(path, draw_plot(plot, path));
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
