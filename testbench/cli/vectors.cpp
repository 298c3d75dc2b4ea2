#include "testbench/vectors/vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/printable.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/common/text.h"
#include "testbench/vectors/rtl_vectors.h"

namespace systole::testbench {
namespace {

struct VectorsOptions {
  std::vector<std::string> files;
  bool rtl = false;
  bool json = false;
};

/// What one file gave.
struct FileResult {
  std::string file;
  std::vector<model::VectorResult> cases;
  std::uint64_t checked = 0, failed = 0;
  std::optional<std::uint64_t> rtl_values;  ///< none without --rtl
};

FileResult check_file(const std::string& file, RtlVectors* rtl) {
  FileResult result;
  result.file = file;
  const std::uint64_t before = rtl != nullptr ? rtl->values() : 0;
  result.cases = model::run_vector_file(file, rtl);
  if (rtl != nullptr) result.rtl_values = rtl->values() - before;
  for (const model::VectorResult& one : result.cases) {
    result.checked += one.checked;
    result.failed += one.failed;
  }
  return result;
}

std::string text_of(const FileResult& file) {
  std::string text;
  for (const model::VectorResult& result : file.cases) {
    text += fmt::format("{}: {} passed, {} failed\n", hw::printable(result.name),
                        result.checked - result.failed, result.failed);
    if (result.failed != 0) text += "  first: " + hw::printable(result.first_failure) + "\n";
  }
  text += fmt::format("{} passed, {} failed\n", file.checked - file.failed, file.failed);
  if (file.rtl_values) text += counted(*file.rtl_values, "value") + " from the RTL\n";
  return text;
}

nlohmann::ordered_json document_of(const FileResult& file) {
  nlohmann::ordered_json document{{"file", file.file},
                                  {"passed", file.checked - file.failed},
                                  {"failed", file.failed},
                                  {"rtl_values", nullptr},
                                  {"cases", nlohmann::ordered_json::array()}};
  if (file.rtl_values) document["rtl_values"] = *file.rtl_values;
  for (const model::VectorResult& result : file.cases) {
    nlohmann::ordered_json entry{{"name", result.name},
                                 {"passed", result.checked - result.failed},
                                 {"failed", result.failed},
                                 {"first_failure", nullptr}};
    if (result.failed != 0) entry["first_failure"] = result.first_failure;
    document["cases"].push_back(std::move(entry));
  }
  return document;
}

/// One file as it is, several under their names or in an array "files".
void print(const std::vector<FileResult>& results, const VectorsOptions& options) {
  const bool several = options.files.size() > 1;
  std::string text;
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  for (const FileResult& result : results) {
    if (several && !text.empty()) text += "\n";
    if (several) text += hw::printable(result.file) + "\n";
    text += text_of(result);
    document.push_back(document_of(result));
  }
  if (options.json) {
    print_json(several ? nlohmann::ordered_json{{"files", document}} : document.front());
  } else {
    print_text(text);
  }
}

/// A file that cannot be read costs the others nothing; its message comes after their results.
int run(const VectorsOptions& options) {
  std::optional<RtlVectors> rtl;
  if (options.rtl) rtl.emplace();
  std::vector<FileResult> results;
  std::string bad;
  for (const std::string& file : options.files) {
    try {
      results.push_back(check_file(file, rtl ? &*rtl : nullptr));
    } catch (const hw::InputError& error) {
      bad += std::string(bad.empty() ? "" : "\n") + error.what();
    }
  }
  if (!results.empty()) print(results, options);
  if (!bad.empty()) throw hw::InputError(bad);
  const bool passed = std::all_of(results.begin(), results.end(),
                                  [](const FileResult& result) { return result.failed == 0; });
  return passed ? kExitOk : kExitCheckFailed;
}

}  // namespace

void add_vectors_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<VectorsOptions>();
  CLI::App& command = *app.add_subcommand("vectors", "check integer functions with vector files");
  command.add_option("file", options->files, "JSON of I-BERT's, ITA's or default functions")
      ->type_name("FILE.json")
      ->required();
  command.add_flag("--rtl", options->rtl, "roots, requantisations, ITA softmax in RTL");
  command.add_flag("--json", options->json, "print the results as JSON");
  add_examples(command, {"systole vectors gelu.json", "systole vectors *.json --json",
                         "systole vectors isqrt.json --rtl"});
  set_action(command, action, options, run);
}

}  // namespace systole::testbench
