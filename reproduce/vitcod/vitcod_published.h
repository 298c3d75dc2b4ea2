#pragma once

#include <string_view>
#include <vector>

#include "reproduce/result_row.h"

namespace systole::testbench {

/// Every published figure that `systole reproduce vitcod` shows, and what follows by arithmetic
/// from data that its authors published. Nowhere else does one of them stand.
[[nodiscard]] const std::vector<Published>& vitcod_figures();

/// The one of that key. Throws std::invalid_argument if there is none.
[[nodiscard]] const Published& vitcod_published(std::string_view key);

/// Where the auto-encoder has to break even, which follows from its number of heads.
[[nodiscard]] Published break_even_prediction(double value, std::string_view unit);

}  // namespace systole::testbench
