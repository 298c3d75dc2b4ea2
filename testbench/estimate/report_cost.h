#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/operator_cost.h"
#include "analysis/roofline.h"
#include "analysis/survey_performance.h"
#include "model/metadata/llama_shape.h"
#include "model/seeded/shapes.h"

namespace systole::testbench {

/// A network by shape, working on some tokens.
struct AnalysedNetwork {
  std::string name;
  model::NetworkKind kind = model::NetworkKind::kEncoder;
  model::EncoderShape shape;
  std::optional<model::LlamaShape> llama;  ///< all of one; its prompt is computed at once
  std::uint32_t length = 0;                ///< tokens; of a decoder: generated one by one
  std::uint32_t positions = 0;
  std::uint32_t projections = 4;  ///< analysis::EncoderWorkload
};

/// Operations and traffic of a network, whatever the machine.
struct CostReport {
  AnalysedNetwork network;
  std::vector<analysis::OperatorCost> ideal;  ///< each operand moved once
  /// As the survey's machine tiles it; of a decoder the same as `ideal`, of a Llama none.
  std::vector<analysis::OperatorCost> tiled;
  analysis::SurveyModel survey;
  std::optional<analysis::Roofline> roofline;  ///< of the machine, if there is one
};
[[nodiscard]] CostReport analyse(const AnalysedNetwork& network);

/// At most kTextWidth columns.
[[nodiscard]] std::string cost_text(const CostReport& report);
/// Names are those of docs/analyse.md.
[[nodiscard]] nlohmann::ordered_json cost_json(const CostReport& report);

}  // namespace systole::testbench
