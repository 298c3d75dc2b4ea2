#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/float/float_text.h"
#include "model/integer/integer_text.h"
#include "model/text/token_ids.h"

namespace systole::testbench {

/// The checkpoint of an integer network. Throws InputError if it cannot be read or has another
/// shape than `text`.
[[nodiscard]] model::FloatText load_real_text(const model::IntegerText& text,
                                              const std::string& checkpoint_path);

/// Runs the integer reference over all texts without their padding, texts of one length together;
/// `take` is given the number of a text and the network's output, logits or states.
void compute_texts(const model::IntegerText& text, const model::TokenIds& texts,
                   const std::function<void(std::size_t, const std::vector<std::int32_t>&)>& take);

}  // namespace systole::testbench
