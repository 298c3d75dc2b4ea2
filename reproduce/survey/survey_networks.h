#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/operator_cost.h"
#include "model/metadata/vit_shape.h"

/// The survey's networks, counted in the survey's ways.
namespace systole::testbench {

/// Operators of a network of kSurveyNetworkNames, each operand moved once. `projections`: of the
/// four d x d ones of an encoder, how many are counted.
[[nodiscard]] std::vector<analysis::OperatorCost> survey_ideal_costs(std::size_t network,
                                                                     std::uint32_t length,
                                                                     std::uint32_t projections);
/// As many as the survey's own curves count: three of BERT-Large's.
[[nodiscard]] std::uint32_t survey_projections(std::size_t network);

/// Cycles of the survey's analytical model, in tiles.
[[nodiscard]] double survey_cycles(std::size_t network, std::uint32_t length);

}  // namespace systole::testbench
