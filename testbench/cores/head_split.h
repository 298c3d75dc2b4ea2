#pragma once

#include <cstddef>
#include <memory>

#include "testbench/cores/core_plan.h"

namespace systole::testbench {

/// Tensor parallel: each core computes some of the heads of every attention and some of the columns
/// of every other product, with the stages after them; what needs whole rows, such as LayerNorm,
/// every core computes for itself. Sums are never divided, so every integer is that of one core.
/// What a core needs of the columns of others crosses through memory, between segments that all
/// cores end before the next one begins. Caches of keys and values stay with the core of their
/// heads. Throws InputError for a network that cannot be divided in this way, or if memory does not
/// hold everything.
///
/// `move`: of a graph whose views grow from inference to inference, which is then a step with
/// separate programs; all are in memory from the beginning. The graph is left at the first step.
[[nodiscard]] CorePlan plan_heads(const hw::CoreSystem& system,
                                  std::shared_ptr<const model::Graph> graph, std::size_t inferences,
                                  MoveGraph move = {});

}  // namespace systole::testbench
