#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <iomanip>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/temp_directory.h"
#include "testbench/cli/common/version.h"

namespace systole {

using Words = std::vector<std::string>;

/// The words of a command line, of which some may be in double quotes, and `more`.
[[nodiscard]] inline Words words_of(const std::string& line, const Words& more = {}) {
  Words words;
  std::istringstream in(line);
  for (std::string word; in >> std::quoted(word);) words.push_back(word);
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Absolute path of the program under test.
[[nodiscard]] const char* program_path();

/// What a run of the program left behind.
struct ProgramRun {
  int exit_code = -1;  ///< -1: it did not exit by itself
  std::string out, err;
};

/// In a copy of this process: becomes the program. `directory` is its working directory,
/// `variables` are added to its environment.
[[noreturn]] inline void become_systole(const Words& arguments, const std::string& directory = ".",
                                        const std::map<std::string, std::string>& variables = {}) {
  std::vector<char*> argv{const_cast<char*>(program_path())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  if (::chdir(directory.c_str()) != 0) ::_exit(126);
  // Not from this process: the program has to see to its banner itself.
  ::unsetenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE");
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  ::execv(program_path(), argv.data());
  ::_exit(127);
}

/// Runs the program and waits for its end. `directory` is its working directory, `variables` are
/// added to its environment. Standard output goes to the file `out`, if one is named, and is not
/// returned then.
inline ProgramRun run_systole(const Words& arguments, const std::string& directory = ".",
                              const std::map<std::string, std::string>& variables = {},
                              std::string out = "") {
  const TempDirectory streams;
  const std::string err = streams.path("err");
  const bool captured = out.empty();
  if (captured) out = streams.path("out");
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    const auto redirect = [](const std::string& path, int to) {
      const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      if (file < 0 || ::dup2(file, to) < 0) ::_exit(126);
    };
    redirect(out, STDOUT_FILENO);
    redirect(err, STDERR_FILENO);
    become_systole(arguments, directory, variables);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child) throw std::runtime_error("cannot wait");
  ProgramRun run;
  if (WIFEXITED(status)) run.exit_code = WEXITSTATUS(status);
  if (captured) run.out = read_file(out);
  run.err = read_file(err);
  return run;
}

/// What a run prints that has to end well, without a word on standard error.
inline std::string output_of(const Words& arguments, const std::string& directory = ".") {
  const ProgramRun run = run_systole(arguments, directory);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  return run.out;
}

/// A document that the program made, without what every one says of where it comes from.
inline nlohmann::json document_of(const std::string& text) {
  nlohmann::json document = nlohmann::json::parse(text);
  if (!document.is_object()) return document;
  const nlohmann::json provenance = document.value("provenance", nlohmann::json::object());
  EXPECT_EQ(provenance.size(), 3U) << text.substr(0, 200);
  EXPECT_TRUE(provenance.contains("commit"));
  EXPECT_EQ(provenance.value("version", ""), testbench::kVersion);
  EXPECT_GT(provenance.value("command_line", nlohmann::json::array()).size(), 1U);
  document.erase("provenance");
  return document;
}

/// That of a command with --json.
inline nlohmann::json json_of(Words arguments) {
  arguments.emplace_back("--json");
  return document_of(output_of(arguments));
}

}  // namespace systole
