#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/printable.h"
#include "model/checkpoint/seq2seq_checkpoint.h"
#include "model/integer/integer_model.h"
#include "model/model_files.h"
#include "model/text/tokeniser.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/generate_options.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/common/progress.h"
#include "testbench/generation/generation.h"
#include "testbench/generation/ring_text.h"
#include "testbench/generation/seq2seq_generation.h"
#include "testbench/network/networks.h"

namespace systole::testbench {
namespace {

/// What other generators of text have.
void refuse_other_options(const GenerateOptions& options) {
  refuse_ring_options(options);
  const auto refuse = [&](bool given, const char* option) {
    if (!given) return;
    throw hw::InputError(std::string(option) + ": expected none for an encoder-decoder, found " +
                         hw::printable(options.model));
  };
  refuse(options.requests.has_value(), "--requests");
  refuse(options.evaluate != 0, "--evaluate");
  refuse(!options.wave.path.empty(), "--wave");
  refuse(!options.outputs.empty(), "--outputs");
  refuse(!options.machine.rtl.empty(), "--rtl");
  refuse(options.prompt_chunk.has_value(), "--prompt-chunk");
  refuse(!options.draft.empty(), "--draft");
}

}  // namespace

bool is_seq2seq(const GenerateOptions& options) {
  if (!model::names_gpt_checkpoint(options.model)) return false;
  const std::string path = model::find_gpt_checkpoint(options.model);
  if (model::model_kind(path) == model::ModelKind::kIntegerSeq2Seq) return true;
  if (!model::is_seq2seq_checkpoint(model::Safetensors::open(path))) return false;
  throw hw::InputError(hw::printable(path) +
                       ": an encoder-decoder of real numbers, expected one of integers: systole "
                       "quantise makes it");
}

int run_seq2seq(const GenerateOptions& options) {
  refuse_other_options(options);
  if (options.prompt && options.input_tokens) {
    throw hw::InputError("--prompt, --input-tokens: found both, expected one of them");
  }
  const std::string path = model::find_gpt_checkpoint(options.model);
  const model::IntegerSeq2Seq network = model::load_integer_seq2seq(path);
  MachineOptions chosen = options.machine;
  if (chosen.machine.empty()) chosen.machine = "transformer";
  const hw::Machine machine = load_machine(chosen);
  check_datapath(options.model, machine, network.decoder.encoder.datapath);

  Seq2SeqTask task;
  if (options.prompt) {
    task.source =
        model::find_tokeniser(path, network.encoder.shape.vocabulary)->encode(*options.prompt);
  } else {
    task.source = meaningless_tokens(options.input_tokens.value_or(std::min<std::uint32_t>(
                                         kDefaultPromptTokens, network.encoder.shape.positions)),
                                     network.encoder.shape.vocabulary);
  }
  task.tokens = options.output_tokens.value_or(
      std::min<std::uint32_t>(kDefaultTokens, network.decoder.shape.positions));
  task.beams = options.beams.value_or(1);
  task.check = options.check;
  task.threads = options.threads;
  JsonOutput stats(options.stats);
  Seq2SeqGeneration generation;
  {
    SimulationBar bar;
    task.progress = [&](const SimulationProgress& now) { bar.update(now); };
    generation = generate(machine, network, task);
  }
  nlohmann::ordered_json document = to_json(generation);
  std::string text;
  if (options.prompt) {
    text = model::find_tokeniser(path, network.decoder.shape.vocabulary)->decode(generation.tokens);
    document["prompt"] = *options.prompt;
    document["text"] = text;
  }
  stats.write(document);
  if (options.json) {
    print_json(document);
  } else {
    print_text((options.prompt ? text + "\n\n" : "") + generation_text(generation) + "\n" +
               block_table(generation.decoder.result.blocks));
  }
  return generation.mismatches() == 0 ? kExitOk : kExitCheckFailed;
}

}  // namespace systole::testbench
