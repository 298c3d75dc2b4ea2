#include "model/model_files.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "base/installation.h"
#include "base/printable.h"
#include "model/seeded/seeded_llama.h"
#include "model/seeded/seeded_resnet.h"
#include "model/seeded/shapes.h"

namespace systole::model {
namespace {

constexpr std::string_view kModelSuffix = ".int8.safetensors";
constexpr std::string_view kGptSuffix = ".f16.safetensors";
constexpr std::string_view kCheckpointSuffix = ".safetensors";

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// What precedes `suffix` in the names of the files that have it, sorted.
std::vector<std::string> names_with(std::string_view suffix) {
  std::vector<std::string> names;
  std::error_code error;  // a directory that cannot be read has no models
  for (std::filesystem::directory_iterator entry(models_directory(), error), end; entry != end;
       entry.increment(error)) {
    const std::string file = entry->path().filename().string();
    if (!ends_with(file, suffix)) continue;
    names.push_back(file.substr(0, file.size() - suffix.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_path(const std::string& name_or_path) {
  return name_or_path.find('/') != std::string::npos || ends_with(name_or_path, kCheckpointSuffix);
}

/// The file of that name and `suffix`; the models are those with `listed`. A checkpoint need not
/// have an integer model beside it.
std::string find(const std::string& name_or_path, std::string_view suffix,
                 std::string_view listed) {
  if (is_path(name_or_path)) return name_or_path;
  const std::vector<std::string> names = names_with(listed);
  const std::string path = models_directory() + "/" + name_or_path + std::string(suffix);
  const bool listed_by_name =
      std::find(names.begin(), names.end(), name_or_path) != names.end() ||
      (suffix == kCheckpointSuffix && name_or_path.find('.') == std::string::npos);
  if (listed_by_name && std::filesystem::exists(path)) return path;
  if (suffix != kGptSuffix && names_gpt_checkpoint(name_or_path)) {
    throw hw::InputError("model '" + hw::printable(name_or_path) +
                         "': a text generator in FP16, see systole generate --help");
  }
  std::string known;
  if (suffix == kModelSuffix) {
    for (const NamedShape& shape : named_shapes()) known += ", " + std::string(shape.name);
    for (const NamedLlama& llama : llama_shapes()) known += ", " + std::string(llama.name);
    for (const NamedResNet& resnet : resnet_shapes()) known += ", " + std::string(resnet.name);
  }
  for (const std::string& name : names) known += ", " + name;
  throw hw::InputError("model '" + hw::printable(name_or_path) +
                       "': unknown, expected a .safetensors file" +
                       (known.empty() ? "" : " or one of " + known.substr(2)) +
                       (names.empty() ? "; there are no models in " + models_directory() : ""));
}

}  // namespace

std::string models_directory() { return hw::data_directory() + "/models"; }

std::vector<std::string> model_names() { return names_with(kModelSuffix); }

std::vector<std::string> gpt_names() { return names_with(kGptSuffix); }

std::string find_model(const std::string& name_or_path) {
  return find(name_or_path, kModelSuffix, kModelSuffix);
}

std::string find_checkpoint(const std::string& name_or_path) {
  return find(name_or_path, kCheckpointSuffix, kModelSuffix);
}

std::string find_gpt_checkpoint(const std::string& name_or_path) {
  return find(name_or_path, kGptSuffix, kGptSuffix);
}

bool names_gpt_checkpoint(const std::string& name_or_path) {
  if (is_path(name_or_path)) return true;
  const std::vector<std::string> names = gpt_names();
  return std::find(names.begin(), names.end(), name_or_path) != names.end();
}

}  // namespace systole::model
