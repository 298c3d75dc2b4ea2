#include "testbench/cli/common/outputs.h"

#include <cstdio>

#include "base/error.h"
#include "testbench/cli/common/command.h"
#include "testbench/page/report_page.h"

namespace systole::testbench {

void print_text(const std::string& text) {
  const std::size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written != text.size() || std::fflush(stdout) != 0) {
    throw hw::InputError("standard output: cannot be written");
  }
}

// Foreign names may hold any bytes; those that are no UTF-8 are replaced.
std::string json_text(const nlohmann::ordered_json& document) {
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
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

int run_on_streaming_core(StreamReport& report, const std::string& stats_path,
                          const std::string& page_path, bool json) {
  check_stream_sizes(report.request, report.machine);
  JsonOutput stats(stats_path);
  ReportPage page(page_path);
  report.result = run_stream(report.request, report.machine);
  const nlohmann::ordered_json document = stream_json(report);
  stats.write(document);
  page.write(report.machine, document);
  json ? print_json(document) : print_text(stream_text(report));
  return report.result.check.mismatches == 0 ? kExitOk : kExitCheckFailed;
}

}  // namespace systole::testbench
