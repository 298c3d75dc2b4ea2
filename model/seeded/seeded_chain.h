#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "model/build/operator_graph.h"
#include "model/graph/graph.h"

namespace systole::model {

/// Bytes of a tensor of codes that are used well: normal, at four deviations the largest code, or
/// of s16 and s32 a residual stream's.
[[nodiscard]] std::vector<std::uint8_t> seeded_codes(const Tensor& tensor, std::uint64_t seed,
                                                     const hw::Machine::Datapath& datapath);

/// A user's chain of operators (docs/fusion.md#your-own-chain): a TOML file with `inputs` and
/// `nodes`, which have the operators and attributes of a network file (docs/network-format.md). The
/// file says sizes; weights and other constants have seeded values, and factors that it leaves out
/// use the codes of their results well. Inputs after the first one are constants. Throws InputError
/// with file, place and what was expected.
[[nodiscard]] OperatorNetwork read_chain(const std::string& path, std::uint64_t seed,
                                         const hw::Machine::Datapath& datapath);

}  // namespace systole::model
