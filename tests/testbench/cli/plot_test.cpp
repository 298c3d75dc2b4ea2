#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "support/file_size_limit.h"
#include "support/program/bad_input.h"
#include "support/temp_directory.h"

namespace systole::testbench {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// Pictures that cannot be drawn or written: an error in one line, no picture, the old one kept.
class BadPlot : public testing::Test {
 protected:
  BadPlot() {
    std::filesystem::create_directory(directory_.path("pictures"));
    directory_.write(picture_, "old");
  }
  [[nodiscard]] ProgramRun draw(const std::map<std::string, std::string>& variables = {}) const {
    return run_systole({"reproduce", "survey", "--part", "analysis", "--plots", "pictures"},
                       directory_.path(), variables);
  }
  /// With a gnuplot that is this script.
  [[nodiscard]] ProgramRun draw_with(const std::string& script) const {
    const TempDirectory tools;
    ::chmod(tools.write("gnuplot", "#!/bin/sh\n" + script + "\n").c_str(), 0755);
    return draw({{"PATH", tools.path() + ":/usr/bin:/bin"}});
  }
  void expect_error(const ProgramRun& run, const std::string& text) const {
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_EQ(lines_of(run.err).size(), 1U) << run.err;
    EXPECT_THAT(run.err, StartsWith("systole: " + picture_ + ": "));
    EXPECT_THAT(run.err, HasSubstr(text));
    EXPECT_EQ(read_file(directory_.path(picture_)), "old");
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path("pictures"))) {
      ++files;
      EXPECT_EQ(entry.path().filename(), "survey_lengths.png");
    }
    EXPECT_EQ(files, 1U);
  }

  const std::string picture_ = "pictures/survey_lengths.png";
  TempDirectory directory_;
};

TEST_F(BadPlot, FullDisk) {
  if (std::system("gnuplot --version >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "NOT TESTED: a full disk, no gnuplot";
  }
  const ScopedFileSizeLimit limit(40'000);  // less than the picture, more than what is printed
  expect_error(draw(), "cannot write: File too large");
}

TEST_F(BadPlot, HalfAPicture) {
  expect_error(draw_with("cat >/dev/null; printf '\\211PNG\\r\\n\\032\\nhalf'"),
               "12 bytes, not a whole picture");
}

TEST_F(BadPlot, Nothing) { expect_error(draw_with("cat >/dev/null"), "0 bytes"); }

TEST_F(BadPlot, AnErrorAfterTheFirstLine) { expect_error(draw_with("exit 3"), "exit code 3"); }

TEST_F(BadPlot, EndedByASignal) { expect_error(draw_with("kill -9 $$"), "exit code -1"); }

}  // namespace
}  // namespace systole::testbench
