#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "model/describe_model.h"
#include "model/integer_vit.h"

namespace systole::testbench {

/// Shape, products, scales and sizes of a model, at most kTextWidth columns.
[[nodiscard]] std::string model_text(const model::IntegerVit& vit, const model::ModelInfo& info);

[[nodiscard]] nlohmann::ordered_json model_json(const model::IntegerVit& vit,
                                                const model::ModelInfo& info);

}  // namespace systole::testbench
