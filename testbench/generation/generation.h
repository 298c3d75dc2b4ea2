#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/number/half.h"
#include "hw/ring/instruction.h"
#include "hw/ring/pass.h"
#include "model/float/gpt.h"
#include "model/float/logit_comparison.h"
#include "testbench/rtl/drive/rtl_counts.h"
#include "testbench/rtl/drive/rtl_options.h"
#include "testbench/run/machine_run.h"
#include "testbench/wave/wave.h"
#include "tlm/ring/compute_core.h"

namespace systole::testbench {

/// A text to be generated.
struct GenerationTask {
  model::GptShape shape;
  const model::Gpt* gpt = nullptr;    ///< nullptr: timing only
  std::vector<std::uint32_t> prompt;  ///< at least one token; only the number counts without values
  std::uint32_t tokens = 1;           ///< to be generated, of each text
  /// Texts side by side, at least one: so many that go on from the prompt, or of `texts`, which are
  /// then of one length each time.
  std::uint32_t batch = 1;
  /// So often the texts are asked for, all at once, at least one: each request goes to the cluster
  /// that is free first.
  std::uint32_t requests = 1;
  /// The next token of these logits, which the host reads for it; empty: the cores choose the
  /// largest themselves.
  std::function<std::uint32_t(const std::vector<hw::Half>& logits)> sample;
  /// Takes each token of the first text as it is chosen.
  std::function<void(std::uint32_t token)> on_token;
  std::function<void(std::size_t passes)> progress;  ///< before each
  /// Takes the programs of all cores, by core, before each pass: of the tokens from `position` on.
  std::function<void(std::uint32_t position, const std::vector<hw::dfx::Pass>& passes)> on_pass;
  std::function<void(const tlm_model::dfx::InstructionTrace&)> observer;
  /// Takes the logits after every pass that computes them, of several texts one after the other;
  /// with values only. `position`: the token's after which they come.
  std::function<void(std::uint32_t position, const std::vector<hw::Half>& logits)> on_logits;
  /// Texts that run through the network one after the other, in the place of a prompt and what is
  /// generated: none is, and logits are computed after every token.
  std::vector<std::vector<std::uint32_t>> texts;
  WaveOptions wave;  ///< waveform to write, of so many passes; no path: none
  RtlOptions rtl;    ///< of blocks in RTL: which are users' own
};

/// What became of a request; times since the host's start, when all were asked for.
struct ServedRequest {
  std::uint32_t cluster = 0;
  std::uint64_t begin_ps = 0, first_token_ps = 0, end_ps = 0;
  std::vector<std::vector<std::uint32_t>> texts;  ///< tokens generated
};

struct Generation : MachineRun {
  std::vector<ServedRequest> requests;             ///< in the order in which they were begun
  std::vector<std::uint32_t> tokens;               ///< generated, of the first text
  std::vector<std::vector<std::uint32_t>> others;  ///< of the other texts of the first request
  std::vector<std::vector<hw::Half>> logits;       ///< of each of them, if they were to be kept
  std::uint64_t passes = 0;                        ///< of the first cluster
  std::uint64_t total_ps = 0;        ///< from the host's start to its notice of the end
  std::uint64_t first_token_ps = 0;  ///< until the first token was chosen
  std::uint64_t last_pass_ps = 0;    ///< the last token's pass
  std::uint64_t host_ps = 0;         ///< this and what follows: of the first cluster
  std::array<std::uint64_t, hw::dfx::kPhases> phases{};  ///< cycles of core 0
  std::vector<std::uint64_t> link_bytes;                 ///< by link
  std::uint64_t weight_bytes = 0;                        ///< of core 0's HBM that are weights
  std::uint64_t hbm_bytes = 0;                           ///< of core 0's HBM in use
  std::uint64_t hbm_read_bytes = 0;                      ///< by core 0
  RtlReport rtl;                                         ///< of the blocks that ran as RTL
  bool wave_is_cut_short = false;                        ///< it reached its size limit
};

/// Generates on a machine with cores for it. One simulation per process. Throws InputError if the
/// network does not fit the machine, or the text the network.
[[nodiscard]] Generation generate(const hw::Machine& machine, const GenerationTask& task);

/// How close a machine's logits are to those of float32 arithmetic on the same weights.
struct Evaluation {
  model::LogitComparison comparison;
  Generation generation;

  struct Limits {
    double same_top, max_error, mean_error, bits;
  };
  /// What FP16 on such a machine keeps of the embedded network, and of SmolLM2.
  static constexpr Limits kGpt2{0.995, 1e-2, 2e-3, 0.002}, kLlama{0.99, 5e-2, 1e-2, 0.02};
  Limits limits = kGpt2;
  [[nodiscard]] bool holds() const;
};

/// Runs the first `tokens` of `text` through the machine, in windows of the network's context, each
/// from its beginning, and the reference beside it: of a Llama its float32 network `llama`, else
/// the same weights. `progress` as of GenerationTask.
[[nodiscard]] Evaluation evaluate(const hw::Machine& machine, const model::Gpt& gpt,
                                  const model::LlamaCheckpoint* llama,
                                  const std::vector<std::int32_t>& text, std::size_t tokens,
                                  const std::function<void(std::size_t passes)>& progress);

/// How many of `tokens`, which follow `prompt`, are the likeliest in float32 after those before.
[[nodiscard]] std::size_t likeliest_tokens(const model::LlamaCheckpoint& llama,
                                           const std::vector<std::uint32_t>& prompt,
                                           const std::vector<std::uint32_t>& tokens);

}  // namespace systole::testbench
