#pragma once

#include "model/graph.h"

namespace systole::mapper {

/// Whether two views share an element.
[[nodiscard]] inline bool overlap(const model::View& a, const model::View& b) {
  return a.tensor == b.tensor && a.row < b.row + b.rows && b.row < a.row + a.rows &&
         a.col < b.col + b.cols && b.col < a.col + a.cols;
}

}  // namespace systole::mapper
