#pragma once

#include <vector>

#include "hw/machine.h"
#include "mapper/mix_layer.h"
#include "model/graph.h"

namespace systole::mapper {

/// The columns of a projection's result in sections of one width: some of them are read by nothing
/// but an encoder, the rest lie side by side.
struct EncodedSections {
  std::vector<MixLayer> encoders;  ///< by section; none if the result does not have this form
  model::View rest;                ///< what is written as it is
};

/// `result`: s8, a whole tensor that matmul and chain of one group write. A machine without encoder
/// lines has no encoded sections. `readers`: how many nodes read each tensor; `taken`: nodes that
/// are part of something else.
[[nodiscard]] EncodedSections encoded_sections(const model::Graph& graph, const model::View& result,
                                               const hw::Machine& machine,
                                               const std::vector<unsigned>& readers,
                                               const std::vector<bool>& taken);

}  // namespace systole::mapper
