/// Corners of rtl/core/systole_core.sv that random programs seldom come to.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "hw/array/sum_ports.h"
#include "testbench/rtl/core/core_rtl.h"
#include "tests/rtl/core/core_case.h"
#include "tests/rtl/core/load_path_case.h"

namespace systole::testbench {
namespace {

/// The smallest core against its contracts, with a memory of loads that answers as late as is said.
class CoreCorners : public testing::Test {
 protected:
  using Latency = std::function<std::uint64_t(const hw::ReadRequest&)>;

  CoreCorners() : core_(make_core({true, "", 6}, kTinyCore)) {
    hw::test::Random random(31);
    RandomCore cases(random);
    state_ = cases.state();
    // The local memories of gates begin with anything.
    (void)run(cases.first());
  }

  /// Runs a program, in which the gates have to agree with the contracts. Returns its times.
  CoreRun run(hw::Program program, const Latency& of_loads = {}) {
    if (program.commands.back().opcode() != hw::Opcode::kEnd) {
      program.commands.push_back(hw::test::empty_command(hw::Opcode::kEnd));
    }
    const std::vector<std::uint8_t> image = hw::encode_program(program);
    std::copy(image.begin(), image.end(), state_.memory.begin() + kAt);
    const auto ports = [&of_loads] {
      const ReadAnswers reads{kTinyCore.lanes, 5, 5, 0, 1};
      const ReadAnswers loads{kTinyCore.lanes, 5, 5, 0, 1, of_loads};
      return CoreMemory{reads.memory(), loads.memory(), reads.memory(),
                        WriteAnswers{5, 5, 0, 1}.memory()};
    };
    const CoreRun should = check_core(*core_, {program, kAt}, ports, state_, counts_);
    EXPECT_EQ(counts_.mismatches, 0U);
    return should;
  }
  /// A row of sums to memory, as they are.
  static hw::Command store_of(std::uint32_t from, std::uint32_t sums) {
    hw::Command command = hw::test::empty_command(hw::Opcode::kStore);
    auto& store = *command.as<hw::cmd::Store>();
    store.m = 1;
    store.n = sums;
    store.from = {from, sums};
    store.to = {4'096, 4 * sums};
    return command;
  }
  static hw::Command load_sums_of(std::uint64_t from, std::uint32_t sums, std::uint32_t to,
                                  hw::DType type) {
    hw::Command command = hw::test::empty_command(hw::Opcode::kLoadAccumulator);
    auto& load = *command.as<hw::cmd::LoadAccumulator>();
    load.from = {from, static_cast<std::uint32_t>(sums * hw::bytes_of(type))};
    load.to = {to, sums};
    load.m = 1;
    load.n = sums;
    load.type = type;
    return command;
  }
  static hw::Program program_of(std::vector<hw::Command> commands) {
    hw::Program program;
    program.chains.resize(1);
    program.chains[0].out = hw::DType::kS32;
    program.commands = std::move(commands);
    return program;
  }

  static constexpr std::uint64_t kAt = 12'288;
  CoreState state_;
  RtlCounts counts_;
  const std::unique_ptr<CoreRtl> core_;
};

// An array that writes the memory of the first of them in every cycle: the beats of all requests
// that can be in flight wait.
TEST_F(CoreCorners, KeepTheBeatsOfAllLoadsWhileTheArrayWrites) {
  constexpr std::uint32_t kLanes = kTinyCore.lanes;
  const std::uint32_t last_row = kTinyCore.sum_bank_rows - kTinyCore.outstanding - 1;
  const std::uint64_t taken = hw::SumMemories::of_row(last_row);
  // A tile of C whose rows are in two rows of the accumulator each, one of which is in that memory.
  hw::LocalTile c;
  for (std::uint32_t rows = 1; rows < 24 && c.pitch == 0; ++rows) {
    for (std::uint32_t first = 0; first < 8 && c.pitch == 0; ++first) {
      bool is_taken = true;
      for (std::uint32_t row = first; row < first + 4 * rows; row += rows) {
        is_taken = is_taken && (hw::SumMemories::of_row(row) == taken ||
                                hw::SumMemories::of_row(row + std::uint64_t{1}) == taken);
      }
      if (is_taken) c = {first * kLanes + 1, rows * kLanes};
    }
  }
  ASSERT_NE(c.pitch, 0U);
  hw::Command product = hw::test::empty_command(hw::Opcode::kMatmul);
  auto& matmul = *product.as<hw::cmd::Matmul>();
  matmul.m = matmul.n = kLanes;
  matmul.k = 30 * kLanes;
  matmul.a = {0, matmul.k};
  matmul.b = {2'048, kLanes};
  matmul.c = c;
  const std::uint32_t sums = kTinyCore.outstanding * kTinyCore.request_bytes / 4;
  const CoreRun times =
      run(program_of({product, load_sums_of(256, sums, last_row * kLanes, hw::DType::kS32),
                      store_of(last_row * kLanes, sums)}),
          [](const hw::ReadRequest&) { return 30; });
  ASSERT_EQ(times.reads.size(), kTinyCore.outstanding);
  const std::uint64_t read = times.reads.back().done;
  EXPECT_GT(times.commands[0].completed, read + 20) << "the array writes on";
  EXPECT_GT(times.commands[1].completed, times.commands[0].completed);
}

// Two requests have a byte each of an element, and the answer to the second comes first: the sign
// is the second's.
TEST_F(CoreCorners, PutElementsTogetherWhoseHighByteComesFirst) {
  for (const std::uint8_t high : {std::uint8_t{0x01}, std::uint8_t{0xfe}}) {
    constexpr std::uint64_t kFrom = 1, kSecond = kTinyCore.request_bytes;
    // Bytes of elements beside it, whose signs are others.
    for (std::uint64_t at = 0; at < 2 * kSecond; ++at) {
      state_.memory[at] = static_cast<std::uint8_t>(at % 2 == 0 ? ~high : at);
    }
    state_.memory[kSecond] = high;
    const CoreRun times =
        run(program_of({load_sums_of(kFrom, 12, 0, hw::DType::kS16), store_of(0, 12)}),
            [](const hw::ReadRequest& request) { return request.address == kFrom ? 40 : 5; });
    ASSERT_EQ(times.reads.size(), 2U);
    EXPECT_LT(times.reads[1].done, times.reads[0].done);
  }
}

// What a step takes is fixed when it begins: a matmul that starts while a row of A waits for its
// bank reads its first column beside the next one.
TEST_F(CoreCorners, TakeNothingIntoAStepThatWaits) {
  hw::Command first = hw::test::empty_command(hw::Opcode::kMatmul);
  auto& matmul = *first.as<hw::cmd::Matmul>();
  matmul.n = matmul.k = 4;
  matmul.a = {0, 4};
  matmul.b = {1'024, 4};
  matmul.c = {0, 4};
  hw::Command second = first;
  auto& transposed = *second.as<hw::cmd::Matmul>();
  transposed.m = 1;
  transposed.a.address = 2'048;
  transposed.b.address = 3'072;
  transposed.b_transposed = true;
  transposed.c.address = 64;
  std::size_t started_beside = 0;
  for (matmul.m = 4; matmul.m <= 8; ++matmul.m) {
    for (std::uint64_t latency = 5; latency <= 10; ++latency) {
      // Bytes for the bank of A, a beat a cycle from some cycle on, and commands between.
      const hw::Command late = load_of(1'024, 4, 1'024);
      const CoreRun times =
          run(program_of({load_of(256, 400, 128), first, late, late, second, store_of(64, 4)}),
              [latency](const hw::ReadRequest&) { return latency; });
      const CoreCommandTimes &held = times.commands[1], &beside = times.commands[4];
      const bool waits = held.released > held.started + 4 + matmul.m + 20;
      started_beside +=
          waits && beside.started > held.started + 6 && beside.started < held.released - 5 ? 1 : 0;
    }
  }
  EXPECT_GT(started_beside, 20U);
}

}  // namespace
}  // namespace systole::testbench
