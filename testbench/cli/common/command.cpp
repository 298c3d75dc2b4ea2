#include "testbench/cli/common/command.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/printable.h"
#include "hw/description/machine_presets.h"
#include "model/data/dataset.h"
#include "model/metadata/config_file.h"

namespace systole::testbench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPlotEnding = ".png";

[[noreturn]] void fail_conflict(const std::string& path, const std::string& first,
                                bool first_is_output, const std::string& second) {
  throw hw::InputError(first_is_output
                           ? fmt::format("{}: named for two outputs, {} and {}, expected one each",
                                         hw::printable(path), first, second)
                           : fmt::format("{}: read by {} and written by {}, expected one each",
                                         hw::printable(path), first, second));
}

fs::path folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

}  // namespace

void CommandFiles::add(const std::string& option, const std::string& path, bool is_output) {
  std::error_code error;
  if (path.empty() || fs::is_character_file(path, error)) return;
  uses_.push_back({option, path, is_output, hw::FileIdentity::of(path)});
}

void CommandFiles::reads(const std::string& option, const std::string& path) {
  add(option, path, false);
}

void CommandFiles::reads_pictures(const std::string& option, const std::string& path) {
  reads(option, path);
  std::error_code error;
  if (!fs::is_directory(path, error)) return;
  for (const std::string& picture : model::pictures_in(path, error)) reads(option, picture);
}

void CommandFiles::reads_machine(const std::string& option, const std::string& name_or_path) {
  const std::string preset = hw::machine_preset_path(name_or_path);
  reads(option, preset.empty() ? name_or_path : preset);
}

void CommandFiles::reads_model(const std::string& option, const std::string& name_or_path,
                               std::string (*find)(const std::string&)) {
  if (name_or_path.empty()) return;
  std::string path;
  try {
    path = find(name_or_path);
  } catch (const hw::InputError&) {
    return;  // the name of a shape, or of nothing: the command reports that
  }
  reads(option, path);
  for (const std::string& companion : model::companions_of(path)) reads(option, companion);
}

void CommandFiles::writes(const std::string& option, const std::string& path) {
  add(option, path, true);
}

void CommandFiles::writes_plots(const std::string& option, const std::string& path) {
  if (!path.empty()) plots_.push_back({option, path, hw::FileIdentity::of(path)});
}

void CommandFiles::require_outside(const Use& use, const Folder& folder) const {
  const bool is_folder = use.is_output && use.file == folder.identity;
  // What the pictures are called is known after the run.
  const bool is_picture = fs::path(use.path).extension() == kPlotEnding &&
                          hw::FileIdentity::of(folder_of(use.path).string()) == folder.identity;
  if (is_folder || is_picture) fail_conflict(use.path, use.option, use.is_output, folder.option);
}

void CommandFiles::require_distinct() const {
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    if (!uses_[i].is_output) continue;
    for (std::size_t j = 0; j < uses_.size(); ++j) {
      // Of two outputs, once.
      if (j == i || (uses_[j].is_output && j > i) || !(uses_[i].file == uses_[j].file)) continue;
      fail_conflict(uses_[i].path, uses_[j].option, uses_[j].is_output, uses_[i].option);
    }
  }
  for (const Folder& folder : plots_) {
    for (const Use& use : uses_) require_outside(use, folder);
    std::error_code error;
    for (fs::directory_iterator entry(folder.path, error), end; !error && entry != end;
         entry.increment(error)) {
      if (entry->path().extension() != kPlotEnding) continue;
      // A link there would be followed.
      const hw::FileIdentity picture = hw::FileIdentity::of(entry->path().string());
      for (const Use& use : uses_) {
        if (use.file == picture) fail_conflict(use.path, use.option, use.is_output, folder.option);
      }
    }
  }
}

void add_examples(CLI::App& command, const std::vector<std::string>& lines) {
  std::string text = "Examples:";
  for (const std::string& line : lines) text += "\n  " + line;
  command.footer(text);
}

}  // namespace systole::testbench
