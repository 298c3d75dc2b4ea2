#include "tests/rtl/drive/expected_assertions.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

namespace systole::testbench {
namespace {

/// The name at the end of a message of rtl/common/systole_assert.svh, empty for any other line.
std::string assertion_of(const std::string& line) {
  if (line.find("%Error: ") == std::string::npos) return {};
  if (line.find("[ASSERT FAILED]") == std::string::npos) return {};
  const std::string name = line.substr(line.rfind(' ') + 1);
  return name.substr(0, name.find('\n'));
}

/// Verilator's remark that the simulation goes on after an error.
bool is_remark(const std::string& line) {
  return line.rfind("-Info: ", 0) == 0 && line.find("Verilog $stop, ignored") != std::string::npos;
}

bool read_line(std::FILE* file, std::string& line) {
  line.clear();
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) {
    line += static_cast<char>(c);
    if (c == '\n') break;
  }
  return !line.empty();
}

}  // namespace

ExpectedAssertions::ExpectedAssertions(std::set<std::string> names)
    : names_(std::move(names)), kept_(std::tmpfile()), output_(::dup(STDOUT_FILENO)) {
  std::fflush(stdout);
  if (kept_ == nullptr || output_ < 0 || ::dup2(::fileno(kept_), STDOUT_FILENO) < 0) {
    throw std::runtime_error("standard output cannot be kept");
  }
}

ExpectedAssertions::~ExpectedAssertions() {
  std::fflush(stdout);
  static_cast<void>(::dup2(output_, STDOUT_FILENO));
  static_cast<void>(::close(output_));
  std::rewind(kept_);
  std::set<std::string> missing = names_;
  bool remark_follows = false;
  for (std::string line; read_line(kept_, line);) {
    if (remark_follows && is_remark(line)) continue;
    const std::string name = assertion_of(line);
    remark_follows = names_.count(name) != 0;
    missing.erase(name);
    if (remark_follows) continue;
    static_cast<void>(std::fputs(line.c_str(), stdout));
    if (!name.empty()) ADD_FAILURE() << "unexpected assertion " << name;
  }
  static_cast<void>(std::fclose(kept_));
  for (const std::string& name : missing) ADD_FAILURE() << "assertion " << name << " did not fire";
}

}  // namespace systole::testbench
