#include "tlm/dma/tlb.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "support/tlm/fixed_target.h"
#include "support/tlm/systemc_test.h"
#include "support/tlm/tlm_driver.h"
#include "tlm/dma/request_dma.h"

namespace systole::tlm_model {
namespace {

using test::FixedTarget;

hw::Machine tlb_machine(std::uint32_t entries, std::uint32_t walk_reads) {
  hw::Machine machine;
  machine.dram.mib = 1;
  machine.tlb = {entries, 4096, 0, 1, 5, walk_reads};
  return machine;
}

class TlbTest : public test::SystemCTest {
 protected:
  FixedTarget memory_{"memory", 1 << 20}, table_{"table", 1 << 20};
  static constexpr std::uint64_t kPage = 4096;
};

TEST_F(TlbTest, AsksForOtherPagesOnlyAndWalksForUnknownOnes) {
  const hw::Machine machine = tlb_machine(2, 1);
  Tlb tlb(machine);
  RequestDma port("port", machine, 16), walker("walker", machine, 1);
  port.socket.bind(memory_.socket);
  walker.socket.bind(table_.socket);
  port.translate_by(tlb, walker);
  test::run_body([&] {
    // Pages 0 0 1 0 2 0 1: page 1 is the least recent one when 2 comes.
    for (const std::uint64_t page : {0, 0, 1, 0, 2, 0, 1}) port.read(page * kPage, nullptr, 64);
  });
  // A miss: hit_cycles 1, miss_cycles 5, a read of 10. A hit: 1. The page before: 0.
  EXPECT_EQ(memory_.cycles(), (std::vector<std::uint64_t>{16, 17, 34, 36, 53, 55, 72}));
  const std::uint64_t end = std::uint64_t{1} << 20;
  EXPECT_EQ(table_.addresses, (std::vector<std::uint64_t>{end - 8, end - 16, end - 24, end - 16}));
  EXPECT_EQ(port.stats().tlb_misses, 4U);
  EXPECT_EQ(port.stats().tlb_wait_cycles, 4U * 16 + 2 * 1);
}

TEST_F(TlbTest, ReadsOfAWalkFollowOneAnother) {
  const hw::Machine machine = tlb_machine(2, 3);
  Tlb tlb(machine);
  RequestDma port("port", machine, 16), walker("walker", machine, 1);
  port.socket.bind(memory_.socket);
  walker.socket.bind(table_.socket);
  port.translate_by(tlb, walker);
  test::run_body([&] { port.read(3 * kPage, nullptr, 64); });
  EXPECT_EQ(memory_.cycles(), std::vector<std::uint64_t>{1 + 5 + 3 * 10});
  // 256 leaves, then tables of one entry each, root first.
  const std::uint64_t end = std::uint64_t{1} << 20;
  EXPECT_EQ(table_.addresses, (std::vector<std::uint64_t>{end - 256 * 8 - 8 - 8, end - 256 * 8 - 8,
                                                          end - 3 * 8 - 8}));
}

TEST_F(TlbTest, TheSecondTableSparesWalks) {
  hw::Machine machine = tlb_machine(1, 1);
  machine.tlb.second_entries = 4;
  Tlb tlb(machine);
  RequestDma port("port", machine, 16), walker("walker", machine, 1);
  port.socket.bind(memory_.socket);
  walker.socket.bind(table_.socket);
  port.translate_by(tlb, walker);
  test::run_body([&] {
    // Pages 0 and 4 share an entry of the second table.
    for (const std::uint64_t page : {0, 1, 0, 4, 0}) port.read(page * kPage, nullptr, 64);
  });
  EXPECT_EQ(table_.addresses.size(), 4U) << "the second time that page 0 is read it is known";
  EXPECT_EQ(memory_.cycles(), (std::vector<std::uint64_t>{16, 33, 40, 57, 74}));
}

TEST_F(TlbTest, PortsShareTheTableAndItsWalker) {
  const hw::Machine machine = tlb_machine(4, 1);
  Tlb tlb(machine);
  RequestDma first("first", machine, 16), second("second", machine, 16);
  RequestDma third("third", machine, 16);
  RequestDma first_walker("first_walker", machine, 1), second_walker("second_walker", machine, 1);
  RequestDma third_walker("third_walker", machine, 1);
  FixedTarget other("other", 1 << 20), another("another", 1 << 20);
  FixedTarget second_table("second_table", 1 << 20), third_table("third_table", 1 << 20);
  first.socket.bind(memory_.socket);
  second.socket.bind(other.socket);
  third.socket.bind(another.socket);
  first_walker.socket.bind(table_.socket);
  second_walker.socket.bind(second_table.socket);
  third_walker.socket.bind(third_table.socket);
  first.translate_by(tlb, first_walker);
  second.translate_by(tlb, second_walker);
  third.translate_by(tlb, third_walker);
  const auto read = [](RequestDma& port, std::uint64_t address) {
    sc_core::sc_spawn([&port, address] { port.read(address, nullptr, 64); });
  };
  read(first, 0);
  read(second, kPage);  // not before the walker is free
  read(third, 0);       // not before the walk of the first has ended
  sc_core::sc_start();
  EXPECT_EQ(table_.addresses.size(), 1U);
  EXPECT_EQ(second_table.addresses.size(), 1U);
  EXPECT_EQ(third_table.addresses.size(), 0U);
  EXPECT_EQ(memory_.cycles(), std::vector<std::uint64_t>{16});
  EXPECT_EQ(other.cycles(), std::vector<std::uint64_t>{16 + 5 + 10});
  EXPECT_EQ(another.cycles(), std::vector<std::uint64_t>{16});
  EXPECT_EQ(third.stats().tlb_misses, 0U);
}

}  // namespace
}  // namespace systole::tlm_model
