/// rtl/core/systole_core.sv against the contracts of its parts together.
#include <gtest/gtest.h>

#include <cstdint>

#include "testbench/rtl/core/core_rtl.h"
#include "tests/rtl/core/core_case.h"

namespace systole::testbench {
namespace {

const RtlOptions kCoreChecks{true, "", 6};

constexpr hw::SlotOrder kSlotOrders[] = {hw::SlotOrder::kIssue, hw::SlotOrder::kCompletion};
constexpr hw::ArrayOverlap kOverlaps[] = {hw::ArrayOverlap::kFull, hw::ArrayOverlap::kPreload,
                                          hw::ArrayOverlap::kNone};

TEST(Core, RunsRandomProgramsInTheCyclesOfTheContracts) {
  const auto core = make_core(kCoreChecks);
  hw::test::Random random(23);
  RandomCore cases(random);
  RtlCounts counts;
  for (int i = 0; i < 150; ++i) {
    const hw::Program program = i == 0 ? cases.first() : cases.next(24);
    const CoreCase test{program, cases.put(program), kSlotOrders[random() % 2],
                        kOverlaps[random() % 4 % 3]};
    check_core(*core, test, cases.ports(), cases.state(), counts);
    ASSERT_EQ(counts.mismatches, 0U) << "program " << i;
  }
  EXPECT_GT(counts.operations, 1'500U);
}

}  // namespace
}  // namespace systole::testbench
