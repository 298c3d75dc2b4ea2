#include "reproduce/survey/survey_networks.h"

#include <array>

#include "analysis/survey_performance.h"
#include "analysis/transformer_cost.h"
#include "model/seeded/shapes.h"
#include "reproduce/survey/survey_published.h"

namespace systole::testbench {
namespace {

constexpr std::array<const char*, kSurveyNetworks> kShapes = {"bert-base", "bert-large", "gpt2"};

bool decodes(std::size_t network) {
  return model::find_named_shape(kShapes.at(network)).kind == model::NetworkKind::kDecoder;
}

}  // namespace

std::vector<analysis::OperatorCost> survey_ideal_costs(std::size_t network, std::uint32_t length,
                                                       std::uint32_t projections) {
  const model::EncoderShape shape = model::find_shape(kShapes.at(network));
  if (decodes(network)) return analysis::decode_costs(shape, length);
  return analysis::ideal_costs({shape, length, projections});
}

std::uint32_t survey_projections(std::size_t network) {
  return kSurveyNetworkNames.at(network) == "BERT-Large" ? 3 : 4;
}

double survey_cycles(std::size_t network, std::uint32_t length) {
  const analysis::SurveyModel model;
  const model::EncoderShape shape = model::find_shape(kShapes.at(network));
  return model.cycles(
      decodes(network)
          ? analysis::decode_costs(shape, length)
          : analysis::tiled_costs({shape, length, survey_projections(network)}, model.limits));
}

}  // namespace systole::testbench
