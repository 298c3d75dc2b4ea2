#include "testbench/generation/ring_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/printable.h"
#include "model/integer/integer_model.h"
#include "model/model_files.h"
#include "model/seeded/seeded_llama.h"

namespace systole::testbench {
namespace {

/// Of the weights of a shape.
constexpr std::uint64_t kShapeSeed = 1;

}  // namespace

std::string RingText::text_of(const std::vector<std::uint32_t>& ids) const {
  if (!tokeniser) return {};
  return tokeniser->decode({ids.begin(), ids.end()});
}

void RingText::limit_positions(std::size_t tokens) {
  if (!shape.llama) return;
  const std::uint32_t window = shape.llama->window;
  if (window != 0 && tokens > window) {
    throw hw::InputError(
        fmt::format("--output-tokens: {} tokens with the prompt, but {} attends to {}, and a ring "
                    "has no window, expected no more",
                    tokens, hw::printable(name), window));
  }
  // Longer texts than the network's are refused as those of any network.
  if (tokens == 0) return;
  shape.positions = static_cast<std::uint32_t>(std::min<std::size_t>(shape.positions, tokens));
  if (gpt) gpt->shape.positions = shape.positions;
}

RingText load_ring_text(const std::string& model, bool functional) {
  RingText text;
  text.name = std::filesystem::path(model).filename().string();
  if (model::names_gpt_checkpoint(model)) {
    const std::string path = model::find_gpt_checkpoint(model);
    text.gpt = model::load_gpt(path);
    text.shape = text.gpt->shape;
    const std::string metadata = text.shape.llama ? model::network_tokeniser(path) : "";
    if (!metadata.empty()) {
      text.tokeniser = model::read_tokeniser(path, metadata, text.shape.vocabulary);
    } else if (!text.shape.llama) {
      text.tokeniser = model::find_tokeniser(path, text.shape.vocabulary);
    }
    return text;
  }
  const model::LlamaShape* const llama = model::find_llama_shape(model);
  if (llama != nullptr) model::require_ring_llama(*llama, model);
  text.shape =
      llama != nullptr ? model::GptShape(*llama) : model::GptShape(model::gpt_shape(model));
  if (functional) text.gpt = model::seeded_gpt(model, text.shape, kShapeSeed);
  return text;
}

std::vector<std::int32_t> meaningless_tokens(std::size_t count, std::uint32_t vocabulary) {
  std::vector<std::int32_t> ids(count);
  for (std::size_t i = 0; i < count; ++i) {
    ids[i] = static_cast<std::int32_t>((i * 7919 + 31) % vocabulary);
  }
  return ids;
}

std::vector<std::uint32_t> prompt_of(const RingText& of, const std::optional<std::string>& prompt,
                                     const std::optional<std::uint32_t>& input_tokens) {
  if (prompt) {
    if (input_tokens) {
      throw hw::InputError("--prompt, --input-tokens: found both, expected one of them");
    }
    if (!of.tokeniser) {
      throw hw::InputError("--prompt: " + hw::printable(of.name) +
                           " is a shape without a vocabulary, expected --input-tokens");
    }
    const std::vector<std::int32_t> ids = of.tokeniser->encode(*prompt);
    return {ids.begin(), ids.end()};
  }
  const std::vector<std::int32_t> ids =
      meaningless_tokens(input_tokens.value_or(kDefaultPromptTokens), of.shape.vocabulary);
  return {ids.begin(), ids.end()};
}

}  // namespace systole::testbench
