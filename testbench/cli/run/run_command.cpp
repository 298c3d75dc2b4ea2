#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "model/model_files.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/common_options.h"
#include "testbench/cli/common/run_options.h"
#include "testbench/cli/common/wave_options.h"
#include "testbench/network/networks.h"

namespace systole::testbench {
namespace {

void list_files(const RunOptions& options, CommandFiles& files) {
  files.reads_machine("--machine", options.machine.machine);
  files.reads_model("--model", options.model, model::find_model);
  files.reads("--program", options.program);
  files.reads_model("--generate", options.ring.model, model::find_gpt_checkpoint);
  files.reads_pictures("--input", options.input.empty() ? default_data() : options.input);
  files.reads("--mask", options.mask);
  files.writes("--outputs", options.outputs);
  files.writes("--stats", options.stats);
  files.writes("--action-counts", options.actions);
  files.writes("--timeline", options.timeline);
  files.writes("--report", options.report);
  files.writes("--pipeline", options.views.pipeline);
  files.writes("--transactions", options.views.transactions);
  files.writes("--trace", options.views.trace);
  files.writes("--commands", options.views.commands);
  list_wave_files(options.wave, files);
}

void add_timeline_options(CLI::App& command, RunOptions& options) {
  CLI::Option* const path =
      command.add_option("--timeline", options.timeline, "write a timeline for ui.perfetto.dev");
  path->type_name("FILE.json");
  command
      .add_option("--timeline-images", options.timeline_inferences,
                  "show N pictures, 0 all; default: 1")
      ->type_name("N")
      ->needs(path);
}

}  // namespace

void add_run_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<RunOptions>();
  CLI::App& command = *app.add_subcommand("run", "run a model on a machine, input by input");
  add_machine_options(command, options->machine);
  command.get_option("--machine")->required(false);  // a program file has its own
  add_strategy(command, options->machine);
  add_rtl(command, options->machine);
  CLI::Option* const rtl = command.get_option("--rtl");
  rtl->description("blocks in RTL (=DIR: your own), all, or core");
  command.add_flag("--exact", options->exact, "stop at a command in another cycle in --rtl core")
      ->needs(rtl);
  require_positive(
      *command.add_option("--cores", options->cores, "N equal cores on one bus and memory")
           ->type_name("N"));
  command.add_option("--split", options->split, "how cores share the work; default: batch")
      ->type_name("batch|layers|heads")
      ->check(CLI::IsMember({"batch", "layers", "heads"}).description(""));
  add_ring_options(command, options->ring);
  add_model(command, options->model);
  command.add_option("--program", options->program, "a program of systole map --out instead")
      ->type_name("FILE");
  add_size_options(command, options->size);
  command.add_flag("--decode", options->size.decode, "one token after the other, keys cached");
  command.add_option("--past", options->size.past, "tokens in the cache of --decode; default: 0")
      ->type_name("N");
  command
      .add_option("-i,--input", options->input, "pictures (default: the digits), texts or values")
      ->type_name("FILE|DIR");
  command.add_option("--mask", options->mask, "prune attention: a mask per layer or one for all")
      ->type_name("FILE.npy");
  require_positive(*command
                        .add_option("-n,--limit", options->limit,
                                    "the first N pictures or texts, N seeded inputs")
                        ->type_name("N"));
  command.add_flag("--check", options->check, "compare every operator with the reference");
  add_functional(command, options->functional);
  add_threads(command, options->threads);
  command.add_option("--min-accuracy", options->min_accuracy, "exit with 1 below this fraction")
      ->type_name("0..1");
  command.add_option("--stats", options->stats, "write the statistics")->type_name("FILE.json");
  command.add_option("--action-counts", options->actions, "write events as Accelergy's counts")
      ->type_name("FILE.yaml");
  CLI::Option* const outputs =
      command.add_option("--outputs", options->outputs, "write inputs, outputs and classes");
  outputs->type_name("FILE.safetensors");
  add_tensors(command, options->tensors, outputs);
  add_timeline_options(command, *options);
  add_command_views(command, options->views);
  CLI::Option* const wave = add_wave(command, options->wave);
  command
      .add_option("--wave-images", options->wave.inferences, "record N pictures, 0 all; default: 1")
      ->type_name("N")
      ->needs(wave);
  add_report(command, options->report);
  command.add_flag("--json", options->json, "print the statistics instead of tables");
  add_examples(command,
               {"systole run --machine gemmini --model vit17 --check",
                "systole run --program vit17.prog -i values.safetensors",
                "systole run -m transformer --model vit65 -n 10 --stats run.json",
                "systole run -m transformer --model bert-base --length 512 --check",
                "systole run -m gemmini --model gpt2 -l 256 --layers 2 --functional off",
                "systole run -m transformer --model gpt2 --length 16 --decode --past 100",
                "systole run -m vitcod --model vit65 --mask mask.npy -n 10 --check",
                "systole run -m gemmini --model vit17 -n 1 --wave run.fst --timeline run.json",
                "systole run -m transformer --model bert-base --report run.html",
                "systole run -m gemmini --model vit17 --outputs out.safetensors \\\n    --tensors "
                "'blocks.0.*'",
                "systole run -m gemmini --model vit17 -n 1 --trace run.csv.gz",
                "systole run -m transformer --model vit65 -n 64 --cores 4 --check",
                "systole run -m ring.toml --model vit65 -n 8 --generate kjv --output-tokens 16",
                "systole run -m tiny --model bert-base -l 8 --layers 1 --heads 1 --d 8 \\\n    "
                "--ffn 16 --rtl core",
                "systole run -m my.toml --model vit17 --set array.rows=32 --json"});
  set_action(command, action, options, list_files, run_model);
}

}  // namespace systole::testbench
