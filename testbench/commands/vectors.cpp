#include "model/vectors.h"

#include <fmt/format.h>

#include <optional>

#include "hw/printable.h"
#include "testbench/commands/command.h"
#include "testbench/outputs.h"
#include "testbench/rtl_vectors.h"
#include "testbench/text.h"

namespace systole::testbench {
namespace {

struct VectorsOptions {
  std::string file;
  bool rtl = false;
  bool json = false;
};

struct Totals {
  std::uint64_t checked = 0, failed = 0;
  std::optional<std::uint64_t> rtl_values;  ///< none without --rtl
};

std::string text_of(const std::vector<model::VectorResult>& results, const Totals& totals) {
  std::string text;
  for (const model::VectorResult& result : results) {
    text += fmt::format("{}: {} passed, {} failed\n", hw::printable(result.name),
                        result.checked - result.failed, result.failed);
    if (result.failed != 0) text += "  first: " + hw::printable(result.first_failure) + "\n";
  }
  text += fmt::format("{} passed, {} failed\n", totals.checked - totals.failed, totals.failed);
  if (totals.rtl_values) text += counted(*totals.rtl_values, "value") + " from the RTL\n";
  return text;
}

nlohmann::ordered_json document_of(const VectorsOptions& options,
                                   const std::vector<model::VectorResult>& results,
                                   const Totals& totals) {
  nlohmann::ordered_json document{{"file", options.file},
                                  {"passed", totals.checked - totals.failed},
                                  {"failed", totals.failed},
                                  {"rtl_values", nullptr},
                                  {"cases", nlohmann::ordered_json::array()}};
  if (totals.rtl_values) document["rtl_values"] = *totals.rtl_values;
  for (const model::VectorResult& result : results) {
    nlohmann::ordered_json entry{{"name", result.name},
                                 {"passed", result.checked - result.failed},
                                 {"failed", result.failed},
                                 {"first_failure", nullptr}};
    if (result.failed != 0) entry["first_failure"] = result.first_failure;
    document["cases"].push_back(std::move(entry));
  }
  return document;
}

int run(const VectorsOptions& options) {
  std::optional<RtlVectors> rtl;
  if (options.rtl) rtl.emplace();
  const std::vector<model::VectorResult> results =
      model::run_vector_file(options.file, rtl ? &*rtl : nullptr);
  Totals totals;
  if (rtl) totals.rtl_values = rtl->values();
  for (const model::VectorResult& result : results) {
    totals.checked += result.checked;
    totals.failed += result.failed;
  }
  if (options.json) {
    print_json(document_of(options, results, totals));
  } else {
    print_text(text_of(results, totals));
  }
  return totals.failed == 0 ? kExitOk : kExitCheckFailed;
}

}  // namespace

void add_vectors_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<VectorsOptions>();
  CLI::App& command = *app.add_subcommand("vectors", "check integer functions with a vector file");
  command.add_option("file", options->file, "I-BERT vectors in JSON")
      ->type_name("FILE.json")
      ->required();
  command.add_flag("--rtl", options->rtl, "compute square roots and requantisations in RTL");
  command.add_flag("--json", options->json, "print the results as JSON");
  add_examples(command, {"systole vectors gelu.json", "systole vectors softmax.json --json",
                         "systole vectors isqrt.json --rtl"});
  set_action(command, action, options, run);
}

}  // namespace systole::testbench
