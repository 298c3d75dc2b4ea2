#include "testbench/outputs.h"

#include <cstdio>
#include <set>

#include "hw/error.h"
#include "hw/printable.h"

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

void require_distinct(const std::vector<std::string>& paths) {
  std::set<std::string> seen;
  for (const std::string& path : paths) {
    if (path.empty() || seen.insert(path).second) continue;
    throw hw::InputError(hw::printable(path) + ": named for two outputs, expected one each");
  }
}

}  // namespace systole::testbench
