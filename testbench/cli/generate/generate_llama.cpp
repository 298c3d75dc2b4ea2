#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "model/checkpoint/llama_checkpoint.h"
#include "model/integer/integer_model.h"
#include "model/model_files.h"
#include "model/text/token_ids.h"
#include "model/text/tokeniser.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/generate_options.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/cli/common/wave_options.h"
#include "testbench/common/progress.h"
#include "testbench/generation/generation.h"
#include "testbench/generation/llama_generation.h"
#include "testbench/generation/report_generation.h"
#include "testbench/generation/ring_text.h"
#include "testbench/network/networks.h"

namespace systole::testbench {
namespace {

/// Without one that is given: a machine with what such networks need.
hw::Machine llama_machine(const GenerateOptions& options, bool in_groups) {
  MachineOptions machine = options.machine;
  if (machine.machine.empty()) {
    machine.machine = "transformer";
    std::vector<std::string> settings = {"datapath.residual_bits=24", "postop.row_statistics=4096"};
    if (in_groups) settings.emplace_back("dma.expander_lanes=16");
    machine.settings.insert(machine.settings.begin(), settings.begin(), settings.end());
  }
  return load_machine(machine);
}

}  // namespace

void refuse_ring_options(const GenerateOptions& options) {
  const auto refuse = [&](bool given, const char* option) {
    if (!given) return;
    throw hw::InputError(std::string(option) + ": of a ring of FP16 cores, expected none for " +
                         hw::printable(options.model));
  };
  refuse(options.cores.has_value(), "--cores");
  refuse(!options.profile.empty(), "--profile");
  refuse(!options.timeline.empty(), "--timeline");
  refuse(!options.report.empty(), "--report");
  refuse(options.top_k != 1, "--top-k");
  refuse(!options.assembly.empty(), "--asm");
  refuse(options.batch.has_value(), "--batch");
  refuse(!options.functional, "--functional off");
  if (options.wave.inferences != 1) {
    throw hw::InputError("--wave-passes: each token of a Llama has its own program, expected 1");
  }
}

bool is_llama(const GenerateOptions& options) {
  if (!model::names_gpt_checkpoint(options.model)) return false;
  const std::string path = model::find_gpt_checkpoint(options.model);
  return model::model_kind(path) == model::ModelKind::kIntegerLlama;
}

namespace {

/// The experts of a token are not known before it, and the program of the next would be another.
void require_no_experts(const model::IntegerLlama& llama, const std::string& path) {
  if (llama.shape.experts == 0) return;
  throw hw::InputError(hw::printable(path) +
                       ": has experts, which run by single steps alone (run --decode), expected a "
                       "Llama without, or --evaluate");
}

/// A network that may propose tokens to `llama`, that of `path`.
model::IntegerLlama load_draft(const GenerateOptions& options, const model::IntegerLlama& llama,
                               const std::string& path) {
  if (model::model_kind(options.draft) != model::ModelKind::kIntegerLlama) {
    throw hw::InputError("--draft: " + hw::printable(options.draft) +
                         " is no Llama of integers, expected one");
  }
  model::IntegerLlama draft = model::load_integer_llama(options.draft);
  if (draft.shape.vocabulary != llama.shape.vocabulary ||
      model::network_tokeniser(options.draft) != model::network_tokeniser(path)) {
    throw hw::InputError("--draft: " + hw::printable(options.draft) +
                         " has another vocabulary, expected that of " +
                         hw::printable(options.model));
  }
  require_no_experts(draft, options.draft);
  return draft;
}

}  // namespace

int run_llama(const GenerateOptions& options) {
  refuse_ring_options(options);
  const std::string path = model::find_gpt_checkpoint(options.model);
  const model::IntegerLlama llama = model::load_integer_llama(path);
  std::unique_ptr<model::Tokeniser> tokeniser;
  if (const std::string metadata = model::network_tokeniser(path); !metadata.empty()) {
    tokeniser = model::read_tokeniser(path, metadata, llama.shape.vocabulary);
  }
  const auto require_tokeniser = [&](const char* option) {
    if (tokeniser) return;
    throw hw::InputError(std::string(option) + ": " + hw::printable(path) +
                         " has no tokeniser, expected --input-tokens");
  };
  JsonOutput stats(options.stats);
  if (options.evaluate != 0) {
    require_tokeniser("--evaluate");
    std::optional<model::LlamaCheckpoint> checkpoint;
    if (!options.checkpoint.empty()) {
      checkpoint = model::read_llama_checkpoint(
          model::NetworkFile(model::Safetensors::open(options.checkpoint)));
    }
    LlamaEvaluation evaluation;
    {
      Progress progress(options.evaluate);
      evaluation =
          evaluate(llama, checkpoint ? &*checkpoint : nullptr,
                   tokeniser->encode(model::load_text(text_file(options))), options.evaluate,
                   kLlamaEvaluationWindow, [&](std::size_t done) { progress.update(done); });
    }
    const nlohmann::ordered_json document = to_json(evaluation);
    stats.write(document);
    options.json ? print_json(document) : print_text(evaluation_text(evaluation));
    return kExitOk;
  }
  require_no_experts(llama, options.model);
  const hw::Machine machine = llama_machine(options, llama.blocks.front().down.grouped());
  check_datapath(options.model, machine, llama.datapath);
  LlamaTask task;
  if (options.prompt) {
    require_tokeniser("--prompt");
    task.prompt = tokeniser->encode(*options.prompt);
    if (const auto end = tokeniser->end_of_text()) task.end = *end;
  } else {
    task.prompt = meaningless_tokens(options.input_tokens.value_or(kDefaultPromptTokens),
                                     llama.shape.vocabulary);
  }
  task.tokens = options.output_tokens.value_or(kDefaultTokens);
  task.chunk = options.prompt_chunk.value_or(0);
  std::optional<model::IntegerLlama> draft;
  if (!options.draft.empty()) {
    if (!options.outputs.empty()) {
      throw hw::InputError("--draft: found --outputs too, expected one of them");
    }
    draft = load_draft(options, llama, path);
    check_datapath(options.draft, machine, draft->datapath);
    task.draft = &*draft;
    task.draft_tokens = options.draft_tokens.value_or(kDraftTokens);
  }
  task.check = options.check;
  task.threads = options.threads;
  task.wave = options.wave;
  task.keep_logits = !options.outputs.empty();
  task.tensors = options.tensors;
  LlamaGeneration generation;
  {
    SimulationBar bar;
    task.progress = [&](const SimulationProgress& now) { bar.update(now); };
    generation = generate(machine, llama, task);
  }
  nlohmann::ordered_json document = to_json(generation);
  const std::string text = options.prompt ? tokeniser->decode(generation.tokens) : "";
  if (options.prompt) {
    document["prompt"] = *options.prompt;
    document["text"] = text;
  }
  stats.write(document);
  if (!options.outputs.empty()) write_outputs(options.outputs, task, generation);
  if (options.json) {
    print_json(document);
  } else {
    print_text((options.prompt ? *options.prompt + text + "\n\n" : "") +
               generation_text(generation) + "\n" +
               block_table(generation.measurement.result.blocks));
    if (generation.measurement.result.wave_is_cut_short) print_text(cut_wave_text(options.wave));
  }
  return generation.measurement.mismatches() == 0 ? kExitOk : kExitCheckFailed;
}

}  // namespace systole::testbench
