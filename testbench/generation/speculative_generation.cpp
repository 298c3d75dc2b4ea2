#include "testbench/generation/speculative_generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "testbench/network/llama_programs.h"
#include "testbench/network/llama_run.h"
#include "testbench/network/networks.h"
#include "testbench/network/tensors.h"
#include "testbench/run/simulation.h"

namespace systole::testbench {
namespace {

using Ids = std::vector<std::int32_t>;

/// Whose time an inference counts to.
enum class Turn : std::uint8_t { kPrompt, kStep, kDraft, kVerify };

/// A pass of one of the programs.
struct Inference {
  Turn turn = Turn::kPrompt;
  std::size_t program = 0;
  TokenRange tokens;
  Ids ids;
};

/// What the two networks do next, from what the last pass gave.
class SpeculativeText {
 public:
  SpeculativeText(const hw::Machine& machine, const model::IntegerLlama& llama,
                  const LlamaTask& task)
      : llama_(llama),
        draft_(*task.draft),
        task_(task),
        programs_(machine),
        text_(task.prompt),
        drafted_(static_cast<std::uint32_t>(task.prompt.size())) {
    const auto prompt = static_cast<std::uint32_t>(task.prompt.size());
    const PromptedText text{prompt, prompt + task.tokens - 1, task.chunk};
    step_ = programs_.add_steps(llama, text.positions);
    std::size_t own = step_;
    chunk_ = add_prompt(programs_, llama, text, "", own);
    add_verify(text.positions);
    draft_step_ = programs_.add_steps(draft_, text.positions, "draft.");
    std::size_t other = draft_step_;
    const std::uint32_t draft_chunk = add_prompt(programs_, draft_, text, "draft.", other);
    // The draft first: what the last pass of the prompt gives is then the first token.
    add_passes(other, chunks_of(prompt, draft_chunk));
    add_passes(own, chunks_of(prompt, chunk_));
    prompts_ = passes_.size();
    const Inference& first = passes_.front();
    programs_.select(first.program, first.tokens);
    programs_.map_first();
  }

  /// `logits`: of the last pass, rows of the vocabulary; empty at first. Nothing: the text is
  /// there.
  const Inference* next(const Ids& logits) {
    if (done_ != 0) take(logits);
    if (is_over()) return nullptr;
    if (done_ >= prompts_) passes_.push_back(compose());
    return &passes_[done_++];
  }

  LlamaPrograms& programs() { return programs_; }
  /// Of the first pass, until another one is mapped.
  [[nodiscard]] const mapper::Mapping& first() const { return programs_.latest(); }
  [[nodiscard]] const model::IntegerLlama& network_of(const Inference& inference) const {
    const bool draft = inference.program >= draft_step_;
    return draft ? draft_ : llama_;
  }
  [[nodiscard]] const std::deque<Inference>& passes() const { return passes_; }
  [[nodiscard]] const Speculation& counts() const { return counts_; }
  [[nodiscard]] std::uint32_t chunk() const { return chunk_; }
  [[nodiscard]] std::size_t prompts() const { return prompts_; }
  [[nodiscard]] Ids generated() const {
    return {text_.begin() + static_cast<std::ptrdiff_t>(task_.prompt.size()), text_.end()};
  }
  /// Passes that there are at most.
  [[nodiscard]] std::size_t most_passes() const {
    return prompts_ + 1 + std::size_t{task_.tokens} * (counts_.draft_tokens + 3);
  }

 private:
  /// As many proposals as are wanted, or as the machine has row statistics for.
  void add_verify(std::uint32_t positions) {
    for (std::uint32_t proposals = task_.draft_tokens; proposals > 0; proposals /= 2) {
      const std::optional<std::size_t> added =
          programs_.add_chunks(llama_, positions, proposals + 1, true, "", "verify.");
      if (!added) continue;
      verify_ = *added;
      counts_.draft_tokens = proposals;
      return;
    }
    throw hw::InputError(
        fmt::format("--draft: {} has not the memory to look at two tokens in one pass, expected "
                    "more postop.row_statistics or dram.mib",
                    programs_.machine().name));
  }
  void add_passes(std::size_t program, const std::vector<TokenRange>& ranges) {
    for (const TokenRange& range : ranges) {
      const auto first = task_.prompt.begin() + static_cast<std::ptrdiff_t>(range.first);
      passes_.push_back({Turn::kPrompt, program, range,
                         Ids(first, first + static_cast<std::ptrdiff_t>(range.count))});
    }
  }

  [[nodiscard]] bool is_over() const {
    const std::size_t generated = text_.size() - task_.prompt.size();
    return generated == task_.tokens || (generated != 0 && text_.back() == task_.end);
  }
  [[nodiscard]] std::int32_t likeliest(const Ids& logits, std::size_t row) const {
    const auto vocabulary = static_cast<std::ptrdiff_t>(llama_.shape.vocabulary);
    const auto first = logits.begin() + static_cast<std::ptrdiff_t>(row) * vocabulary;
    return static_cast<std::int32_t>(std::max_element(first, first + vocabulary) - first);
  }

  void take(const Ids& logits) {
    const Inference& last = passes_[done_ - 1];
    switch (last.turn) {
      case Turn::kPrompt:
        if (done_ == prompts_) text_.push_back(likeliest(logits, 0));
        return;
      case Turn::kStep:
        return;
      case Turn::kDraft:
        ++drafted_;
        // Of tokens that were known before it proposes nothing.
        if (last.tokens.first + 1 >= text_.size()) proposals_.push_back(likeliest(logits, 0));
        return;
      case Turn::kVerify:
        return keep(logits);
    }
  }

  /// The proposals that are the network's own choice, and what it chooses after them.
  void keep(const Ids& logits) {
    const auto fed = static_cast<std::uint32_t>(text_.size());  // where the first proposal belongs
    std::size_t accepted = 0;
    while (accepted < proposals_.size() && proposals_[accepted] == likeliest(logits, accepted)) {
      ++accepted;
    }
    ++counts_.passes;
    counts_.proposed += proposals_.size();
    counts_.accepted += accepted;
    for (std::size_t i = 0; i <= accepted && !is_over(); ++i) {
      text_.push_back(likeliest(logits, i));
    }
    // Its caches are right as far as what it was fed is the text.
    drafted_ = std::min(drafted_, fed + static_cast<std::uint32_t>(accepted));
    proposals_.clear();
  }

  Inference compose() {
    const auto last = static_cast<std::uint32_t>(text_.size() - 1);  // the first row of a pass
    if (done_ == prompts_) return {Turn::kStep, step_, {last, 1}, {text_.back()}};
    const std::size_t left = task_.prompt.size() + task_.tokens - text_.size();
    const std::size_t wanted = std::min<std::size_t>(counts_.draft_tokens, left - 1);
    if (proposals_.size() < wanted) {
      const std::uint32_t at = drafted_;
      const std::int32_t id = at <= last ? text_[at] : proposals_[at - last - 1];
      return {Turn::kDraft, draft_step_, {at, 1}, {id}};
    }
    Inference verify{Turn::kVerify, verify_, {last, 1}, {text_.back()}};
    verify.ids.insert(verify.ids.end(), proposals_.begin(), proposals_.end());
    verify.tokens.count = static_cast<std::uint32_t>(verify.ids.size());
    return verify;
  }

  const model::IntegerLlama &llama_, &draft_;
  const LlamaTask& task_;
  LlamaPrograms programs_;
  std::size_t step_ = 0, verify_ = 0, draft_step_ = 0;
  std::uint32_t chunk_ = 1;
  std::size_t prompts_ = 0;
  std::deque<Inference> passes_;  ///< those of the prompt from the start
  std::size_t done_ = 0;
  Ids text_;
  std::uint32_t drafted_;  ///< tokens of the text, and proposals, in the draft's caches
  Ids proposals_;
  Speculation counts_;
};

/// Cycles by whose turn it was.
void share_cycles(const SpeculativeText& text, const std::vector<std::uint64_t>& cycles,
                  Speculation& counts) {
  for (std::size_t i = 0; i < cycles.size(); ++i) {
    switch (text.passes()[i].turn) {
      case Turn::kPrompt:
        break;
      case Turn::kStep:
        counts.step_cycles = cycles[i];
        break;
      case Turn::kDraft:
        counts.draft_cycles += cycles[i];
        break;
      case Turn::kVerify:
        counts.verify_cycles += cycles[i];
        break;
    }
  }
}

}  // namespace

LlamaGeneration speculate(const hw::Machine& machine, const model::IntegerLlama& llama,
                          const LlamaTask& task) {
  const std::clock_t begin = std::clock();
  SpeculativeText text(machine, llama, task);
  const hw::DType output = hw::DType::kS32;  // of logits
  const model::Graph& graph = text.programs().graph();
  const hw::DType input = graph.tensors[input_tensor(graph)].type;
  LlamaGeneration generation;
  generation.prompt = task.prompt.size();
  generation.chunk = text.chunk();
  const Inference* now = nullptr;
  SimulationOptions options;
  options.wave = task.wave;
  options.check = task.check;
  options.threads = task.threads;
  options.keep_outputs = false;
  options.bounds = options.keep_traces = false;
  options.progress = task.progress;
  // The prompt of both, and the single step.
  options.first_inferences = text.prompts() + (task.tokens > 1 ? 1 : 0);
  options.next_step = [&](std::size_t) -> const mapper::Mapping& {
    text.programs().select(now->program, now->tokens);
    return text.programs().map();
  };
  options.take_image = [&] { return text.programs().take_image(); };
  options.next_input = [&](const std::vector<std::vector<std::uint8_t>>& outputs)
      -> std::optional<std::vector<std::uint8_t>> {
    now = text.next(outputs.empty() ? Ids() : widen(outputs.back(), output));
    if (now == nullptr) return std::nullopt;
    const model::IntegerLlama& network = text.network_of(*now);
    Ids rows = model::embed_tokens(network, now->ids);
    rows.resize(std::size_t{text.programs().input_rows(now->program)} * network.shape.width, 0);
    return embedding_bytes(rows, input);
  };
  SimulationResult result =
      simulate(graph, text.first(), machine, tlm_model::make_models(machine),
               std::vector<std::vector<std::uint8_t>>(text.most_passes()), options);
  generation.tokens = text.generated();
  generation.prompts = text.prompts();
  generation.speculation = text.counts();
  generation.speculation->draft = task.draft->name;
  share_cycles(text, result.cycles, *generation.speculation);
  generation.measurement = measure(machine, llama.name, 0, options, std::move(result));
  generation.host_seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  return generation;
}

}  // namespace systole::testbench
