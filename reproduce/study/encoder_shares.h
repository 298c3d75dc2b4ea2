#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "testbench/run/class_cycles.h"

/// Figures of a document of EncoderRuns.
namespace systole::testbench {

/// Percent of the cycles that go to these classes.
[[nodiscard]] double percent_of(const nlohmann::ordered_json& encoder,
                                const std::vector<TimeClass>& kinds);
/// Of matmuls and GELUs, which the survey's figure has together.
[[nodiscard]] double matmul_percent(const nlohmann::ordered_json& encoder);
/// That figure of a layer.
[[nodiscard]] double per_layer(const nlohmann::ordered_json& encoder, const char* name);
/// Percent of the array's MACs that the whole inference uses.
[[nodiscard]] double array_percent(const nlohmann::ordered_json& encoder);

}  // namespace systole::testbench
