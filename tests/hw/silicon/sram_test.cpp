#include "hw/silicon/sram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>

namespace systole::hw {
namespace {

constexpr double kKibBytes = 1024;

// A sweep makes a memory larger to see what that costs: nothing may ever become cheaper by it.
TEST(Sram, NothingIsCheaperForMoreBytesBanksOrPorts) {
  std::mt19937 random(7);
  const auto power = [&](int least, int most) {
    return std::uint32_t{1} << std::uniform_int_distribution<int>(least, most)(random);
  };
  for (int trial = 0; trial < 20'000; ++trial) {
    SramSize size;
    size.bytes = std::exp2(std::uniform_real_distribution<double>(8, 27)(random));
    size.word_bytes = std::uniform_int_distribution<int>(1, 1024)(random);
    size.banks = power(0, 6);
    size.ports = std::uniform_int_distribution<std::uint32_t>(1, 4)(random);
    const auto never_cheaper = [&](const SramSize& more) {
      EXPECT_GE(sram_byte_pj(more), sram_byte_pj(size) * (1 - 1e-12))
          << size.bytes << " " << size.word_bytes << " " << size.banks << " " << size.ports;
      EXPECT_GE(sram_mm2(more), sram_mm2(size) * (1 - 1e-12))
          << size.bytes << " " << size.word_bytes << " " << size.banks << " " << size.ports;
    };
    SramSize more = size;
    more.bytes *= std::uniform_real_distribution<double>(1, 9)(random);
    never_cheaper(more);
    more = size;
    more.banks *= 2;
    never_cheaper(more);
    more = size;
    more.ports += 1;
    never_cheaper(more);
  }
}

// What larger memories cost has to show, not only not to shrink.
TEST(Sram, FourTimesTheBytesCostSixtyPercentMoreAByte) {
  for (double kib = 4; kib <= 4096; kib *= 4) {
    const double ratio =
        sram_byte_pj({4 * kib * kKibBytes, 16}) / sram_byte_pj({kib * kKibBytes, 16});
    EXPECT_GT(ratio, 1.6) << kib;
    EXPECT_LT(ratio, 2.3) << kib;
    EXPECT_NEAR(sram_mm2({4 * kib * kKibBytes, 16}) / sram_mm2({kib * kKibBytes, 16}), 4, 0.65)
        << kib;
  }
}

// Macros of OpenROAD's platform nangate45, which come from another model of memories:
// fakeram45_512x64 and fakeram45_2048x39, picojoules of a clock edge that reads.
TEST(Sram, IsWithinAFactorOfPublishedMacros) {
  struct Macro {
    double bytes, word_bytes, access_pj, um2;
  };
  for (const Macro& macro : {Macro{4096, 8, 5.300, 17301}, Macro{9984, 4.875, 6.855, 45479}}) {
    const SramSize size{macro.bytes, macro.word_bytes};
    const double energy = sram_byte_pj(size) * macro.word_bytes / macro.access_pj;
    const double area = sram_mm2(size) * 1e6 / macro.um2;
    EXPECT_GT(energy, 1 / 1.5) << macro.bytes;
    EXPECT_LT(energy, 1.5) << macro.bytes;
    EXPECT_GT(area, 1 / 1.6) << macro.bytes;
    EXPECT_LT(area, 1.0) << macro.bytes;
  }
}

TEST(Sram, IsWhatCactiSaysAtItsPoints) {
  EXPECT_NEAR(sram_byte_pj({64 * kKibBytes, 16}), 1.937, 1e-9);
  EXPECT_NEAR(sram_byte_pj({1024 * kKibBytes, 4}), 9.586, 1e-9);
  EXPECT_NEAR(sram_byte_pj({64 * kKibBytes, 16, 1, 2}), 2.475, 1e-9);
  EXPECT_NEAR(sram_byte_pj({1024 * kKibBytes, 16, 1, 4}), 32.19, 1e-9);
  EXPECT_NEAR(sram_mm2({256 * kKibBytes, 64}), 1.074, 1e-9);
  EXPECT_NEAR(sram_mm2({64 * kKibBytes, 16, 1, 4}), 0.9811, 1e-9);
  EXPECT_NEAR(sram_mm2({64 * kKibBytes, 16, 64}), 64 * 0.005318, 1e-9);
  EXPECT_NEAR(sram_mm2({256, 16}), 0.005318 / 4, 1e-9);
  // 256 bytes are four memories of 64.
  EXPECT_NEAR(sram_byte_pj({256 * kKibBytes, 256}), sram_byte_pj({64 * kKibBytes, 64}), 1e-9);
  EXPECT_NEAR(sram_mm2({256 * kKibBytes, 256}), 4 * 0.2037, 1e-9);
}

}  // namespace
}  // namespace systole::hw
