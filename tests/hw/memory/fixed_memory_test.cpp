#include "hw/memory/fixed_memory.h"

#include <gtest/gtest.h>

#include <random>

namespace systole::hw {
namespace {

Machine::Memory memory_of(std::uint32_t latency, std::uint32_t read_beat_cycles,
                          std::uint32_t queue = 64) {
  Machine::Memory memory;
  memory.model = MemoryModel::kFixed;
  memory.latency = latency;
  memory.read_beat_cycles = read_beat_cycles;
  memory.queue = queue;
  return memory;
}

void expect_answer(const FixedMemory::Answer& answer, std::uint64_t first, std::uint64_t last) {
  EXPECT_EQ(answer.first, first);
  EXPECT_EQ(answer.last, last);
}

TEST(FixedMemory, AnswersInOrderAfterItsLatency) {
  FixedMemory memory(memory_of(40, 1), 16);
  expect_answer(memory.accept(100, false, 64), 140, 143);
  expect_answer(memory.accept(101, false, 16), 144, 144);  // the answer before it has ended
  expect_answer(memory.accept(102, true, 64), 145, 145);   // one beat acknowledges a write
  expect_answer(memory.accept(103, false, 17), 146, 147);  // a part of a beat is a beat
  expect_answer(memory.accept(200, false, 64), 240, 243);
}

TEST(FixedMemory, NarrowsAnswersAndNotRequests) {
  FixedMemory memory(memory_of(10, 4), 16);
  expect_answer(memory.accept(0, false, 64), 10, 22);
  expect_answer(memory.accept(1, true, 64), 26, 26);  // an acknowledgement takes a beat's slot
  expect_answer(memory.accept(2, false, 32), 30, 34);
  expect_answer(memory.accept(100, false, 16), 110, 110);
}

TEST(FixedMemory, AcceptsAsManyAsItsQueueHolds) {
  FixedMemory memory(memory_of(10, 1, 2), 16);
  expect_answer(memory.accept(0, false, 16), 10, 10);
  expect_answer(memory.accept(1, false, 16), 11, 11);
  expect_answer(memory.accept(2, false, 16), 21, 21);  // accepted after cycle 10
  expect_answer(memory.accept(3, false, 16), 22, 22);
}

TEST(FixedMemory, IsNeverFasterThanItsLatencyAndItsBeats) {
  std::mt19937 engine(7);
  const auto random = [&engine] { return static_cast<std::uint32_t>(engine()); };
  for (int machine = 0; machine < 200; ++machine) {
    const Machine::Memory params =
        memory_of(1 + random() % 100, 1 + random() % 8, 1 + random() % 70);
    FixedMemory memory(params, 16);
    std::uint64_t cycle = 0, beats = 0, before = 0;
    for (int i = 0; i < 200; ++i) {
      cycle += random() % 6;
      const bool write = random() % 3 == 0;
      const FixedMemory::Answer answer = memory.accept(cycle, write, 16U << random() % 3);
      beats += answer.beats;
      EXPECT_GE(answer.first, cycle + params.latency);
      if (i != 0) {
        EXPECT_GE(answer.first, before + params.read_beat_cycles);
      }
      EXPECT_GE(answer.last, params.latency + (beats - 1) * params.read_beat_cycles);
      before = answer.last;
    }
  }
}

}  // namespace
}  // namespace systole::hw
