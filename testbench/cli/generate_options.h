#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "testbench/cli/common/common_options.h"
#include "testbench/wave/wave.h"

namespace systole::testbench {

inline constexpr std::uint64_t kGenerationSeed = 1;

/// Of `systole generate`, for a ring and for a Llama.
struct GenerateOptions {
  MachineOptions machine;
  std::optional<std::uint32_t> cores;
  std::string profile;
  std::string model = "kjv";
  std::optional<std::string> prompt;
  std::optional<std::uint32_t> input_tokens, output_tokens;
  std::optional<std::uint32_t> batch;
  std::size_t top_k = 1;
  std::optional<double> temperature;
  std::uint64_t seed = kGenerationSeed;
  std::size_t evaluate = 0;
  std::string text, checkpoint;
  bool check = false;
  bool functional = true;
  bool json = false;
  std::string stats;
  std::string timeline;
  std::uint64_t timeline_passes = 1;
  std::string report, outputs, assembly;
  WaveOptions wave;
};

/// What --evaluate reads.
[[nodiscard]] std::string text_file(const GenerateOptions& options);

/// Whether the model is a Llama of integers. Throws InputError for one of real numbers.
[[nodiscard]] bool is_llama(const GenerateOptions& options);

/// Generates on an array, not a ring; the exit code.
[[nodiscard]] int run_llama(const GenerateOptions& options);

}  // namespace systole::testbench
