#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/rtl/dma/axi_memory.h"

namespace systole::testbench {
namespace {

constexpr std::size_t kDmaMemory = 1 << 16;

hw::AxiSubordinate::Params port_of_dma(unsigned bytes, unsigned stalls, std::uint64_t seed) {
  hw::AxiSubordinate::Params params;
  params.bytes = params.bus_bytes = bytes;
  params.stalls_per_mille = stalls;
  params.seed = seed;
  return params;
}

RtlOptions checked_dma() {
  RtlOptions options;
  options.checked = true;
  return options;
}

class AxiDma : public testing::TestWithParam<unsigned> {
 protected:
  /// Copies through the DMA; the whole memory has to be what a copy in C++ makes of it.
  std::uint64_t expect_copy(AxiMemory& memory, AxiDmaRtl& dma, std::size_t source,
                            std::size_t target, std::size_t bytes) {
    std::vector<std::uint8_t> expected = memory.bytes();
    std::copy_n(memory.bytes().begin() + static_cast<std::ptrdiff_t>(source), bytes,
                expected.begin() + static_cast<std::ptrdiff_t>(target));
    dma.copy(source, target, bytes);
    const std::uint64_t cycles = memory.run(dma);
    EXPECT_EQ(memory.bytes(), expected)
        << bytes << " bytes from " << source << " to " << target << ", " << GetParam() << " wide";
    EXPECT_FALSE(dma.error());
    EXPECT_FALSE(dma.failed());
    return cycles;
  }
};

TEST_P(AxiDma, CopiesBytesFromAnywhereToAnywhere) {
  const unsigned width = GetParam();
  const auto dma = make_axi_dma(width, checked_dma());
  AxiMemory memory(kDmaMemory, port_of_dma(width, 0, 3), 1, 20);
  // All pairs of lanes, ranges shorter than a word and around one, across pages.
  for (std::size_t from = 0; from < width; from += 3) {
    for (std::size_t to = 0; to < width; ++to) {
      for (const std::size_t bytes : {std::size_t{1}, width - to, std::size_t{2} * width + 1}) {
        expect_copy(memory, *dma, 4096 - width + from, 2 * 4096 - width + to, bytes);
      }
    }
  }
  expect_copy(memory, *dma, 5, 9000, 0);
}

TEST_P(AxiDma, BearsWithAnyBackPressureAndAnyOrderOfAnswers) {
  const unsigned width = GetParam();
  std::mt19937_64 random(7);
  for (const unsigned stalls : {0U, 300U, 800U}) {
    const auto dma = make_axi_dma(width, checked_dma());
    AxiMemory memory(kDmaMemory, port_of_dma(width, stalls, stalls + 1), 1, 60);
    for (int i = 0; i < 12; ++i) {
      const std::size_t bytes = random() % (kDmaMemory / (stalls == 800 ? 16 : 8));
      expect_copy(memory, *dma, random() % (kDmaMemory / 2 - bytes),
                  kDmaMemory / 2 + random() % (kDmaMemory / 2 - bytes), bytes);
    }
    EXPECT_EQ(memory.counts().most_reads, 4U);
    EXPECT_EQ(memory.counts().most_writes, 4U);
    if (stalls != 0) {
      EXPECT_GT(memory.counts().address_waits, 0U);
      EXPECT_GT(memory.counts().data_waits, 0U);
    }
  }
}

// A word a cycle. `latency`: from an address to its first word, and from data to their response
// beyond the cycles of a burst; the others are start, address, packing, the words between, and
// those cycles.
TEST_P(AxiDma, MovesAWordACycleWhileLatencyIsCovered) {
  const unsigned width = GetParam();
  for (const std::uint64_t latency : {1U, 10U, 30U}) {
    const auto dma = make_axi_dma(width, checked_dma());
    AxiMemory memory(kDmaMemory, port_of_dma(width, 0, 1), latency + 16, latency + 16);
    const std::uint64_t words = 512;
    const std::uint64_t cycles = expect_copy(memory, *dma, 0, kDmaMemory / 2, words * width);
    EXPECT_EQ(cycles, words + 2 * latency + 18);
  }
}

TEST_P(AxiDma, SaysThatAResponseWasAnError) {
  const unsigned width = GetParam();
  const auto dma = make_axi_dma(width, checked_dma());
  AxiMemory memory(kDmaMemory, port_of_dma(width, 200, 5), 1, 9);
  const std::vector<std::uint8_t> before = memory.bytes();
  dma->copy(kDmaMemory + 64, 128, 100);  // reads from nowhere
  (void)memory.run(*dma);
  EXPECT_TRUE(dma->error());
  dma->copy(128, kDmaMemory + 64, 100);  // writes to nowhere
  (void)memory.run(*dma);
  EXPECT_TRUE(dma->error());
  EXPECT_TRUE(std::equal(before.begin() + 256, before.end(), memory.bytes().begin() + 256));
  expect_copy(memory, *dma, 512, 1024, 99);
}

TEST_P(AxiDma, FastBuildTakesTheSameCycles) {
  const unsigned width = GetParam();
  std::uint64_t cycles[2];
  for (const bool fast : {false, true}) {
    const auto dma = make_axi_dma(width, fast ? RtlOptions{} : checked_dma());
    AxiMemory memory(kDmaMemory, port_of_dma(width, 300, 9), 1, 40);
    cycles[fast ? 1 : 0] = expect_copy(memory, *dma, 77, 40'000, 3333);
  }
  EXPECT_EQ(cycles[0], cycles[1]);
}

INSTANTIATE_TEST_SUITE_P(Widths, AxiDma, testing::Values(4U, 16U));

}  // namespace
}  // namespace systole::testbench
