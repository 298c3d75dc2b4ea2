#include "hw/dma/store_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "hw/dma/write_dma.h"

namespace systole::hw {
namespace {

struct StoreCase {
  Machine machine;
  std::uint64_t piece;
  RowWrite rows;
  std::vector<std::uint64_t> begins;     ///< by row: cycle before which its first piece cannot come
  std::vector<std::uint64_t> latencies;  ///< by request, from its last beat on
};

/// Rows of one or more requests, in a memory that is fast or slow.
StoreCase random_case(std::mt19937_64& random, bool aligned) {
  StoreCase test;
  Machine& machine = test.machine;
  machine.bus.width_bytes = 4U << random() % 3;
  machine.dma.request_bytes = machine.bus.width_bytes << (1 + random() % 3);
  machine.dma.outstanding_writes = static_cast<std::uint32_t>(1 + random() % 6);
  test.piece = machine.bus.width_bytes >> (random() % 2);
  const std::uint64_t least = random() % 2 == 0 ? 2 : 40;
  const std::uint64_t unit = aligned ? machine.bus.width_bytes : 1;
  test.rows.rows = 1 + random() % 40;
  test.rows.bytes = 1 + random() % (5 * machine.dma.request_bytes);
  test.rows.address = random() % 64 * unit;
  test.rows.pitch = (test.rows.bytes + random() % 64 + unit) / unit * unit;
  std::uint64_t cycle = 10;
  for (std::uint64_t row = 0; row < test.rows.rows; ++row) {
    test.begins.push_back(cycle);
    if (random() % 4 == 0) cycle += random() % 50;
  }
  for (std::size_t i = 0; i < 1000; ++i) test.latencies.push_back(least + random() % least);
  return test;
}

/// Cycles in which the requests issue in gates, whose stages stand still while there is no room.
std::vector<std::uint64_t> in_gates(const StoreCase& test) {
  const Machine& machine = test.machine;
  const std::uint64_t beat = machine.bus.width_bytes;
  std::size_t answered = 0;
  WriteMemory memory;
  memory.takes = memory.takes_data = [](std::uint64_t) { return true; };
  memory.done = [&](const WriteRequest& request) {
    return request.sent + test.latencies[answered++];
  };
  WritePort port({RequestCut(machine.dma), beat, machine.dma.outstanding_writes, SlotOrder::kIssue,
                  static_cast<std::uint32_t>(2 * machine.dma.request_bytes / beat)},
                 memory);
  std::uint64_t cycle = 0;
  port.start(test.rows, 0);
  for (const std::uint64_t begin : test.begins) {
    for (std::uint64_t at = 0; at < test.rows.bytes;) {
      const bool comes = cycle >= begin && port.takes();
      const std::uint64_t piece = comes ? std::min(test.piece, test.rows.bytes - at) : 0;
      port.step(cycle++, piece, at + piece == test.rows.bytes);
      at += piece;
    }
  }
  while (!port.idle()) port.step(cycle++, 0, false);
  std::vector<std::uint64_t> issued;
  for (const WriteRequest& request : port.requests()) issued.push_back(request.issued);
  return issued;
}

/// The same by StoreQueue and PacedRow.
std::vector<std::uint64_t> by_request(const StoreCase& test) {
  const Machine& machine = test.machine;
  const RequestCut cut(machine.dma);
  StoreQueue queue(machine);
  std::vector<std::uint64_t> issued, done;
  std::uint64_t next = 0, sent = 0;
  std::uint64_t free = 0;  // cycle from which the stages can have the next row's first piece out
  std::uint64_t address = test.rows.address;
  const std::uint64_t bytes = test.rows.bytes;
  for (const std::uint64_t begin : test.begins) {
    const std::uint64_t ready = std::max(begin, free) + ceil_div(bytes, test.piece);
    PacedRow paced(address, bytes, test.piece, ready, queue);
    cut.for_each(address, bytes, [&](std::uint64_t at, std::uint64_t length) {
      const std::uint64_t beats = queue.beats(address + at, length);
      const std::uint64_t room = paced.request(at, length, queue);
      EXPECT_EQ(paced.request(at, length, queue), room) << "again";
      std::uint64_t cycle = std::max(next, room);
      const std::size_t slots = machine.dma.outstanding_writes;
      if (done.size() >= slots) cycle = std::max(cycle, done[done.size() - slots]);
      queue.issue(cycle, beats);
      next = cycle + 1;
      sent = std::max(cycle, sent) + beats;
      done.push_back(sent + test.latencies[done.size()]);
      issued.push_back(cycle);
    });
    paced.end(queue);
    free = ready + paced.stalled();
    address += test.rows.pitch;
  }
  return issued;
}

class StoreQueueTest : public ::testing::TestWithParam<bool> {};

TEST_P(StoreQueueTest, IsThatOfTheGates) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 3000; ++i) {
    const StoreCase test = random_case(random, GetParam());
    ASSERT_EQ(by_request(test), in_gates(test))
        << i << ": " << test.machine.bus.width_bytes << " " << test.machine.dma.request_bytes << " "
        << test.machine.dma.outstanding_writes << " " << test.piece << " rows " << test.rows.rows
        << " x " << test.rows.bytes << " at " << test.rows.address << " pitch " << test.rows.pitch;
  }
}
INSTANTIATE_TEST_SUITE_P(AlignedOrNot, StoreQueueTest, ::testing::Bool());

}  // namespace
}  // namespace systole::hw
