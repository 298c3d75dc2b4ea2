#pragma once

#include <vector>

#include "hw/machine/machine.h"
#include "mapper/group/mix_layer.h"
#include "model/graph/graph.h"

namespace systole::mapper {

struct Group;

/// The columns of a projection's result in sections of one width: some of them are read by nothing
/// but an encoder, the rest lie side by side.
struct EncodedSections {
  std::vector<MixLayer> encoders;  ///< by section; none if the result does not have this form
  model::View rest;                ///< what is written as it is
};

/// `group`: a matmul and its chain, whose result must be s8 and a whole tensor. A machine without
/// encoder lines has no encoded sections. An encoder runs earlier than its place in the graph, so
/// no operator up to there may write its section, or use what it writes. `readers`: how many nodes
/// read each tensor; `taken`: nodes that are part of something else.
[[nodiscard]] EncodedSections encoded_sections(const model::Graph& graph, const Group& group,
                                               const hw::Machine& machine,
                                               const std::vector<unsigned>& readers,
                                               const std::vector<bool>& taken);

}  // namespace systole::mapper
