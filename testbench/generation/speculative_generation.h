#pragma once

#include <cstddef>
#include <cstdint>

#include "hw/machine/machine.h"
#include "model/integer/integer_llama.h"
#include "testbench/generation/llama_generation.h"

namespace systole::testbench {

/// A small network proposes tokens, the large one looks at all of them in one pass and keeps those
/// that it would have chosen itself, and its own next one (Leviathan et al., arXiv 2211.17192, for
/// the likeliest token): the text is that of the large one alone. Both run on one core in turn.
/// The prompt is read by both; then the large one makes a single step, for comparison, which counts
/// to no sum. `task` has a draft, whose vocabulary is the same, and no tensors or logits to keep.
/// Throws InputError as generate() does.
[[nodiscard]] LlamaGeneration speculate(const hw::Machine& machine,
                                        const model::IntegerLlama& llama, const LlamaTask& task);

}  // namespace systole::testbench
