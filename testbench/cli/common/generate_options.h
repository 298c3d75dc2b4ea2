#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "testbench/cli/common/common_options.h"
#include "testbench/wave/wave.h"

namespace systole::testbench {

/// What `systole generate` was asked for.
struct GenerateOptions {
  MachineOptions machine;
  std::optional<std::uint32_t> cores, clusters;
  std::string profile;
  std::string model = "kjv";
  std::optional<std::string> prompt;
  std::optional<std::uint32_t> input_tokens, output_tokens;
  std::optional<std::uint32_t> batch, requests, beams, prompt_chunk;
  std::size_t top_k = 1;
  std::optional<double> temperature;
  std::uint64_t seed = 1;
  std::size_t evaluate = 0;
  std::string text, checkpoint, draft;
  std::optional<std::uint32_t> draft_tokens;
  bool check = false;
  unsigned threads = 1;
  bool functional = true;
  bool json = false;
  std::string stats;
  std::string timeline;
  std::uint64_t timeline_passes = 1;
  std::string report, outputs, tensors, assembly;
  WaveOptions wave;
};

/// Tokens of a Llama that --evaluate reads at a time.
inline constexpr std::size_t kLlamaEvaluationWindow = 256;

/// The text of --evaluate.
[[nodiscard]] std::string text_file(const GenerateOptions& options);

/// Whether the model is a Llama of integers, for an array; one of real numbers is for a ring.
[[nodiscard]] bool is_llama(const GenerateOptions& options);

/// Throws InputError that names an option of rings of FP16 cores.
void refuse_ring_options(const GenerateOptions& options);

/// Of an array, not a ring.
int run_llama(const GenerateOptions& options);

/// Whether the model is an encoder-decoder of integers. Throws InputError for one of real numbers.
[[nodiscard]] bool is_seq2seq(const GenerateOptions& options);

/// Of an array as well.
int run_seq2seq(const GenerateOptions& options);

}  // namespace systole::testbench
