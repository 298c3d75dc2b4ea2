#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "testbench/cli/common/command.h"
#include "testbench/cli/common/common_options.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/compare/comparison.h"
#include "testbench/page/report_page.h"

namespace systole::testbench {
namespace {

struct CompareOptions {
  std::string a, b, report;
  bool json = false;
};

void list_files(const CompareOptions& options, CommandFiles& files) {
  files.reads("a", options.a);
  files.reads("b", options.b);
  files.writes("--report", options.report);
}

int run(const CompareOptions& options) {
  const Comparison comparison = compare_statistics({options.a, options.b});
  const nlohmann::ordered_json document = comparison_json(comparison);
  ReportPage(options.report).write_comparison(document);
  if (options.json) {
    print_json(document);
  } else {
    print_text(comparison_text(comparison));
  }
  return kExitOk;
}

}  // namespace

void add_compare_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App& command = *app.add_subcommand("compare", "two runs of a network, figure by figure");
  command.add_option("a", options->a, "statistics of a run: systole run --stats")
      ->type_name("FILE")
      ->required();
  command.add_option("b", options->b, "those of another one of the same network")
      ->type_name("FILE")
      ->required();
  add_report(command, options->report);
  command.add_flag("--json", options->json, "print as JSON");
  add_examples(command, {"systole compare before.json after.json",
                         "systole compare before.json after.json --report changes.html"});
  set_action(command, action, options, list_files, run);
}

}  // namespace systole::testbench
