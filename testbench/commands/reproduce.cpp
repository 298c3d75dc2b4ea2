#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hw/error.h"
#include "testbench/commands/command.h"
#include "testbench/commands/common_options.h"
#include "testbench/outputs.h"
#include "testbench/plot.h"
#include "testbench/reproduce/survey.h"
#include "testbench/reproduce/vitcod.h"

namespace systole::testbench {
namespace {

struct Options {
  std::string name;
  std::string machine;
  std::vector<std::string> settings;
  VitcodOptions vitcod;
  std::vector<std::string> parts;
  std::string plots, stats;
  bool json = false;
};

Reproduction vitcod(const Options& options) {
  if (!options.parts.empty()) throw hw::InputError("--part: only of use with survey");
  const std::string machine = options.machine.empty() ? "vitcod" : options.machine;
  return reproduce_vitcod(options.vitcod,
                          load_attention_machine({machine, options.settings, {}, {}}));
}

Reproduction survey(const Options& options) {
  const VitcodOptions& vitcod = options.vitcod;
  if (!options.machine.empty() || !options.settings.empty() || !vitcod.mask.empty() ||
      !vitcod.maps.empty() || vitcod.dim) {
    throw hw::InputError(
        "reproduce survey: has its own machines and networks, expected no --machine, --set, "
        "--mask, "
        "--maps or --dim");
  }
  return reproduce_survey(options.parts);
}

/// What can be reproduced.
const std::map<std::string, Reproduction (*)(const Options&)> kReproductions = {{"survey", survey},
                                                                                {"vitcod", vitcod}};

int run(const Options& options) {
  JsonOutput stats(options.stats);
  const PlotWriter plots(options.plots);
  const auto begin = std::chrono::steady_clock::now();
  Reproduction reproduction = kReproductions.at(options.name)(options);
  reproduction.wall_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const nlohmann::ordered_json document = reproduction_json(reproduction);
  stats.write(document);
  if (options.json) {
    print_json(document);
  } else {
    print_text(reproduction_text(reproduction));
  }
  plots.write(reproduction.plots);
  return reproduction.count(Verdict::kFail) == 0 ? kExitOk : kExitCheckFailed;
}

}  // namespace

void add_reproduce_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App& command = *app.add_subcommand("reproduce", "published figures beside ours");
  command.add_option("name", options->name, "what to reproduce: survey or vitcod")
      ->type_name("NAME")
      ->required()
      ->check(CLI::IsMember(kReproductions).description(""));
  command
      .add_option("-m,--machine", options->machine,
                  "vitcod: with attention engines; default: vitcod")
      ->type_name("NAME|FILE");
  add_settings(command, options->settings);
  command.add_option("--mask", options->vitcod.mask, "mask, such as the authors' of DeiT-Tiny")
      ->type_name("FILE.npy");
  CLI::Option* const maps =
      command.add_option("--maps", options->vitcod.maps, "average attention maps to prune");
  maps->type_name("FILE.npy");
  command.add_flag("--cls", options->vitcod.cls, "keep row and column 0 of these maps")
      ->needs(maps);
  command
      .add_option("--dim", options->vitcod.dim, "features of a head in these files; default: 64")
      ->type_name("N");
  command.add_option("--part", options->parts, fmt::format("{}", fmt::join(survey_parts(), ", ")))
      ->type_name("PART,...")
      ->delimiter(',')
      ->check(CLI::IsMember(survey_parts()).description(""));
  command.add_option("--plots", options->plots, "draw pictures with gnuplot")->type_name("DIR");
  command.add_option("--stats", options->stats, "write the rows")->type_name("FILE.json");
  command.add_flag("--json", options->json, "print the rows as JSON instead of tables");
  add_examples(command, {"systole reproduce survey --plots pictures",
                         "systole reproduce survey --part analysis,products --json",
                         "systole reproduce vitcod", "systole reproduce vitcod --plots pictures",
                         "systole reproduce vitcod --mask deit_tiny_mask.npy --json"});
  set_action(command, action, options, run);
}

}  // namespace systole::testbench
