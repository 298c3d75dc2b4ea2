#pragma once

#include <cstdint>
#include <string>

#include "model/integer/integer_vit.h"

namespace systole::model {

/// Integer layers alone, on a fixed number of tokens: what a network known by its shape is with
/// seeded weights (model/seeded/shapes.h). Their input is the embedding itself, as
/// make_encoder_graph() has it.
struct IntegerLayers {
  std::string name;
  std::string source;  ///< where the constants come from, for people
  IntegerEncoder encoder;
  std::uint32_t length = 0;      ///< tokens
  double embedding_scale = 0.0;  ///< real value of a step of the input
};

}  // namespace systole::model
