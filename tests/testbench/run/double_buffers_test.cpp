#include "bench/double_buffers.h"

#include <gtest/gtest.h>

#include "hw/description/machine_file.h"
#include "model/seeded/shapes.h"

namespace systole::bench {
namespace {

model::Graph encoder(std::uint32_t tokens) {
  model::SeededOptions options;
  options.shape_only = true;
  return model::make_seeded_encoder("encoder", {1, 64, 4, 128, true}, tokens, 1, options);
}

hw::Machine machine(std::uint32_t scratchpad_kib, std::uint32_t accumulator_kib) {
  hw::Machine machine = hw::find_machine("transformer");
  machine.array.rows = machine.array.cols = 32;
  machine.scratchpad.kib = scratchpad_kib;
  machine.accumulator.kib = accumulator_kib;
  return machine;
}

TEST(DoubleBuffers, AreTwoTilesOfWholeRowsOfScores) {
  // 32 rows of 256 sums are 32 KiB.
  EXPECT_TRUE(holds_double_buffers(encoder(256), machine(64, 64)));
  EXPECT_FALSE(holds_double_buffers(encoder(256), machine(64, 63)));
  EXPECT_TRUE(holds_double_buffers(encoder(128), machine(64, 63)));
  EXPECT_TRUE(holds_double_buffers(encoder(256), machine(64, 1024)));
}

TEST(DoubleBuffers, HaveNoRoomForRowsThatNoSoftmaxNeeds) {
  // The widest other product has 192 columns: its tiles are as wide as the array.
  EXPECT_TRUE(holds_double_buffers(encoder(32), machine(64, 8)));
  EXPECT_FALSE(holds_double_buffers(encoder(32), machine(64, 7)));
}

TEST(DoubleBuffers, AreTwoTilesOfEachOperand) {
  // 32 x 32 bytes of A and of B, twice, are 4 KiB.
  EXPECT_TRUE(holds_double_buffers(encoder(32), machine(4, 64)));
  EXPECT_FALSE(holds_double_buffers(encoder(32), machine(3, 64)));
}

}  // namespace
}  // namespace systole::bench
