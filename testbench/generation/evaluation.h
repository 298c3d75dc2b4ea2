#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "hw/machine/machine.h"
#include "model/float/gpt.h"
#include "model/float/logit_comparison.h"
#include "testbench/generation/generation.h"

namespace systole::testbench {

/// How close a machine's logits are to those of float32 arithmetic on the same weights.
struct Evaluation {
  model::LogitComparison comparison;
  Generation generation;

  // What FP16 on such a machine keeps of the embedded network.
  static constexpr double kSameTop = 0.995, kMaxError = 1e-2, kMeanError = 2e-3, kBits = 0.002;
  [[nodiscard]] bool holds() const;
};

/// Runs the first `tokens` of `text` through the machine, in windows of the network's context, each
/// from its beginning, and the reference beside it. `progress` as of GenerationTask.
[[nodiscard]] Evaluation evaluate(const hw::Machine& machine, const model::Gpt& gpt,
                                  const std::vector<std::int32_t>& text, std::size_t tokens,
                                  const std::function<void(std::size_t passes)>& progress);

}  // namespace systole::testbench
