#pragma once

#include <cstdint>
#include <vector>

#include "mapper/ring/split.h"

namespace systole::mapper::dfx {

/// Of a pass, at most.
inline constexpr std::uint32_t kMostRows = 256;

/// Exchanges of a row of a pass, in the order of Pass::exchanges: the heads' outputs, their
/// projection, the hidden layer, its output.
enum RowExchange : std::uint32_t { kAttended, kProjected, kHidden, kOutput, kExchanges };

/// Exchange::first where `count` things of `unit` elements each are split among `parts` cores.
[[nodiscard]] inline std::vector<std::uint32_t> bounds(std::uint32_t count, std::uint32_t parts,
                                                       std::uint32_t unit) {
  std::vector<std::uint32_t> first(1, 0);
  for (std::uint32_t i = 0; i < parts; ++i) first.push_back(split(count, parts, i).end * unit);
  return first;
}

}  // namespace systole::mapper::dfx
