#include "testbench/network/llama_run.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "model/graph/graph_builder.h"

namespace systole::testbench {

std::uint32_t add_prompt(LlamaPrograms& programs, const model::IntegerLlama& llama,
                         const PromptedText& text, const std::string& network,
                         std::size_t& program) {
  const std::uint32_t window = llama.shape.window;
  if (window != 0 && window < text.positions) return 1;
  const std::uint32_t most = text.chunk == 0 ? kMostPromptChunk : text.chunk;
  for (std::uint32_t chunk = std::min(text.prompt, most); chunk > 1; chunk /= 2) {
    const std::optional<std::size_t> added =
        programs.add_chunks(llama, text.positions, chunk, false, network, "prompt.");
    if (!added) continue;
    program = *added;
    return chunk;
  }
  return 1;
}

std::vector<TokenRange> chunks_of(std::uint32_t end, std::uint32_t chunk) {
  std::vector<TokenRange> ranges;
  for (std::uint32_t first = 0; first < end; first += chunk) {
    ranges.push_back({first, std::min(chunk, end - first)});
  }
  return ranges;
}

LlamaRun::LlamaRun(const model::IntegerLlama& llama, PromptedText text, const hw::Machine& machine)
    : programs_(machine) {
  programs_.add_steps(llama, text.positions);
  chunk_ = add_prompt(programs_, llama, text, "", prompt_program_);
  ranges_ = chunks_of(text.prompt, chunk_);
  prompts_ = ranges_.size();
  for (std::uint32_t i = text.prompt; i < text.positions; ++i) ranges_.push_back({i, 1});
  for (std::size_t i = ranges_.size(); i > 0; --i) {
    programs_.select(program_of(i - 1), ranges_[i - 1]);
    macs_ += model::count_macs(graph());
  }
  programs_.map_first();  // of inference 0, which the loop ended with
}

std::pair<std::uint64_t, std::uint64_t> LlamaRun::unread(std::size_t inference) const {
  if (chunk_ == 1 || inference != prompts_) return {0, 0};
  return programs_.constants_of(prompt_program_);
}

const mapper::Mapping& LlamaRun::step(std::size_t inference) {
  programs_.select(program_of(inference), tokens(inference));
  if (chunk_ != 1 && inference == prompts_) programs_.release(prompt_program_);
  return programs_.map();
}

}  // namespace systole::testbench
