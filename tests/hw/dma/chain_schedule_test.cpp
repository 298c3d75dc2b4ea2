#include "hw/dma/chain_schedule.h"

#include <gtest/gtest.h>

#include <optional>

namespace systole::hw {
namespace {

constexpr std::uint64_t kWay = 20;  ///< cycles from a request to its end

ReadMemory quick_memory() {
  return {[](std::uint64_t /*cycle*/) { return true; },
          [](const ReadRequest& request) { return request.issued + kWay; }};
}

ReadParams one_request_a_run() {
  Machine::Dma dma;
  dma.request_bytes = 4096;
  return {RequestCut(dma), 16, SlotOrder::kIssue, 2};
}

ProgramHeader header_with(std::uint32_t commands, std::uint32_t chains, std::uint32_t chain_bytes) {
  ProgramHeader header;
  header.commands = commands;
  header.chains = chains;
  header.chain_bytes = chain_bytes;
  return header;
}

// Chains 1 and 5 have the same of four slots.
TEST(ChainSchedule, ReadsAChainThatIsNotHeld) {
  const ProgramHeader header = header_with(8, 8, 80);
  FetchSchedule fetch(one_request_a_run(), quick_memory(), 8, 0, 8);
  fetch.start(0);
  ASSERT_EQ(fetch.arrival(0), kWay);
  ChainSchedule chains(header, 4, 2);
  const std::uint64_t words = 10;
  const auto from = [&](std::uint64_t seen) { return seen + 1 + kWay + words + 3; };
  EXPECT_EQ(chains.ready(fetch, 1, std::nullopt, kWay, kWay), from(kWay));
  chains.is_used(1, 500);
  EXPECT_EQ(chains.ready(fetch, 1, std::nullopt, kWay, 100), 100U) << "it is there";
  chains.is_used(1, 400);
  EXPECT_EQ(chains.ready(fetch, 2, std::nullopt, kWay, 200), 200U)
      << "an empty slot: it came before";
  chains.is_used(2, 900);
  EXPECT_EQ(chains.ready(fetch, 5, std::nullopt, kWay, 300), from(500))
      << "chain 1 is in use until then";
  chains.is_used(5, 510);
  EXPECT_EQ(chains.ready(fetch, 1, std::nullopt, kWay, 700), 700U)
      << "it has been replaced, and comes ahead of its command";
  EXPECT_EQ(chains.ready(fetch, std::nullopt, std::nullopt, kWay, 700), 700U);
  ASSERT_EQ(fetch.requests().size(), 5U);
  const std::uint32_t read[] = {1, 2, 5, 1};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(fetch.requests()[i + 1].address, header.chain(read[i]));
    EXPECT_EQ(fetch.requests()[i + 1].bytes, 80U);
  }
  const std::uint64_t there = kWay + 1 + kWay;
  EXPECT_EQ(fetch.requests()[2].issued, there + 4) << "two are looked at after it, then it asks";
  EXPECT_EQ(fetch.requests()[3].issued, 501U) << "whatever uses chain 2";
  EXPECT_EQ(fetch.requests()[4].issued, 501 + kWay + 3) << "chain 5 is not in use";
}

TEST(ChainSchedule, LeavesOutWhatACoreCannotHold) {
  FetchSchedule fetch(one_request_a_run(), quick_memory(), 2, 0, 2);
  fetch.start(0);
  ChainSchedule chains(header_with(2, 1, 8 + 72 * 40), 4, 2);
  EXPECT_EQ(chains.ready(fetch, 0, std::nullopt, kWay, kWay), kWay + 1 + kWay + 19 + 3);
  EXPECT_EQ(fetch.requests()[1].bytes, 8U + 72 * 2);
}

// A record of 37 words leaves its buffer while the next one arrives, which then has to wait.
TEST(ChainSchedule, LetsOneRecordLeaveWhileTheNextOneArrives) {
  FetchSchedule fetch(one_request_a_run(), quick_memory(), 2, 0, 2);
  fetch.start(0);
  ASSERT_EQ(fetch.arrival(1), kWay);
  ChainSchedule chains(header_with(2, 2, 8 + 72 * 4), 4, 4);
  const std::uint64_t there = kWay + 1 + kWay, left = there + 37 + 3;
  EXPECT_EQ(chains.ready(fetch, 0, std::nullopt, kWay, kWay), left);
  EXPECT_EQ(chains.ready(fetch, 1, std::nullopt, kWay, left + 1), left + 37 + 3);
  EXPECT_EQ(fetch.requests()[2].issued, there + 3);
}

// The entry of a command whose chain is there, then of one whose chain has just arrived: that one
// is looked at in the cycle after its last byte.
TEST(ChainSchedule, ReadsTheEntryOfASecondTensor) {
  ProgramHeader header = header_with(4, 2, 80);
  header.operands = 9;
  FetchSchedule fetch(one_request_a_run(), quick_memory(), 4, 0, 4);
  fetch.start(0);
  ASSERT_EQ(fetch.arrival(3), kWay);
  ChainSchedule chains(header, 4, 2);
  const std::uint64_t there = kWay + 1 + kWay, left = there + 10 + 3;
  EXPECT_EQ(chains.ready(fetch, 0, 5, kWay, kWay), there + 2 + kWay + 1) << "later than its chain";
  const std::uint64_t looked = there + 2 + kWay + 1;
  EXPECT_EQ(chains.ready(fetch, 0, 8, kWay, left), looked + 2 + kWay + 1);
  EXPECT_EQ(chains.ready(fetch, 0, std::nullopt, kWay, 300), 300U);
  ASSERT_EQ(fetch.requests().size(), 4U);
  EXPECT_EQ(fetch.requests()[2].address, header.operand(5));
  EXPECT_EQ(fetch.requests()[2].bytes, kOperandTileBytes);
  EXPECT_EQ(fetch.requests()[2].issued, there + 2);
  EXPECT_EQ(fetch.requests()[3].address, header.operand(8));
  EXPECT_EQ(fetch.requests()[3].issued, looked + 2);
}

// All commands of the first chunk have been looked at before the second one is asked for.
TEST(ChainSchedule, SharesThePortWithTheCommands) {
  FetchSchedule fetch(one_request_a_run(), quick_memory(), 2, 0, 4);
  fetch.start(0);
  ASSERT_EQ(fetch.arrival(0), kWay);
  ChainSchedule chains(header_with(4, 1, 80), 4, 2);
  const std::uint64_t there = kWay + 1 + kWay;
  EXPECT_EQ(chains.ready(fetch, 0, std::nullopt, kWay, kWay), there + 10 + 3);
  EXPECT_EQ(chains.ready(fetch, std::nullopt, std::nullopt, kWay, 100), 100U);
  EXPECT_EQ(fetch.arrival(2), there + 3 + kWay);
  ASSERT_EQ(fetch.requests().size(), 3U);
  EXPECT_EQ(fetch.requests()[1].issued, kWay + 1) << "the record";
  EXPECT_EQ(fetch.requests()[2].issued, there + 3) << "commands";
}

}  // namespace
}  // namespace systole::hw
