#include "tlm/dma/tlb.h"

#include <gtest/gtest.h>
#include <tlm_utils/simple_target_socket.h>

#include <cstdint>
#include <vector>

#include "support/tlm/systemc_test.h"
#include "support/tlm/tlm_driver.h"
#include "tlm/dma/dma_port.h"

namespace systole::tlm_model {
namespace {

/// Answers everything after 10 cycles of 1 ns, and remembers the addresses.
class CountingMemory : public sc_core::sc_module {
 public:
  tlm_utils::simple_target_socket<CountingMemory> socket{"socket"};
  std::vector<std::uint64_t> addresses, cycles;

  explicit CountingMemory(const sc_core::sc_module_name& name) : sc_module(name) {
    socket.register_b_transport(this, &CountingMemory::b_transport);
  }

 private:
  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
    addresses.push_back(payload.get_address());
    cycles.push_back(to_ps(sc_core::sc_time_stamp() + delay) / 1000);
    delay += sc_core::sc_time(10, sc_core::SC_NS);
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
  }
};

hw::Machine tlb_machine(std::uint32_t entries, std::uint32_t walk_reads) {
  hw::Machine machine;
  machine.dram.mib = 1;
  machine.tlb = {entries, 4096, 0, 1, 5, walk_reads};
  return machine;
}

class TlbTest : public test::SystemCTest {
 protected:
  CountingMemory memory_{"memory"}, table_{"table"};
  static constexpr std::uint64_t kPage = 4096;
};

TEST_F(TlbTest, AsksForOtherPagesOnlyAndWalksForUnknownOnes) {
  const hw::Machine machine = tlb_machine(2, 1);
  Tlb tlb(machine);
  DmaPort port("port", machine, 16), walker("walker", machine, 1);
  port.socket.bind(memory_.socket);
  walker.socket.bind(table_.socket);
  port.translate_by(tlb, walker);
  test::run_body([&] {
    // Pages 0 0 1 0 2 0 1: page 1 is the least recent one when 2 comes.
    for (const std::uint64_t page : {0, 0, 1, 0, 2, 0, 1}) port.read(page * kPage, nullptr, 64);
  });
  // A miss: hit_cycles 1, miss_cycles 5, a read of 10. A hit: 1. The page before: 0.
  EXPECT_EQ(memory_.cycles, (std::vector<std::uint64_t>{16, 17, 34, 36, 53, 55, 72}));
  const std::uint64_t end = std::uint64_t{1} << 20;
  EXPECT_EQ(table_.addresses, (std::vector<std::uint64_t>{end - 8, end - 16, end - 24, end - 16}));
  EXPECT_EQ(port.stats().tlb_misses, 4U);
  EXPECT_EQ(port.stats().tlb_wait_cycles, 4U * 16 + 2 * 1);
}

TEST_F(TlbTest, ReadsOfAWalkFollowOneAnother) {
  const hw::Machine machine = tlb_machine(2, 3);
  Tlb tlb(machine);
  DmaPort port("port", machine, 16), walker("walker", machine, 1);
  port.socket.bind(memory_.socket);
  walker.socket.bind(table_.socket);
  port.translate_by(tlb, walker);
  test::run_body([&] { port.read(3 * kPage, nullptr, 64); });
  EXPECT_EQ(memory_.cycles, std::vector<std::uint64_t>{1 + 5 + 3 * 10});
  // 256 leaves, then tables of one entry each, root first.
  const std::uint64_t end = std::uint64_t{1} << 20;
  EXPECT_EQ(table_.addresses, (std::vector<std::uint64_t>{end - 256 * 8 - 8 - 8, end - 256 * 8 - 8,
                                                          end - 3 * 8 - 8}));
}

TEST_F(TlbTest, TheSecondTableSparesWalks) {
  hw::Machine machine = tlb_machine(1, 1);
  machine.tlb.second_entries = 4;
  Tlb tlb(machine);
  DmaPort port("port", machine, 16), walker("walker", machine, 1);
  port.socket.bind(memory_.socket);
  walker.socket.bind(table_.socket);
  port.translate_by(tlb, walker);
  test::run_body([&] {
    // Pages 0 and 4 share an entry of the second table.
    for (const std::uint64_t page : {0, 1, 0, 4, 0}) port.read(page * kPage, nullptr, 64);
  });
  EXPECT_EQ(table_.addresses.size(), 4U) << "the second time that page 0 is read it is known";
  EXPECT_EQ(memory_.cycles, (std::vector<std::uint64_t>{16, 33, 40, 57, 74}));
}

TEST_F(TlbTest, PortsShareTheTableAndItsWalker) {
  const hw::Machine machine = tlb_machine(4, 1);
  Tlb tlb(machine);
  DmaPort first("first", machine, 16), walker("walker", machine, 1);
  DmaPort second("second", machine, 16), third("third", machine, 16);
  first.socket.bind(memory_.socket);
  walker.socket.bind(table_.socket);
  CountingMemory other("other"), another("another");
  second.socket.bind(other.socket);
  third.socket.bind(another.socket);
  for (DmaPort* port : {&first, &second, &third}) port->translate_by(tlb, walker);
  test::run_body([&] {
    first.read(0, nullptr, 64);
    second.read(kPage, nullptr, 64);  // not before the walker is free
    third.read(0, nullptr, 64);       // not before the walk of the first has ended
  });
  EXPECT_EQ(table_.addresses.size(), 2U);
  EXPECT_EQ(memory_.cycles, std::vector<std::uint64_t>{16});
  EXPECT_EQ(other.cycles, std::vector<std::uint64_t>{16 + 5 + 10});
  EXPECT_EQ(another.cycles, std::vector<std::uint64_t>{16});
  EXPECT_EQ(third.stats().tlb_misses, 0U);
}

}  // namespace
}  // namespace systole::tlm_model
