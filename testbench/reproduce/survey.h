#pragma once

#include "testbench/reproduce/reproduction.h"

namespace systole::testbench {

/// The survey "Full Stack Optimization of Transformer Inference" (arXiv 2302.14017): its analysis
/// and its case study, beside ours.
[[nodiscard]] Reproduction reproduce_survey();

}  // namespace systole::testbench
