#include "hw/memory/fixed_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

namespace systole::hw {
namespace {

constexpr std::uint32_t kWidth = 16;

/// One request and the cycles of its answer, worked out by hand.
struct Row {
  std::uint64_t cycle;
  bool write;
  std::uint64_t bytes;
  std::uint64_t first, last;
};

FixedMemory memory_of(std::uint32_t latency, std::uint32_t interval, std::uint32_t queue) {
  Machine::Memory params;
  params.model = MemoryModel::kFixed;
  params.latency = latency;
  params.read_beat_cycles = interval;
  params.queue = queue;
  return FixedMemory(params, kWidth);
}

void expect_answers(FixedMemory& memory, const std::vector<Row>& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const FixedMemory::Answer answer =
        memory.accept(rows[i].cycle, rows[i].write, 0, rows[i].bytes);
    EXPECT_EQ(answer.first, rows[i].first) << "request " << i;
    EXPECT_EQ(answer.last, rows[i].last) << "request " << i;
  }
}

TEST(FixedMemory, AnswersInOrderAfterTheLatencyBeatByBeat) {
  FixedMemory memory = memory_of(10, 1, 64);
  expect_answers(memory, {
                             {0, false, 64, 10, 13},
                             {1, false, 64, 14, 17},  // waits for the answer before it
                             {2, true, 64, 18, 18},   // a write takes one beat
                             {3, false, 16, 19, 19},
                             {4, false, 17, 20, 21},  // a part of a beat is a beat
                             {30, false, 1, 40, 40},  // the latency again
                             {31, true, 16, 41, 41},
                         });
  memory.finish(50);
  const BlockReport report = memory.report("memory");
  EXPECT_EQ(counter_of({report}, "memory", "reads"), 5U);
  EXPECT_EQ(counter_of({report}, "memory", "writes"), 2U);
  EXPECT_EQ(counter_of({report}, "memory", "read_bytes"), 162U);
  EXPECT_EQ(counter_of({report}, "memory", "written_bytes"), 80U);
  ASSERT_EQ(report.parts.size(), 1U);
  const TimeAccount& time = *report.parts[0].time;
  EXPECT_EQ(time.busy, 14U);
  EXPECT_EQ(time.stalled[FixedMemory::kLatency].time, 20U);  // before the first beat, and 30 to 40
  EXPECT_EQ(time.stalled[FixedMemory::kInterval].time, 0U);
  EXPECT_EQ(time.idle, 16U);  // 22 to 30, and 42 to 50
  EXPECT_EQ(time.total, 50U);
}

TEST(FixedMemory, NarrowsAnswersAndTheSlotOfAWrite) {
  FixedMemory memory = memory_of(10, 4, 64);
  expect_answers(memory, {
                             {0, false, 64, 10, 22},
                             {1, true, 64, 26, 26},
                             {2, false, 32, 30, 34},
                             {25, true, 16, 38, 38},
                             {31, true, 16, 42, 42},
                             {36, true, 16, 46, 46},
                             {37, true, 16, 50, 50},
                             {90, false, 16, 100, 100},
                         });
  memory.finish(101);
  EXPECT_EQ(memory.answers().time().busy, 12U);
  EXPECT_EQ(memory.answers().time().stalled[FixedMemory::kLatency].time, 20U);
  EXPECT_EQ(memory.answers().time().stalled[FixedMemory::kInterval].time,
            30U);  // ten gaps of three cycles
  EXPECT_EQ(memory.answers().time().total, 101U);
}

// A beat is a word at a multiple of the width, of which a read may want two bytes.
TEST(FixedMemory, CountsTheWordsThatAReadTouches) {
  FixedMemory memory = memory_of(10, 1, 64);
  EXPECT_EQ(memory.beats(0, kWidth), 1U);
  EXPECT_EQ(memory.beats(kWidth - 1, 2), 2U);
  EXPECT_EQ(memory.beats(3 * kWidth + 1, kWidth), 2U);
  const FixedMemory::Answer answer = memory.accept(0, false, kWidth - 1, 2);
  EXPECT_EQ(answer.last, answer.first + 1);
}

TEST(FixedMemory, TakesNoMoreRequestsThanItsQueueHolds) {
  FixedMemory memory = memory_of(10, 1, 2);
  expect_answers(memory, {
                             {0, false, 32, 10, 11},
                             {1, false, 16, 12, 12},
                             {2, false, 16, 22, 22},   // accepted in 12, after the first answer
                             {3, true, 16, 23, 23},    // accepted in 13
                             {4, false, 16, 33, 33},   // accepted in 23
                             {50, false, 16, 60, 60},  // none waits
                         });
}

TEST(FixedMemory, IsNeverFasterThanItsLatencyAndItsBeats) {
  std::mt19937 engine(7);
  const auto random = [&engine] { return static_cast<std::uint32_t>(engine()); };
  for (int machine = 0; machine < 200; ++machine) {
    const std::uint32_t latency = 1 + random() % 100, interval = 1 + random() % 8;
    FixedMemory memory = memory_of(latency, interval, 1 + random() % 70);
    std::uint64_t cycle = 0, beats = 0, before = 0;
    for (int i = 0; i < 200; ++i) {
      cycle += random() % 6;
      const bool write = random() % 3 == 0;
      const std::uint64_t address = random() % 64, bytes = 1 + random() % 64;
      const FixedMemory::Answer answer = memory.accept(cycle, write, address, bytes);
      beats += write ? 1 : memory.beats(address, bytes);
      EXPECT_GE(answer.first, cycle + latency);
      if (i != 0) {
        EXPECT_GE(answer.first, before + interval);
      }
      EXPECT_GE(answer.last, latency + (beats - 1) * interval);
      before = answer.last;
    }
  }
}

TEST(FixedMemory, RefusesWhatCannotWork) {
  EXPECT_THROW(memory_of(10, 0, 2), std::invalid_argument);
  EXPECT_THROW(memory_of(10, 1, 0), std::invalid_argument);
  EXPECT_THROW(FixedMemory(Machine::Memory{}, 0), std::invalid_argument);
  FixedMemory memory = memory_of(10, 1, 2);
  EXPECT_THROW(memory.accept(0, false, 0, 0), std::invalid_argument);
}

TEST(FixedMemory, CountsTimeOnlyWhileItIsAsked) {
  FixedMemory memory = memory_of(10, 1, 64);
  memory.set_counting(false, 0);
  memory.accept(0, false, 0, 64);
  memory.set_counting(true, 20);
  memory.accept(25, false, 0, 16);
  memory.finish(40);
  EXPECT_EQ(memory.answers().time().busy, 1U);
  EXPECT_EQ(memory.answers().time().total, 20U);
}

TEST(MemoryRate, IsThatOfTheModelThatTheMachineNames) {
  Machine machine;
  EXPECT_DOUBLE_EQ(memory_rate(machine), 19200.0);
  EXPECT_EQ(memory_grain(machine), 64U);
  machine.memory.model = MemoryModel::kFixed;
  machine.memory.read_beat_cycles = 4;
  EXPECT_DOUBLE_EQ(memory_rate(machine), 4000.0);
  EXPECT_EQ(memory_grain(machine), 16U);
}

}  // namespace
}  // namespace systole::hw
