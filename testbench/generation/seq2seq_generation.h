#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "model/integer/integer_seq2seq.h"
#include "testbench/report/measurement.h"
#include "testbench/run/simulation.h"

/// Text of an encoder-decoder on a machine with a systolic array: the encoder once, then the
/// decoder one token after the other.
namespace systole::testbench {

struct Seq2SeqTask {
  std::vector<std::int32_t> source;  ///< one token at the least
  std::uint32_t tokens = 0;          ///< to generate, at most
  std::uint32_t beams = 1;           ///< of the search (model/text/beam_search.h)
  bool check = false;
  unsigned threads = 1;  ///< as of SimulationOptions
  std::function<void(const SimulationProgress&)> progress;
};

struct Seq2SeqGeneration {
  /// The encoder, which also computes the keys and values that the decoder's blocks attend to.
  struct Encoder {
    std::uint64_t cycles = 0;
    std::uint64_t bytes = 0;  ///< that the core read and wrote
    double joules = 0.0;
    CheckResult check;
  };
  Encoder encoder;
  Measurement decoder;  ///< of all steps, those that copy caches included
  std::size_t source = 0;
  std::uint32_t beams = 1;
  std::vector<std::int32_t> tokens;   ///< of the best text, without the token that ends it
  double score = 0.0;                 ///< mean of log2 of the probability of its tokens
  std::vector<std::uint64_t> steps;   ///< cycles of each token of the decoder
  std::vector<std::uint64_t> copies;  ///< cycles of each move of caches between two tokens
  std::uint64_t copied_bytes = 0;     ///< of caches, each read and written once

  [[nodiscard]] std::uint64_t mismatches() const {
    return encoder.check.mismatches + decoder.mismatches();
  }
  /// Of a token, copies of caches included: cycles, bytes that the core reads and writes, joules.
  [[nodiscard]] double cycles_per_token() const;
  [[nodiscard]] double bytes_per_token() const;
  [[nodiscard]] double joules_per_token() const;
};

/// Throws InputError as map_graph() does, for a text longer than the network has positions, and for
/// more tokens than it has.
[[nodiscard]] Seq2SeqGeneration generate(const hw::Machine& machine,
                                         const model::IntegerSeq2Seq& network,
                                         const Seq2SeqTask& task);

[[nodiscard]] std::string generation_text(const Seq2SeqGeneration& generation);
[[nodiscard]] nlohmann::ordered_json to_json(const Seq2SeqGeneration& generation);

}  // namespace systole::testbench
