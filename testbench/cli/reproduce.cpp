#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "reproduce/dfx/dfx.h"
#include "reproduce/fusion/fusion.h"
#include "reproduce/gemmini/gemmini.h"
#include "reproduce/ita/ita.h"
#include "reproduce/survey/survey.h"
#include "reproduce/vitcod/vitcod.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/common_options.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/common/progress.h"
#include "testbench/page/report_page.h"
#include "testbench/report/plot.h"

namespace systole::testbench {
namespace {

struct ReproduceOptions {
  std::string name;
  std::string machine;
  std::vector<std::string> settings;
  VitcodOptions vitcod;
  std::vector<std::string> parts;
  std::vector<std::string> points;
  std::string plots, stats, report;
  bool json = false;
};

/// All publications, one after the other; one of them needs files.
constexpr const char* kAll = "all";
constexpr const char* kGemmini = "gemmini";

Reproduction vitcod(const ReproduceOptions& options) {
  const std::string machine = options.machine.empty() ? "vitcod" : options.machine;
  return reproduce_vitcod(options.vitcod,
                          load_attention_machine({machine, options.settings, {}, {}}));
}

void expect_no_choice(const ReproduceOptions& options) {
  const VitcodOptions& vitcod = options.vitcod;
  if (options.machine.empty() && options.settings.empty() && vitcod.mask.empty() &&
      vitcod.maps.empty() && !vitcod.dim && (!vitcod.cpu || options.name == kAll)) {
    return;
  }
  throw hw::InputError(
      fmt::format("reproduce {}: has its own machines and networks, expected no --machine, --set, "
                  "--mask, --maps, --dim or --cpu",
                  options.name));
}

Reproduction dfx(const ReproduceOptions& options) {
  expect_no_choice(options);
  return reproduce_dfx(options.parts);
}

Reproduction fusion(const ReproduceOptions& options) {
  expect_no_choice(options);
  return reproduce_fusion(options.parts);
}

Reproduction gemmini(const ReproduceOptions& options) {
  expect_no_choice(options);
  return reproduce_gemmini(options.points);
}

Reproduction ita(const ReproduceOptions& options) {
  expect_no_choice(options);
  return reproduce_ita();
}

Reproduction survey(const ReproduceOptions& options) {
  expect_no_choice(options);
  return reproduce_survey(options.parts);
}

const std::vector<std::string>& no_parts() {
  static const std::vector<std::string> none;
  return none;
}

struct Publication {
  Reproduction (*reproduce)(const ReproduceOptions&);
  const std::vector<std::string>& (*parts)();
};
/// What can be reproduced.
const std::map<std::string, Publication> kReproductions = {
    {"dfx", {dfx, dfx_parts}}, {"fusion", {fusion, fusion_parts}}, {"gemmini", {gemmini, no_parts}},
    {"ita", {ita, no_parts}},  {"survey", {survey, survey_parts}}, {"vitcod", {vitcod, no_parts}}};

void check_parts(const ReproduceOptions& options) {
  if (options.name == kAll) {
    expect_no_choice(options);
    if (options.parts.empty()) return;
    throw hw::InputError("--part: only of use with dfx, fusion or survey");
  }
  const std::vector<std::string>& known = kReproductions.at(options.name).parts();
  for (const std::string& part : options.parts) {
    if (known.empty()) throw hw::InputError("--part: only of use with dfx, fusion or survey");
    if (std::find(known.begin(), known.end(), part) != known.end()) continue;
    throw hw::InputError(fmt::format("--part: found '{}', expected {} of {}", hw::printable(part),
                                     fmt::join(known, ", "), options.name));
  }
}

void check_points(const ReproduceOptions& options) {
  if (options.points.empty() || options.name == kGemmini || options.name == kAll) return;
  throw hw::InputError("--points: only of use with gemmini");
}

void list_files(const ReproduceOptions& options, CommandFiles& files) {
  files.reads_machine("--machine", options.machine);
  files.reads("--mask", options.vitcod.mask);
  files.reads("--maps", options.vitcod.maps);
  for (const std::string& file : maps_in(options.vitcod.maps)) files.reads("--maps", file);
  for (const std::string& path : options.points) files.reads("--points", path);
  files.writes("--stats", options.stats);
  files.writes("--report", options.report);
  files.writes_plots("--plots", options.plots);
}

Reproduction run_one(const std::string& name, const ReproduceOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const BatchProgress progress;
  Reproduction reproduction = kReproductions.at(name).reproduce(options);
  reproduction.wall_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return reproduction;
}

void write_page(ReportPage& page, const std::vector<Reproduction>& reproductions) {
  nlohmann::ordered_json documents = nlohmann::ordered_json::array();
  for (const Reproduction& one : reproductions) {
    documents.push_back(reproduction_json(one));
    nlohmann::ordered_json& pictures = documents.back()["pictures"];
    pictures = nlohmann::ordered_json::array();
    for (const Plot& plot : one.plots) {
      pictures.push_back({{"name", plot.file}, {"png", base64(draw_plot(plot, plot.file))}});
    }
  }
  page.write_reproductions(documents);
}

/// What is to be run. Files that can be wrong come first.
std::vector<std::string> names_of(const ReproduceOptions& options) {
  if (options.name != kAll) return {options.name};
  std::vector<std::string> names;
  if (!options.points.empty()) names.emplace_back(kGemmini);
  for (const auto& [name, publication] : kReproductions) {
    if (name != kGemmini) names.push_back(name);
  }
  return names;
}

int run(const ReproduceOptions& options) {
  check_parts(options);
  check_points(options);
  JsonOutput stats(options.stats);
  ReportPage page(options.report);
  const PlotWriter plots(options.plots);
  std::vector<Reproduction> reproductions;
  for (const std::string& name : names_of(options)) {
    reproductions.push_back(run_one(name, options));
    if (!options.json) {
      print_text((reproductions.size() > 1 ? "\n" : "") + reproduction_text(reproductions.back()));
    }
  }
  const nlohmann::ordered_json document =
      options.name == kAll ? summary_json(reproductions) : reproduction_json(reproductions.front());
  stats.write(document);
  if (options.json) print_json(document);
  if (!options.json && options.name == kAll) {
    print_text("\n" + summary_text(reproductions) +
               (options.points.empty() ? "gemmini is left out: it needs --points\n" : ""));
  }
  for (const Reproduction& one : reproductions) plots.write(one.plots);
  if (page.wanted()) write_page(page, reproductions);
  return document["failed"] == 0 ? kExitOk : kExitCheckFailed;
}

}  // namespace

void add_reproduce_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<ReproduceOptions>();
  CLI::App& command = *app.add_subcommand("reproduce", "published figures beside ours");
  std::vector<std::string> names;
  for (const auto& [name, publication] : kReproductions) names.push_back(name);
  names.push_back(kAll);
  command.add_option("name", options->name, "dfx, fusion, gemmini, ita, survey, vitcod or all")
      ->type_name("NAME")
      ->required()
      ->check(CLI::IsMember(names).description(""));
  command
      .add_option("-m,--machine", options->machine,
                  "vitcod: with attention engines; default: vitcod")
      ->type_name("NAME|FILE");
  add_settings(command, options->settings);
  command.add_option("--mask", options->vitcod.mask, "mask, such as the authors' of DeiT-Tiny")
      ->type_name("FILE.npy");
  CLI::Option* const maps =
      command.add_option("--maps", options->vitcod.maps, "average attention maps to prune");
  maps->type_name("FILE.npy|DIR");
  command.add_flag("--cls", options->vitcod.cls, "keep row and column 0 of these maps")
      ->needs(maps);
  command
      .add_option("--dim", options->vitcod.dim, "features of a head in these files; default: 64")
      ->type_name("N");
  command.add_flag("--cpu", options->vitcod.cpu, "vitcod: measure attention on this CPU as well");
  command.add_option("--points", options->points, "gemmini: runs measured on its RTL, in files")
      ->type_name("FILE.csv,...")
      ->delimiter(',');
  command.add_option("--part", options->parts, "some tables of dfx, fusion or survey alone")
      ->type_name("PART,...")
      ->delimiter(',');
  command.add_option("--plots", options->plots, "draw pictures with gnuplot")->type_name("DIR");
  add_report(command, options->report);
  command.add_option("--stats", options->stats, "write the rows")->type_name("FILE.json");
  command.add_flag("--json", options->json, "print the rows as JSON instead of tables");
  add_examples(
      command,
      {"systole reproduce all --report published.html", "systole reproduce dfx --plots pictures",
       "systole reproduce dfx --part latency,bounds", "systole reproduce fusion --plots pictures",
       "systole reproduce gemmini --points rtl_runs.csv",
       "systole reproduce survey --plots pictures",
       "systole reproduce survey --part analysis,products --json", "systole reproduce vitcod --cpu",
       "systole reproduce vitcod --plots pictures",
       "systole reproduce vitcod --mask deit_tiny_mask.npy --json"});
  set_action(command, action, options, list_files, run);
}

}  // namespace systole::testbench
