#include "testbench/cli/common/ring_options.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "testbench/cli/common/common_options.h"
#include "testbench/generation/ring_run.h"

namespace systole::testbench {

void add_ring_options(CLI::App& command, RingOptions& options) {
  command.add_option("--generate", options.model, "what a ring beside runs; default: kjv")
      ->type_name("NAME|FILE");
  command.add_option("--prompt", options.prompt, "of --generate: text to go on from")
      ->type_name("TEXT");
  require_positive(*command
                        .add_option("--input-tokens", options.input_tokens,
                                    "of --generate: tokens of a prompt, instead")
                        ->type_name("N"));
  require_positive(*command
                        .add_option("--output-tokens", options.output_tokens,
                                    "of --generate: tokens to generate; default: 64")
                        ->type_name("N"));
}

void require_no_ring_options(const RingOptions& options) {
  if (!options.any()) return;
  throw hw::InputError(
      "--generate, --prompt, --input-tokens, --output-tokens: of a ring, expected a machine file "
      "with a [[core]] table of kind \"ring\"");
}

RingWork::RingWork(const RingOptions& options, bool functional, const hw::CoreSystem& system,
                   const hw::CoreSite& site)
    : text_(load_ring_text(options.model.empty() ? "kjv" : options.model, functional)) {
  if (!functional && options.prompt) {
    throw hw::InputError("--functional off: no text is read, expected --input-tokens");
  }
  if (options.prompt && options.prompt->empty()) {
    throw hw::InputError("--prompt: found no text, expected at least one character");
  }
  part_.site = &site;
  part_.ddr = hw::ring_ddr(system, site);
  part_.task.prompt = prompt_of(text_, options.prompt, options.input_tokens);
  part_.task.tokens = options.output_tokens.value_or(
      std::min<std::uint32_t>(kDefaultTokens, text_.shape.positions));
  text_.limit_positions(part_.task.prompt.size() + part_.task.tokens);
  part_.task.shape = text_.shape;
  if (functional) part_.task.gpt = &*text_.gpt;
  try {
    static_cast<void>(RingRun(site.machine, part_.task));
  } catch (const hw::InputError& error) {
    const std::string text = error.what();
    const bool of_ddr = text.find("dram.mib") != std::string::npos;
    throw hw::InputError(site.name + ": " + text +
                         (of_ddr ? "; of a ring it is ddr_mib of its table" : ""));
  }
}

GenerationReport RingWork::report(bool functional, Generation generation) const {
  GenerationReport report;
  report.machine = part_.site->machine;
  report.model = text_.name;
  report.functional = functional;
  report.seeded = !text_.tokeniser;
  report.layers = text_.shape.encoder.layers;
  report.width = text_.shape.encoder.width;
  report.input_tokens = static_cast<std::uint32_t>(part_.task.prompt.size());
  if (functional) {
    report.prompt = text_.text_of(part_.task.prompt);
    report.text = text_.text_of(generation.tokens);
  }
  report.generation = std::move(generation);
  return report;
}

}  // namespace systole::testbench
