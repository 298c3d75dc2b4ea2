#include <gtest/gtest.h>

#include "reproduce/survey/survey.h"

namespace systole::testbench {
namespace {

// Cycles of the RTL (FireSim, artifact of DOSA), by M x N x K.
TEST(GemminiMatmul, TakesTheCyclesOfTheRtl) {
  struct Measured {
    MatmulShape shape;
    double cycles, tolerance;
  };
  const Measured measured[] = {{{128, 768, 768}, 345'931, 0.10},
                               {{128, 3072, 768}, 1'533'044, 0.10},
                               {{128, 768, 3072}, 1'518'059, 0.10},
                               {{128, 128, 64}, 6'706, 0.25},
                               {{128, 64, 128}, 7'517, 0.25}};
  const SplitRun run = run_measured_products();
  ASSERT_EQ(run.products.size(), 5U);
  for (const ProductRun& product : run.products) {
    bool known = false;
    for (const Measured& m : measured) {
      const MatmulShape& shape = product.product.shape;
      if (shape.m != m.shape.m || shape.n != m.shape.n || shape.k != m.shape.k) continue;
      known = true;
      EXPECT_NEAR(static_cast<double>(product.cycles), m.cycles, m.cycles * m.tolerance)
          << shape.n << " x " << shape.k;
    }
    EXPECT_TRUE(known);
  }
}

}  // namespace
}  // namespace systole::testbench
