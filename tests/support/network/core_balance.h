#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "testbench/cores/cores_simulation.h"

namespace systole::test {

/// All cycles and requests of a core among several are accounted for, together and alone.
inline void expect_balance(const testbench::CoreShare& core) {
  SCOPED_TRACE(core.name);
  EXPECT_EQ(core.running + core.wait + core.done + core.host, core.total);
  std::uint64_t together = 0, alone = 0;
  for (const testbench::PathShare& part : core.path) {
    together += part.together;
    alone += part.alone;
  }
  EXPECT_EQ(together, core.running);
  EXPECT_EQ(alone, core.alone);
  EXPECT_EQ(core.together_requests.transfers(), core.alone_requests.transfers());
}

}  // namespace systole::test
