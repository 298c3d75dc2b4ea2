#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "mapper/mapping.h"
#include "testbench/network/decoder_run.h"
#include "testbench/network/network_size.h"
#include "testbench/network/networks.h"

namespace systole::testbench {

/// What `systole run` was asked to run.
struct RunRequest {
  std::string model;
  SizeOptions size;
  std::string input;      ///< empty: the default one
  std::size_t limit = 0;  ///< inferences; 0: all, or one seeded input
  bool functional = true;
  bool needs_labels = false;
  std::string mask = {};  ///< fixed attention mask; empty: the model's own, if it has one
  /// One program for all inferences; without it, who runs parts of the network maps those.
  bool maps = true;
};

/// A network with its inputs, mapped to a machine: a model of a file and pictures or texts, or a
/// shape and seeded values, all tokens at once or one after the other.
class RunSubject {
 public:
  /// Throws InputError for what does not go together, cannot be read or does not fit.
  RunSubject(const RunRequest& request, const hw::Machine& machine);

  [[nodiscard]] const Network& network() const { return network_; }
  [[nodiscard]] const model::Graph& graph() const {
    return steps() != nullptr ? steps()->graph() : network_.graph;
  }
  /// Of the first inference. One for all has to have been asked for.
  [[nodiscard]] const mapper::Mapping& mapping() const {
    return steps() != nullptr ? steps()->first() : mapping_.value();
  }
  /// Classes of the pictures or texts, of at least as many as there are inputs; empty: not known.
  [[nodiscard]] const std::vector<std::uint32_t>& labels() const { return labels_; }
  /// Whether it is known what the outputs should be.
  [[nodiscard]] bool has_answers() const { return !labels_.empty() || !targets_.empty(); }
  /// Of the outputs (bytes of the graph's output tensor, in the order of the inputs) the fraction
  /// of right classes or, of an encoder-decoder, of right tokens after the right ones before them,
  /// the ends of the texts included; nothing without answers.
  [[nodiscard]] std::optional<double> accuracy(
      const std::vector<std::vector<std::uint8_t>>& outputs) const;
  /// Bytes of the input tensor of each inference.
  [[nodiscard]] const std::vector<std::vector<std::uint8_t>>& inputs() const {
    return steps() != nullptr ? steps()->inputs() : inputs_;
  }
  /// SimulationOptions::next_step: of tokens one by one, and of texts with padding. With several
  /// `threads` each is mapped while the one before it is simulated.
  [[nodiscard]] std::function<const mapper::Mapping&(std::size_t)> next_step(
      unsigned threads = 1) const;
  /// Moves graph() to an inference without mapping it; empty: it is the same for all.
  [[nodiscard]] std::function<void(std::size_t inference)> move() const;
  /// Tokens that are cached before the first step; nothing unless tokens go one by one.
  [[nodiscard]] std::optional<std::uint32_t> past() const {
    return decoder_ ? std::optional(decoder_->past()) : std::nullopt;
  }
  /// Multiply-accumulates of an inference, on average.
  [[nodiscard]] std::uint64_t macs() const;

 private:
  /// The network's name says under which mask it is.
  void name_mask(const std::string& mask);
  void take_pictures(const RunRequest& request);
  /// Throws InputError if they are needed and there are none.
  void take_labels(const std::string& source, std::vector<std::uint32_t> labels, bool needed);
  void take_texts(const RunRequest& request, const hw::Machine& machine);
  void take_prompts(const RunRequest& request, const hw::Machine& machine);
  void take_pairs(const RunRequest& request, const hw::Machine& machine);

  /// Texts with padding: tokens of each before it.
  void take_padding(std::vector<std::size_t> valid, const hw::Machine& machine);
  /// Null: one program for all.
  [[nodiscard]] SteppedRun* steps() const { return decoder_ ? decoder_.get() : padded_.get(); }

  Network network_;
  std::unique_ptr<DecoderRun> decoder_;
  std::unique_ptr<SteppedRun> padded_;
  std::vector<std::uint32_t> labels_;
  std::vector<std::vector<std::int32_t>> targets_;  ///< tokens of an encoder-decoder's texts
  std::vector<std::vector<std::uint8_t>> inputs_;
  std::optional<mapper::Mapping> mapping_;  ///< for all inferences
};

}  // namespace systole::testbench
