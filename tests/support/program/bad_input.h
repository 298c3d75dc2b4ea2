#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "support/paths.h"
#include "support/program/program_run.h"
#include "support/temp_directory.h"
#include "support/text_lines.h"

/// What a user can get wrong: every case must end with exit code 2, one line on standard error for
/// each error that says what and where, nothing on standard output, and no file left behind.
namespace systole::testbench {

/// `value` in `bytes` bytes, little endian.
inline std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

/// A safetensors file with this header, whatever it says, and `data` after it.
inline std::string safetensors_of(const std::string& header, const std::string& data = "") {
  return little_endian(header.size(), 8) + header + data;
}

/// A safetensors file of one u8 tensor of pictures, and labels unless empty.
inline std::string pictures(const std::string& shape, const std::string& pixels,
                            const std::string& labels = "") {
  std::string header = R"({"images":{"dtype":"U8","shape":)" + shape + R"(,"data_offsets":[0,)" +
                       std::to_string(pixels.size()) + "]}";
  if (!labels.empty()) {
    header += R"(,"labels":{"dtype":"U8","shape":[)" + std::to_string(labels.size()) +
              R"(],"data_offsets":[)" + std::to_string(pixels.size()) + "," +
              std::to_string(pixels.size() + labels.size()) + "]}";
  }
  return safetensors_of(header + "}", pixels + labels);
}

/// `bytes` with those from `at` on replaced.
inline std::string patched(std::string bytes, std::size_t at, const std::string& by) {
  return bytes.replace(at, by.size(), by);
}

using Words = std::vector<std::string>;
/// Puts files into a directory.
using Prepare = std::function<void(const TempDirectory&)>;
using Change = std::function<std::string(const std::string&)>;

struct BadInput {
  std::string name;
  Words arguments;            ///< run in an empty directory
  std::vector<Words> errors;  ///< per line: texts it must contain
  Prepare prepare = nullptr;
};

inline void PrintTo(const BadInput& bad, std::ostream* out) { *out << bad.name; }

/// Puts one file into the directory.
inline Prepare file(std::string name, std::string bytes) {
  return [name = std::move(name), bytes = std::move(bytes)](const TempDirectory& directory) {
    directory.write(name, bytes);
  };
}

/// Puts a file that is made of one of the project's own.
inline Prepare made_of(std::string name, std::string source, Change change) {
  return [name = std::move(name), source = std::move(source),
          change = std::move(change)](const TempDirectory& directory) {
    directory.write(name, change(read_file(source_path(source))));
  };
}

/// Puts the program of a model, changed; `form` is the option of `systole map` that writes it.
inline Prepare program(std::string name, const char* form, Change change) {
  return [name = std::move(name), form, change = std::move(change)](const TempDirectory& to) {
    const TempDirectory directory;
    const std::string path = directory.path("p");
    ASSERT_EQ(run_systole({"map", "-m", "gemmini", "--model", "vit17", form, path}).exit_code, 0);
    to.write(name, change(read_file(path)));
  };
}

/// A run of a network by its shape.
inline Words shape(const std::string& name, const Words& more) {
  Words arguments{"run", "-m", "gemmini", "--model", name};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

inline std::string unchanged(const std::string& bytes) { return bytes; }
inline std::string half(const std::string& bytes) { return bytes.substr(0, bytes.size() / 2); }

/// A run of vit17 with more arguments.
inline Words run(const Words& more) {
  Words arguments{"run", "-m", "gemmini", "--model", "vit17", "-n", "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

inline void expect_refused(const BadInput& bad) {
  const TempDirectory directory;
  if (bad.prepare) bad.prepare(directory);
  const Words before = directory.names();
  const ProgramRun result = run_systole(bad.arguments, directory.path());
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  const Words lines = lines_of(result.err);
  ASSERT_EQ(lines.size(), bad.errors.size()) << result.err;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].rfind("systole: ", 0), 0U) << lines[i];
    for (const std::string& text : bad.errors[i]) {
      EXPECT_NE(lines[i].find(text), std::string::npos) << "'" << text << "' in: " << lines[i];
    }
  }
  EXPECT_EQ(directory.names(), before);
}

inline std::string bad_input_name(const testing::TestParamInfo<BadInput>& info) {
  return info.param.name;
}

}  // namespace systole::testbench
