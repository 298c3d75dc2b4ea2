#include "testbench/cli/outputs.h"

#include <cstdio>

#include "base/error.h"

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

}  // namespace systole::testbench
