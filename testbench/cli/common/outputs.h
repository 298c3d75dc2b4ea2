#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/atomic_file.h"
#include "testbench/stream/report_stream.h"

namespace systole::testbench {

/// The command line, which every document names.
void set_command_line(int argc, const char* const* argv);

/// Prints a document, an object, on standard output, with where it comes from: version, commit and
/// command line. Throws InputError if that fails.
void print_json(const nlohmann::ordered_json& document);

/// The path that means standard output.
inline constexpr const char* kStandardOutput = "-";

/// Prints text on standard output. Throws InputError if that fails.
void print_text(const std::string& text);

/// A JSON file that is opened before the work, so that a path that cannot be written costs no time,
/// and filled after it. Does nothing if the path is empty.
class JsonOutput {
 public:
  explicit JsonOutput(const std::string& path);
  void write(const nlohmann::ordered_json& document);

 private:
  std::optional<hw::AtomicFile> file_;
};

/// Files of a run on a streaming core; empty: none.
struct StreamFiles {
  std::string stats, page;
  std::string outputs;  ///< of StreamRequest::tensors, too
};
/// Runs what a report asks of a streaming core, writes the files, and prints the report. The exit
/// code. Throws InputError, before the run for a path that cannot be written, sizes that the core
/// does not take or outputs without values.
int run_on_streaming_core(StreamReport& report, const StreamFiles& files, bool json);

}  // namespace systole::testbench
