/// rtl/dma/systole_read_dma.sv against its contract, cycle by cycle and byte by byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "Vread_dma_4x16x4x4_checked.h"
#include "base/error.h"
#include "testbench/rtl/dma/read_dma_rtl.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "tests/rtl/dma/read_answers.h"
#include "tests/rtl/drive/expected_assertions.h"

namespace systole::testbench {
namespace {

using hw::RowRead;

const RtlOptions kReadDmaChecks{true, "", 8};
constexpr std::uint64_t kReadMemory = 1 << 16, kLocalMemory = 1 << 14;

std::uint64_t draw(std::mt19937_64& random, std::uint64_t least, std::uint64_t most) {
  return least + random() % (most - least + 1);
}

/// Rows of any length from any byte to any byte; `small`: one of a few bytes.
RowRead random_read(std::mt19937_64& random, bool small) {
  RowRead read;
  read.rows = draw(random, 1, small ? 1 : random() % 3 == 0 ? 12 : 3);
  read.bytes = draw(random, 1, small ? 9 : random() % 3 == 0 ? 300 : 40);
  read.pitch = random() % 4 == 0 ? read.bytes : draw(random, 1, 1000);
  read.to_pitch = random() % 4 == 0 ? read.bytes : draw(random, 1, 400);
  read.address = draw(random, 0, kReadMemory - 1 - 11 * 1000 - 300 - 16);
  read.to = draw(random, 0, kLocalMemory - 1 - 11 * 400 - 300 - 16);
  if (random() % 2 == 0) read.address -= read.address % 64;
  if (random() % 2 == 0) read.to -= read.to % 16;
  read.sums = random() % 2 == 0;
  return read;
}

std::vector<RowRead> random_reads(std::mt19937_64& random) {
  std::vector<RowRead> reads(draw(random, 1, 24));
  std::uint64_t arrival = draw(random, 0, 20);
  const std::uint64_t gap = random() % 2 == 0 ? 0 : 60;
  const bool small = random() % 3 == 0;
  for (RowRead& read : reads) {
    read = random_read(random, small);
    read.arrival = arrival += draw(random, 0, gap);
  }
  return reads;
}

class ReadDma : public testing::TestWithParam<std::size_t> {
 protected:
  [[nodiscard]] ReadAnswers random_answers(std::mt19937_64& random) const {
    const std::uint64_t least = draw(random, 1, 30);
    return {size_.beat_bytes, least, least + draw(random, 0, random() % 2 == 0 ? 3 : 80),
            random() % 2 == 0 ? 0 : draw(random, 1, 800), random()};
  }

  const ReadDmaSize size_ = kReadDmaSizes.at(GetParam());
};

TEST_P(ReadDma, MeetsTheContractOnRandomReads) {
  const auto dma = make_read_dma(size_, kReadDmaChecks);
  std::mt19937_64 random(GetParam() + 1);
  std::vector<std::uint8_t> bytes(kReadMemory);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  RtlCounts counts;
  std::uint64_t requests = 0, overtaken = 0, waited = 0, full = 0;
  for (int i = 0; i < 250; ++i) {
    const std::vector<RowRead> reads = random_reads(random);
    const ReadAnswers answers = random_answers(random);
    const auto slots = i % 2 == 0 ? hw::SlotOrder::kIssue : hw::SlotOrder::kCompletion;
    const std::uint32_t row_bytes = random() % 3 == 0 ? 1U << draw(random, 3, 7) : 0;
    const hw::ReadParams params = read_params(size_, slots, row_bytes);
    const std::uint64_t delay = draw(random, 1, 40);
    const auto memory = [&] {
      hw::ReadMemory made = answers.memory();
      if (!size_.late_sums) return made;
      made.placed = [delay](const hw::ReadRequest& request) {
        return request.done + 1 + request.done * 7 % delay;
      };
      return made;
    };
    check_read_dma(*dma, reads, size_, params, memory, bytes, kLocalMemory, counts);
    ASSERT_EQ(counts.mismatches, 0U) << "program " << i;
    const hw::ReadSchedule schedule = hw::read_schedule(reads, params, memory());
    requests += schedule.requests.size();
    for (std::size_t r = 1; r < schedule.requests.size(); ++r) {
      const hw::ReadRequest &before = schedule.requests[r - 1], &request = schedule.requests[r];
      overtaken += request.done < before.done ? 1 : 0;
      waited += request.command == before.command && request.issued > before.issued + 1 ? 1 : 0;
    }
    for (std::size_t c = 1; c < reads.size(); ++c) {
      full += schedule.times[c].started > std::max(reads[c].arrival, schedule.times[c - 1].released)
                  ? 1
                  : 0;
    }
  }
  EXPECT_GT(counts.operations, 2'500U);
  EXPECT_GT(requests, 10'000U);
  EXPECT_GT(overtaken, 1'000U);
  EXPECT_GT(waited, 3'000U);
  EXPECT_GT(full, 50U) << "as many commands in flight as have tags";
}

// One command after the other, a request a cycle: nothing is lost between them.
TEST_P(ReadDma, CommandsFollowWithoutAGap) {
  const auto dma = make_read_dma(size_, kReadDmaChecks);
  const std::uint64_t request = size_.request_bytes;
  std::vector<RowRead> reads(size_.commands);
  for (std::size_t i = 0; i < reads.size(); ++i) {
    reads[i].address = i * request;
    reads[i].bytes = request;
    reads[i].to = i * request;
  }
  const ReadAnswers answers{size_.beat_bytes, 4, 4, 0, 1};
  const hw::ReadParams params = read_params(size_, hw::SlotOrder::kIssue, 0);
  const ReadDmaRtl::Run run =
      dma->run(reads, params, answers.memory(), std::vector<std::uint8_t>(4096),
               std::vector<std::uint8_t>(4096), nullptr);
  for (std::size_t i = 0; i < reads.size(); ++i) {
    EXPECT_EQ(run.schedule.times[i].started, i);
    EXPECT_EQ(run.schedule.times[i].released, i + 1);
    const std::uint64_t beats = request / size_.beat_bytes;
    EXPECT_EQ(run.schedule.times[i].completed, 4 + (i + 1) * beats) << "a beat a cycle";
  }
}

TEST_P(ReadDma, SaysThatAResponseWasAnError) {
  const auto dma = make_read_dma(size_, kReadDmaChecks);
  const ReadAnswers answers{size_.beat_bytes, 2, 9, 0, 1};
  RowRead read;
  const auto run = [&](std::uint64_t address) {
    read.address = address;
    read.bytes = 100;
    (void)dma->run({read}, read_params(size_, hw::SlotOrder::kIssue, 0), answers.memory(),
                   std::vector<std::uint8_t>(1024), std::vector<std::uint8_t>(1024), nullptr);
    return dma->error();
  };
  EXPECT_FALSE(run(800));
  EXPECT_TRUE(run(1024 - 64)) << "the end of it is nowhere";
  EXPECT_FALSE(run(0));
  EXPECT_FALSE(dma->failed());
}

INSTANTIATE_TEST_SUITE_P(Sizes, ReadDma, testing::Values(std::size_t{0}, std::size_t{1}));

TEST(ReadDmaSizes, AreThoseThatAreBuilt) {
  EXPECT_THROW((void)make_read_dma({16, 64, 15, 8}), hw::InputError);
}

/// A port without a command: pins begin at random.
struct QuietReadDma : VerilatedDut<Vread_dma_4x16x4x4_checked> {
  QuietReadDma() : VerilatedDut(kReadDmaChecks) {
    auto& pins = **this;
    pins.start_valid_i = pins.ar_ready_i = pins.r_valid_i = pins.placed_i = 0;
    pins.row_bytes_i = 0;
    pins.in_order_i = 1;
    pins.address_i = pins.rows_i = pins.bytes_i = pins.pitch_i = 1;
    reset();
  }
};

TEST(ReadDmaProtocol, AssertionFiresWhenAWaitingCommandChanges) {
  QuietReadDma dut;
  dut->start_valid_i = 1;
  dut.end_cycle(true);  // it starts
  dut.settle();
  expect_assertion("StartHeld_A", dut, 3, [&] { dut->address_i = 2; });
}

TEST(ReadDmaProtocol, AssertionFiresForDataWithoutARequest) {
  QuietReadDma dut;
  dut->r_last_i = 1;
  const ExpectedAssertions expected({"GivenUsed_A", "LastOfRequest_A"});
  dut->r_valid_i = 1;
  dut.tick();
  EXPECT_TRUE(dut.failed());
}

}  // namespace
}  // namespace systole::testbench
