#include "testbench/cli/common/outputs.h"

#include <cstdio>

#include "base/error.h"
#include "model/format/safetensors_writer.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/common_options.h"
#include "testbench/cli/common/version.h"
#include "testbench/page/report_page.h"

namespace systole::testbench {
namespace {

nlohmann::ordered_json command_line = nlohmann::ordered_json::array();

// Of an object. Foreign names may hold any bytes; those that are no UTF-8 are replaced.
std::string json_text(nlohmann::ordered_json document) {
  document["provenance"] = {
      {"version", kVersion}, {"commit", kCommit}, {"command_line", command_line}};
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

void set_command_line(int argc, const char* const* argv) {
  command_line = nlohmann::ordered_json::array();
  for (int i = 0; i < argc; ++i) command_line.push_back(argv[i]);
}

void print_text(const std::string& text) {
  const std::size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written != text.size() || std::fflush(stdout) != 0) {
    throw hw::InputError("standard output: cannot be written");
  }
}

void print_json(const nlohmann::ordered_json& document) { print_text(json_text(document)); }

JsonOutput::JsonOutput(const std::string& path) {
  if (!path.empty()) file_.emplace(path);
}

void JsonOutput::write(const nlohmann::ordered_json& document) {
  if (!file_) return;
  file_->stream() << json_text(document);
  file_->commit();
}

int run_on_streaming_core(StreamReport& report, const StreamFiles& files, bool json) {
  require_values(files.outputs, report.request.functional);
  check_stream_sizes(report.request, report.machine);
  report.request.keep_tensors = !files.outputs.empty();
  JsonOutput stats(files.stats);
  ReportPage page(files.page);
  report.result = run_stream(report.request, report.machine);
  const nlohmann::ordered_json document = stream_json(report);
  stats.write(document);
  page.write(report.machine, document);
  if (!files.outputs.empty()) model::write_safetensors(files.outputs, report.result.tensors);
  json ? print_json(document) : print_text(stream_text(report));
  return report.result.check.mismatches == 0 ? kExitOk : kExitCheckFailed;
}

}  // namespace systole::testbench
