#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "hw/number/half.h"
#include "tests/support/half_oracle.h"

/// Packets for the tests of the router.
namespace systole::testbench {

/// Flits of a packet that the small build takes.
inline constexpr std::uint32_t kSmallRouterFlits = 4;

inline std::vector<hw::Half> random_part(std::size_t size, std::mt19937_64& random) {
  std::vector<hw::Half> values(size);
  for (hw::Half& value : values) value = test::random_half(random);
  return values;
}

}  // namespace systole::testbench
