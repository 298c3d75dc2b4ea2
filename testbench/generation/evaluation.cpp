#include "testbench/generation/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/float/float_gpt.h"

namespace systole::testbench {

bool Evaluation::holds() const {
  return comparison.same_top() >= kSameTop && comparison.max_error() <= kMaxError &&
         comparison.mean_error() <= kMeanError &&
         std::fabs(comparison.bits() - comparison.reference_bits()) <= kBits;
}

Evaluation evaluate(const hw::Machine& machine, const model::Gpt& gpt,
                    const std::vector<std::int32_t>& text, std::size_t tokens,
                    const std::function<void(std::size_t passes)>& progress) {
  // The token behind the last one is what its logits are measured by.
  if (tokens == 0 || tokens >= text.size()) {
    throw hw::InputError(fmt::format("--evaluate: found {}, expected 1 to {}, the text's tokens",
                                     tokens, text.size() - 1));
  }
  Evaluation evaluation;
  GenerationTask task;
  task.shape = gpt.shape;
  task.gpt = &gpt;
  task.progress = progress;
  for (std::size_t first = 0; first < tokens; first += gpt.shape.positions) {
    const std::size_t end = std::min<std::size_t>(first + gpt.shape.positions, tokens);
    task.texts.emplace_back(text.begin() + static_cast<std::ptrdiff_t>(first),
                            text.begin() + static_cast<std::ptrdiff_t>(end));
  }
  model::FloatGpt reference(gpt);
  std::size_t place = 0;
  task.on_logits = [&](std::uint32_t position, const std::vector<hw::Half>& logits) {
    if (position == 0) reference.restart();
    const std::vector<float> expected = reference.append({text[place]});
    evaluation.comparison.add(logits, expected.data(), static_cast<std::size_t>(text[++place]));
  };
  evaluation.generation = generate(machine, task);
  return evaluation;
}

}  // namespace systole::testbench
