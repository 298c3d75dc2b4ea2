#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/machine/machine.h"
#include "model/checkpoint/llama_checkpoint.h"
#include "model/format/safetensors_writer.h"
#include "model/integer/integer_llama.h"
#include "testbench/report/measurement.h"
#include "testbench/run/simulation.h"

/// Text of a Llama on a machine with a systolic array: a prompt at once, then token after token.
namespace systole::testbench {

inline constexpr std::uint32_t kDraftTokens = 4;

struct LlamaTask {
  std::vector<std::int32_t> prompt;  ///< one token at the least
  std::uint32_t tokens = 0;          ///< to generate, at most
  /// Of the prompt that go through the network together, at most; 0: as many as the machine can.
  /// With `tensors` it is one.
  std::uint32_t chunk = 0;
  std::int32_t end = -1;  ///< a token that ends the text; -1: none
  bool check = false;
  bool keep_logits = false;  ///< of every inference, in Measurement::result.outputs
  /// A network of the same vocabulary that proposes up to `draft_tokens` tokens for each pass
  /// (testbench/generation/speculative_generation.h), or null.
  const model::IntegerLlama* draft = nullptr;
  std::uint32_t draft_tokens = kDraftTokens;
  /// Tensors to keep (testbench/run/tensor_file.h), in LlamaGeneration::tensors; empty: none.
  std::string tensors;
  /// Chooses a token from the logits after it; empty: the likeliest.
  std::function<std::int32_t(const std::vector<std::int32_t>& logits)> sample;
  unsigned threads = 1;  ///< as of SimulationOptions
  std::function<void(const SimulationProgress&)> progress;
  WaveOptions wave;  ///< waveform of the first step to write; no path: none
};

/// What the time of a step goes to.
enum class LlamaPhase : std::uint8_t { kProjections, kAttention, kMlp, kNorms, kVocabulary };
inline constexpr std::size_t kLlamaPhases = 5;
[[nodiscard]] std::string_view name_of(LlamaPhase phase);
/// The phase of an operator of the program, by its name.
[[nodiscard]] LlamaPhase phase_of(const std::string& name);

/// What a draft brought.
struct Speculation {
  std::string draft;
  std::uint32_t draft_tokens = 0;  ///< proposed for a pass, at most
  std::size_t passes = 0;          ///< of the large network, each with a token at the least
  std::size_t proposed = 0, accepted = 0;
  std::uint64_t draft_cycles = 0, verify_cycles = 0;  ///< after the prompt
  std::uint64_t step_cycles = 0;  ///< of the first token after the prompt without a draft

  /// Of the proposals, 0 to 1.
  [[nodiscard]] double acceptance() const {
    return proposed == 0 ? 0.0 : static_cast<double>(accepted) / static_cast<double>(proposed);
  }
};

struct LlamaGeneration {
  Measurement measurement;                 ///< of all inferences
  std::vector<std::int32_t> tokens;        ///< generated
  std::size_t prompt = 0;                  ///< tokens of it
  std::size_t chunk = 1;                   ///< of them that go through together
  std::vector<std::int32_t> positions;     ///< of the tokens after which there are logits
  std::size_t prompts = 0;                 ///< inferences of the prompt
  std::vector<model::TensorData> tensors;  ///< [steps, rows, columns]
  /// Cycles of the last inference, and of all of the prompt, by phase.
  std::array<std::uint64_t, kLlamaPhases> phases{}, prompt_phases{};
  std::optional<Speculation> speculation;  ///< then `phases` and `bound` are not known
  double bound = 0.0;                      ///< cycles of the last inference by any mapping
  double host_seconds = 0.0;               ///< of processor time, mapping and check included
  double product_seconds = 0.0;            ///< of the host's own integer products of one step

  /// Seconds of simulated time of the prompt, after which the first token is there, and of the
  /// tokens after it.
  [[nodiscard]] double prompt_seconds() const;
  [[nodiscard]] double generation_seconds() const;
  /// Generated after the prompt, over the time of their steps.
  [[nodiscard]] double tokens_per_second() const;
  /// Of the prompt, and of each token after the first; 0 without one.
  [[nodiscard]] double prompt_joules() const;
  [[nodiscard]] double joules_per_token() const;
};

/// Runs the prompt in chunks and a step for each token of the text. Throws InputError as
/// map_graph() does, for more tokens than the network has positions, and for an expression that
/// matches no tensor.
[[nodiscard]] LlamaGeneration generate(const hw::Machine& machine, const model::IntegerLlama& llama,
                                       const LlamaTask& task);

/// What a generation took and gave: the ids of the prompt and of the text, and for each of the
/// positions a row of logits, [positions, vocabulary], in codes; then its other tensors.
void write_outputs(const std::string& path, const LlamaTask& task,
                   const LlamaGeneration& generation);

[[nodiscard]] std::string generation_text(const LlamaGeneration& generation);
[[nodiscard]] nlohmann::ordered_json to_json(const LlamaGeneration& generation);

/// Bits that the tokens of a text take after those before them.
struct LlamaEvaluation {
  std::string model;
  std::size_t tokens = 0;     ///< compared: all but the first of each window
  double bits = 0.0;          ///< a token
  std::size_t likeliest = 0;  ///< tokens that were the likeliest
  /// The same in float32, and how often the likeliest was the same; 0 without a checkpoint.
  double reference_bits = 0.0;
  std::size_t reference_likeliest = 0, same = 0;

  [[nodiscard]] double perplexity() const;
  [[nodiscard]] double reference_perplexity() const;
};

/// The first `tokens` of `text` in windows of at most `window` tokens, by the reference executor:
/// the integers are those of any machine. `checkpoint`: the real-valued network, or null.
[[nodiscard]] LlamaEvaluation evaluate(const model::IntegerLlama& llama,
                                       const model::LlamaCheckpoint* checkpoint,
                                       const std::vector<std::int32_t>& text, std::size_t tokens,
                                       std::size_t window,
                                       const std::function<void(std::size_t done)>& progress);

[[nodiscard]] std::string evaluation_text(const LlamaEvaluation& evaluation);
[[nodiscard]] nlohmann::ordered_json to_json(const LlamaEvaluation& evaluation);

}  // namespace systole::testbench
