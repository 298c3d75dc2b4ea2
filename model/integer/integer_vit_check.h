#pragma once

#include <string>

#include "model/integer/integer_layers.h"
#include "model/integer/integer_seq2seq.h"
#include "model/integer/integer_text.h"
#include "model/integer/integer_vit.h"

namespace systole::model {

/// Throws InputError, beginning with `place` and naming layer and quantity, for constants that the
/// datapath cannot hold or that could overflow an accumulator: a network that passes computes every
/// input without leaving a register. Shapes of the vectors are not checked here.
void check_integer_vit(const IntegerVit& vit, const std::string& place);
void check_integer_text(const IntegerText& text, const std::string& place);
void check_integer_seq2seq(const IntegerSeq2Seq& network, const std::string& place);
void check_integer_layers(const IntegerLayers& layers, const std::string& place);

}  // namespace systole::model
