#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "hw/machine/machine.h"
#include "mapper/mapping.h"
#include "model/graph/graph.h"
#include "model/integer/integer_llama.h"
#include "testbench/network/llama_programs.h"

namespace systole::testbench {

/// Most tokens of a prompt that go through the network together.
inline constexpr std::uint32_t kMostPromptChunk = 512;

/// What a Llama's text is made of.
struct PromptedText {
  std::uint32_t prompt = 1;     ///< tokens
  std::uint32_t positions = 1;  ///< tokens that go through the network, those of the prompt too
  /// Tokens of the prompt that go through together, at most; 0: as many as the machine can.
  std::uint32_t chunk = 0;
};

/// A program for the prompt of a text in as large chunks as can be: as many tokens as `text` wants
/// or, where the machine has not the row statistics or the memory for them, half as many, and half
/// of these. A window that cuts keys off cuts others off for each token of a chunk: then there is
/// none. Returns the tokens of a chunk, 1 if there is no program, and sets `program`.
[[nodiscard]] std::uint32_t add_prompt(LlamaPrograms& programs, const model::IntegerLlama& llama,
                                       const PromptedText& text, const std::string& network,
                                       std::size_t& program);

/// Tokens first to end in chunks.
[[nodiscard]] std::vector<TokenRange> chunks_of(std::uint32_t end, std::uint32_t chunk);

/// A prompt in chunks, then one token after the other. One that takes the prompt by single tokens
/// has one program.
class LlamaRun {
 public:
  /// Throws InputError as map_graph() does.
  LlamaRun(const model::IntegerLlama& llama, PromptedText text, const hw::Machine& machine);

  /// Of the inference that step() was called for last, at first of the first.
  [[nodiscard]] const model::Graph& graph() const { return programs_.graph(); }
  /// Of the first inference, with its constants and all states, until step() is called.
  [[nodiscard]] const mapper::Mapping& first() const { return programs_.latest(); }
  /// Moves to an inference, from 0; its mapping (LlamaPrograms::map()) is valid until the next
  /// call.
  const mapper::Mapping& step(std::size_t inference);
  /// Where the constants of the prompt's program are, from the inference on that is the first one
  /// without it: as SimulationOptions::unread.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> unread(std::size_t inference) const;
  /// As SimulationOptions::take_image.
  [[nodiscard]] hw::MemoryImage take_image() { return programs_.take_image(); }
  /// Of the last call of step().
  [[nodiscard]] const mapper::Mapping& latest() const { return programs_.latest(); }

  /// Of the prompt that go through together: 1 without a program for it.
  [[nodiscard]] std::uint32_t chunk() const { return chunk_; }
  /// Inferences of the prompt, and all.
  [[nodiscard]] std::size_t prompts() const { return prompts_; }
  [[nodiscard]] std::size_t inferences() const { return ranges_.size(); }
  [[nodiscard]] TokenRange tokens(std::size_t inference) const { return ranges_.at(inference); }
  /// Rows of an inference's input.
  [[nodiscard]] std::uint32_t input_rows(std::size_t inference) const {
    return programs_.input_rows(program_of(inference));
  }
  /// Multiply-accumulates of all inferences together.
  [[nodiscard]] std::uint64_t macs() const { return macs_; }

 private:
  [[nodiscard]] std::size_t program_of(std::size_t inference) const {
    return inference < prompts_ && chunk_ != 1 ? prompt_program_ : 0;
  }

  LlamaPrograms programs_;
  std::size_t prompt_program_ = 0;
  std::uint32_t chunk_ = 1;
  std::size_t prompts_ = 0;
  std::vector<TokenRange> ranges_;  ///< by inference
  std::uint64_t macs_ = 0;
};

}  // namespace systole::testbench
