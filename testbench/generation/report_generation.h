#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "hw/machine/machine.h"
#include "testbench/generation/generation.h"

namespace systole::testbench {

/// What was generated, by whom and in what time.
struct GenerationReport {
  hw::Machine machine;
  std::string model;
  bool functional = true;
  bool seeded = false;  ///< weights
  std::uint32_t layers = 0, width = 0;
  std::uint32_t input_tokens = 0;
  std::string prompt, text;  ///< empty without a tokeniser
  Generation generation;
  /// Of the tokens generated, those that are float32's likeliest after the same text.
  std::optional<std::size_t> same_in_float32;

  [[nodiscard]] double milliseconds() const;
  [[nodiscard]] double first_token_milliseconds() const;
  /// Tokens that were generated, of all texts of all requests, over all time.
  [[nodiscard]] double tokens_per_second() const;
  /// Of what the boards take in that time.
  [[nodiscard]] double tokens_per_joule() const;
  /// Of core 0's time.
  [[nodiscard]] double share(hw::dfx::Phase phase) const;
};

/// At most kTextWidth columns, but for the text that was generated.
[[nodiscard]] std::string generation_text(const GenerationReport& report);
[[nodiscard]] nlohmann::ordered_json to_json(const GenerationReport& report);

/// The same of logits that were compared.
[[nodiscard]] std::string evaluation_text(const Evaluation& evaluation, const hw::Machine& machine,
                                          const std::string& model);
[[nodiscard]] nlohmann::ordered_json to_json(const Evaluation& evaluation,
                                             const hw::Machine& machine, const std::string& model);

}  // namespace systole::testbench
