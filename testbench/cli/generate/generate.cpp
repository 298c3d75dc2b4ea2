#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/printable.h"
#include "model/checkpoint/llama_checkpoint.h"
#include "model/model_files.h"
#include "model/text/sampling.h"
#include "model/text/token_ids.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/common_options.h"
#include "testbench/cli/common/generate_options.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/cli/common/wave_options.h"
#include "testbench/cli/generate/ring_outputs.h"
#include "testbench/common/progress.h"
#include "testbench/generation/generation.h"
#include "testbench/generation/report_generation.h"
#include "testbench/generation/ring_text.h"
#include "testbench/network/networks.h"
#include "testbench/page/report_page.h"
#include "testbench/report/machine_json.h"
#include "testbench/wave/timeline.h"

namespace systole::testbench {

std::string text_file(const GenerateOptions& options) {
  return options.text.empty() ? data_file("data/kjv.safetensors") : options.text;
}

namespace {

hw::Machine machine_of(const GenerateOptions& options) {
  MachineOptions machine = options.machine;
  if (machine.machine.empty()) machine.machine = "dfx";
  if (!options.profile.empty()) {
    if (machine.machine != "dfx") {
      throw hw::InputError("--profile: a choice of machine dfx, found --machine " +
                           machine.machine);
    }
    if (options.profile == "ideal") machine.machine = "dfx-ideal";
  }
  if (options.cores) machine.settings.push_back(fmt::format("dfx.cores={}", *options.cores));
  if (options.clusters) {
    machine.settings.push_back(fmt::format("dfx.clusters={}", *options.clusters));
  }
  return load_generation_machine(machine);
}

model::LlamaCheckpoint float_llama(const GenerateOptions& options) {
  return model::read_llama_checkpoint(
      model::NetworkFile(model::Safetensors::open(model::find_gpt_checkpoint(options.model))));
}

/// Logits beside those of float32.
int run_evaluation(const GenerateOptions& options, const hw::Machine& machine, RingText& subject) {
  if (!subject.tokeniser || !options.functional) {
    throw hw::InputError("--evaluate: needs a checkpoint and --functional on");
  }
  const std::string text = model::load_text(text_file(options));
  JsonOutput stats(options.stats);
  std::optional<model::LlamaCheckpoint> llama;
  if (subject.shape.llama) {
    llama = float_llama(options);
    subject.limit_positions(kLlamaEvaluationWindow);
  }
  Evaluation evaluation;
  {
    Progress progress(options.evaluate);
    evaluation =
        evaluate(machine, *subject.gpt, llama ? &*llama : nullptr, subject.tokeniser->encode(text),
                 options.evaluate, [&](std::size_t passes) { progress.update(passes - 1); });
  }
  nlohmann::ordered_json document = to_json(evaluation, machine, subject.name);
  document["machine_keys"] = machine_json(machine);
  stats.write(document);
  if (options.json) {
    print_json(document);
  } else {
    print_text(evaluation_text(evaluation, machine, subject.name));
  }
  return evaluation.holds() ? kExitOk : kExitCheckFailed;
}

void list_files(const GenerateOptions& options, CommandFiles& files) {
  if (!options.machine.machine.empty()) {
    files.reads_machine("--machine", options.machine.machine);
  }
  if (!options.checkpoint.empty()) files.reads("--checkpoint", options.checkpoint);
  if (!options.draft.empty()) files.reads("--draft", options.draft);
  files.reads_model("--model", options.model, model::find_gpt_checkpoint);
  files.reads("--text", text_file(options));
  files.writes("--stats", options.stats);
  files.writes("--timeline", options.timeline);
  files.writes("--report", options.report);
  files.writes("--outputs", options.outputs);
  if (options.assembly != kStandardOutput) files.writes("--asm", options.assembly);
  list_wave_files(options.wave, files);
}

int run(const GenerateOptions& options) {
  if (options.prompt && options.prompt->empty()) {
    throw hw::InputError("--prompt: found no text, expected at least one character");
  }
  if (!options.functional && options.prompt) {
    throw hw::InputError("--functional off: no text is read, expected --input-tokens");
  }
  require_values(options.outputs, options.functional);
  if (options.check && !options.functional) {
    throw hw::InputError("--check: there are no values, expected --functional on");
  }
  if (is_seq2seq(options)) return run_seq2seq(options);
  if (options.beams) {
    throw hw::InputError("--beams: of an encoder-decoder, found " + hw::printable(options.model));
  }
  if (is_llama(options)) return run_llama(options);
  if (options.prompt_chunk || !options.draft.empty()) {
    throw hw::InputError("--prompt-chunk, --draft: of a Llama of integers, found " +
                         hw::printable(options.model));
  }
  if (options.json && options.assembly == kStandardOutput) {
    throw hw::InputError("--json and --asm -: both write to standard output, expected one");
  }
  if (!options.checkpoint.empty()) {
    throw hw::InputError("--checkpoint: of a Llama of integers, found " +
                         hw::printable(options.model));
  }
  if (!options.tensors.empty()) {
    throw hw::InputError(
        "--tensors: of a Llama of integers; between the layers of a ring values stay in its "
        "register files, "
        "found " +
        hw::printable(options.model));
  }
  GenerationReport report;
  report.machine = machine_of(options);
  RingText subject = load_ring_text(options.model, options.functional);
  if (options.check && !(subject.shape.llama && model::names_gpt_checkpoint(options.model))) {
    throw hw::InputError("--check: of the checkpoint of a Llama, found " +
                         hw::printable(options.model));
  }
  if (options.evaluate != 0) return run_evaluation(options, report.machine, subject);
  JsonOutput stats(options.stats);

  GenerationTask task;
  task.wave = options.wave;
  add_own_rtl(options.machine.rtl, task.rtl);
  task.prompt = prompt_of(subject, options.prompt, options.input_tokens);
  task.tokens = options.output_tokens.value_or(
      std::min<std::uint32_t>(kDefaultTokens, subject.shape.positions));
  subject.limit_positions(task.prompt.size() + task.tokens);
  task.shape = subject.shape;
  if (options.functional) task.gpt = &*subject.gpt;
  task.batch = options.batch.value_or(1);
  task.requests = options.requests.value_or(1);
  std::optional<model::Sampler> sampler;
  if (options.top_k != 1) {
    sampler.emplace(
        model::Sampler::Options{options.temperature.value_or(1.0), options.top_k, options.seed});
    task.sample = [&](const std::vector<hw::Half>& logits) {
      return static_cast<std::uint32_t>(sampler->token(logits));
    };
  }

  report.model = subject.name;
  report.functional = options.functional;
  report.seeded = !subject.tokeniser;
  report.layers = subject.shape.encoder.layers;
  report.width = subject.shape.encoder.width;
  report.input_tokens = static_cast<std::uint32_t>(task.prompt.size());
  ReportPage page(options.report);
  LogitRows rows;
  if (!options.outputs.empty()) {
    task.on_logits = [&](std::uint32_t position, const std::vector<hw::Half>& logits) {
      rows.add(position, logits);
    };
  }
  PassListing listing(options.assembly);
  listing.take_from(task);
  std::optional<hw::AtomicFile> file;
  std::deque<RingTimeline> timelines;
  bool recording = true;  // of the first passes
  const auto record = [&](std::ostream& out) {
    timelines.emplace_back(out, report.machine.dfx.cores, report.machine.core.clock_mhz);
    task.observer = [&](const tlm_model::dfx::InstructionTrace& trace) {
      if (!recording) return;
      for (RingTimeline& timeline : timelines) timeline.add(trace);
    };
  };
  if (!options.timeline.empty()) record(file.emplace(options.timeline).stream());
  if (page.wanted()) record(page.timeline());
  {
    Progress progress((task.prompt.size() + task.tokens) * task.batch * task.requests);
    task.progress = [&](std::size_t passes) {
      progress.update(passes - 1);
      if (passes > options.timeline_passes && options.timeline_passes != 0) recording = false;
    };
    report.generation = generate(report.machine, task);
  }
  if (options.check) {
    report.same_in_float32 =
        likeliest_tokens(float_llama(options), task.prompt, report.generation.tokens);
  }
  if (options.functional) {
    report.prompt = subject.text_of(task.prompt);
    report.text = subject.text_of(report.generation.tokens);
  }

  nlohmann::ordered_json document = to_json(report);
  document["machine_keys"] = machine_json(report.machine);
  stats.write(document);
  for (RingTimeline& timeline : timelines) timeline.end();
  if (file) file->commit();
  page.write(report.machine, document);
  if (!options.outputs.empty()) rows.write(options.outputs, task, report.generation.tokens);
  listing.write();
  if (options.json) {
    print_json(document);
  } else if (listing.is_printed()) {
    print_text(listing.text());
  } else {
    const bool has_text = options.functional && subject.tokeniser;
    print_text((has_text ? report.prompt + report.text + "\n\n" : "") + generation_text(report));
    if (report.generation.wave_is_cut_short) print_text(cut_wave_text(options.wave));
  }
  return total_mismatches(report.generation.rtl) == 0 ? kExitOk : kExitCheckFailed;
}

}  // namespace

void add_generate_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<GenerateOptions>();
  CLI::App& command =
      *app.add_subcommand("generate", "generate text: GPT-2, Llamas, encoder-decoders");
  command
      .add_option("-m,--machine", options->machine.machine,
                  "default: dfx; of a Llama transformer, wider")
      ->type_name("NAME|FILE");
  add_settings(command, options->machine.settings);
  add_rtl(command, options->machine);
  command.add_option("--cores", options->cores, "cores in the ring; default: the machine's")
      ->type_name("N");
  command
      .add_option("--clusters", options->clusters, "rings of so many cores; default: the machine's")
      ->type_name("N");
  command.add_option("--profile", options->profile, "of dfx: as measured, or no cost of control")
      ->type_name("dfx|ideal")
      ->check(CLI::IsMember({"dfx", "ideal"}).description(""));
  command.add_option("--model", options->model, "a checkpoint, or a shape as gpt2; default: kjv")
      ->type_name("NAME|FILE");
  command.add_option("-p,--prompt", options->prompt, "text to go on from")->type_name("TEXT");
  require_positive(*command
                        .add_option("--input-tokens", options->input_tokens,
                                    "length of a prompt without a meaning")
                        ->type_name("N"));
  require_positive(*command
                        .add_option("-n,--output-tokens", options->output_tokens,
                                    "tokens to generate; default: 64")
                        ->type_name("N"));
  require_positive(
      *command
           .add_option("--batch", options->batch, "texts of the same prompt at once; default: 1")
           ->type_name("N"));
  require_positive(*command
                        .add_option("--requests", options->requests,
                                    "at once, each to the next free ring; default: 1")
                        ->type_name("N"));
  require_positive(*command
                        .add_option("--prompt-chunk", options->prompt_chunk,
                                    "of a Llama on an array: tokens of it at once")
                        ->type_name("N"));
  CLI::Option* const draft =
      command.add_option("--draft", options->draft, "of a Llama on an array: proposes tokens")
          ->type_name("FILE");
  require_positive(*command
                        .add_option("--draft-tokens", options->draft_tokens,
                                    "for each pass of the network; default: 4")
                        ->type_name("K")
                        ->needs(draft));
  CLI::Option* const beams =
      command.add_option("--beams", options->beams, "of an encoder-decoder: search; default: 1")
          ->type_name("N");
  require_positive(*beams);
  CLI::Option* const top_k =
      command
          .add_option("--top-k", options->top_k, "draw from the K likeliest, 0: all; default: 1")
          ->type_name("K");
  command.add_option("--temperature", options->temperature, "of --top-k, how flat the choice is")
      ->type_name("T")
      ->needs(top_k);
  command.add_option("--seed", options->seed, "of --top-k; default: 1")
      ->type_name("N")
      ->needs(top_k);
  CLI::Option* const evaluate = command
                                    .add_option("--evaluate", options->evaluate,
                                                "compare the logits after N tokens with float32")
                                    ->type_name("N");
  require_positive(*evaluate);
  command.add_option("--text", options->text, "default: chapters that kjv has not seen")
      ->type_name("FILE")
      ->needs(evaluate);
  command.add_option("--checkpoint", options->checkpoint, "of a Llama, its float32 network")
      ->type_name("FILE")
      ->needs(evaluate);
  command.add_flag("--check", options->check, "of a Llama: compare with the reference");
  add_functional(command, options->functional);
  add_threads(command, options->threads);
  command.add_option("--stats", options->stats, "write the statistics")->type_name("FILE.json");
  CLI::Option* const timeline =
      command.add_option("--timeline", options->timeline, "write a timeline for ui.perfetto.dev");
  timeline->type_name("FILE.json");
  command
      .add_option("--timeline-passes", options->timeline_passes,
                  "show the first N passes, 0 all; default: 1")
      ->type_name("N")
      ->needs(timeline);
  CLI::Option* const wave = add_wave(command, options->wave);
  wave->excludes(evaluate);
  command
      .add_option("--wave-passes", options->wave.inferences,
                  "record the first N passes, 0 all; default: 1")
      ->type_name("N")
      ->needs(wave);
  add_report(command, options->report).excludes(evaluate);
  command.add_option("--asm", options->assembly, "list the last pass of the prompt; -: print it")
      ->type_name("FILE|-")
      ->excludes(evaluate);
  add_tensors(command, options->tensors, add_outputs(command, options->outputs));
  command.add_flag("--json", options->json, "print the statistics instead of text and tables");
  add_examples(command,
               {"systole generate --cores 4 --prompt \"And the LORD said \" -n 100",
                "systole generate --top-k 5 --temperature 0.8 --seed 3 -p \"In the beginning\"",
                "systole generate --cores 4 --evaluate 2000",
                "systole generate -m dfx --cores 2 --model gpt2-large --input-tokens 64 \\\n"
                "    --output-tokens 64 --functional off --json",
                "systole generate --profile ideal --model gpt2-medium --functional off",
                "systole generate --model vowels.int8.safetensors -p \"gd sd\" --beams 4",
                "systole generate --cores 2 -p \"In the beginning\" -n 1 --asm pass.txt"});
  set_action(command, action, options, list_files, run);
}

}  // namespace systole::testbench
