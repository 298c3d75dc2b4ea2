#pragma once

#include <string>
#include <vector>

#include "reproduce/reproduction.h"

namespace systole::testbench {

/// What `systole reproduce survey` can do apart: "analysis" (from shapes alone), "products" (those
/// measured on RTL), "splits" (of the SRAM), "encoder" (BERT-Base), "mapping" (random mappings, the
/// fusion study).
[[nodiscard]] const std::vector<std::string>& survey_parts();

/// The survey "Full Stack Optimization of Transformer Inference" (arXiv 2302.14017): its analysis
/// and its case study, beside ours. `parts` of survey_parts(); none: all.
[[nodiscard]] Reproduction reproduce_survey(const std::vector<std::string>& parts);

}  // namespace systole::testbench
