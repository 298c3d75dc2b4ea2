#include "testbench/explain/sampled_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "hw/program/program.h"
#include "hw/program/program_image.h"
#include "testbench/common/side_by_side.h"

namespace systole::testbench {
namespace {

/// Commands of the given operators, which are expected to take so many cycles.
mapper::Mapping mapping_of(const std::vector<std::uint32_t>& operators,
                           const std::vector<std::uint64_t>& cycles) {
  mapper::Mapping mapping;
  for (const std::uint32_t op : operators) {
    hw::Command command;
    command.work = hw::cmd::Matmul();
    command.op = op;
    mapping.program.commands.push_back(command);
  }
  mapping.program.commands.emplace_back();
  for (const std::uint64_t expected : cycles) {
    mapping.tilings.emplace_back().cycles = expected;
    mapping.expected_cycles += expected;
  }
  return mapping;
}

void expect_head(const ProgramHead& head, std::size_t operators, std::size_t commands,
                 std::uint64_t expected) {
  EXPECT_EQ(head.operators, operators);
  EXPECT_EQ(head.commands, commands);
  EXPECT_EQ(head.expected, expected);
}

TEST(ProgramHead, EndsWhereNoLaterOperatorHasBegun) {
  // Operators 1 and 2 alternate; operator 3 has no command.
  const mapper::Mapping mapping = mapping_of({0, 0, 1, 2, 1, 2, 4, 4}, {10, 20, 30, 5, 40});
  expect_head(head_of(mapping, 1), 1, 2, 10);
  expect_head(head_of(mapping, 10), 1, 2, 10);
  expect_head(head_of(mapping, 11), 3, 6, 60);
  expect_head(head_of(mapping, 61), 5, 8, 105);
  expect_head(head_of(mapping, 1000), 5, 8, 105);
}

TEST(ProgramHead, OfAnEmptyProgramIsEmpty) { expect_head(head_of(mapping_of({}, {}), 5), 0, 0, 0); }

RunRequest request_of(const std::string& model, std::uint32_t layers, std::uint32_t length) {
  RunRequest request{model, {}, {}, 1, false, false};
  request.size.layers = layers;
  request.size.length = length;
  return request;
}

TEST(ProgramHead, OfRealProgramsIsAProgram) {
  std::mt19937_64 random(5);
  for (const char* preset : {"transformer", "gemmini", "vitcod"}) {
    const hw::Machine machine = hw::find_machine(preset);
    const RunSubject subject(request_of("bert-base", 2, 16), machine);
    const mapper::Mapping& mapping = subject.mapping();
    std::size_t shortest = mapping.program.commands.size();
    for (int i = 0; i < 20; ++i) {
      const double wanted = std::uniform_real_distribution<double>(0, 1)(random) *
                            static_cast<double>(mapping.expected_cycles);
      const ProgramHead head = head_of(mapping, wanted);
      ASSERT_GE(static_cast<double>(head.expected), wanted);
      const mapper::Mapping part = only_head(mapping, head);
      ASSERT_EQ(part.program.commands.size(), head.commands + 1);
      ASSERT_EQ(part.program.commands.back().opcode(), hw::Opcode::kEnd);
      EXPECT_NO_THROW(
          hw::check_program(part.program, machine, std::uint64_t{machine.dram.mib} << 20));
      for (std::size_t c = 0; c + 1 < mapping.program.commands.size(); ++c) {
        ASSERT_EQ(mapping.program.commands[c].op < head.operators, c < head.commands);
      }
      for (const hw::MemoryPiece& piece : part.image) {
        if (piece.address != part.program_address) continue;
        EXPECT_EQ(piece.bytes, hw::encode_program(part.program));
      }
      shortest = std::min(shortest, part.program.commands.size());
    }
    EXPECT_LT(shortest, mapping.program.commands.size() / 2) << preset;
  }
}

nlohmann::ordered_json both(const RunRequest& request, const hw::Machine& machine) {
  const RunSubject subject(request, machine);
  const std::vector<nlohmann::ordered_json> runs = run_side_by_side({
      [&] {
        const SampledRun run = sample_run(subject, machine);
        return nlohmann::ordered_json{{"cycles", run.cycles}, {"whole", run.joules.has_value()}};
      },
      [&] {
        return nlohmann::ordered_json{{"cycles", simulate_run(subject, machine).cycles}};
      },
  });
  return {{"sampled", runs[0]["cycles"]},
          {"whole", runs[0]["whole"]},
          {"simulated", runs[1]["cycles"]},
          {"expected", subject.mapping().expected_cycles}};
}

TEST(SampledRun, OfAShortProgramIsItsSimulation) {
  const nlohmann::ordered_json runs =
      both(request_of("bert-base", 1, 8), hw::find_machine("transformer"));
  EXPECT_TRUE(runs["whole"].get<bool>());
  EXPECT_EQ(runs["sampled"], runs["simulated"]);
}

// A machine with an L2 cache, of which the replay knows the latency alone: the head says what it
// misses.
TEST(SampledRun, OfALongProgramIsNearItsSimulation) {
  hw::Machine machine = hw::find_machine("survey");
  hw::set_key(machine, "array.cols=32");
  const nlohmann::ordered_json runs = both(request_of("bert-base", 4, 64), machine);
  EXPECT_FALSE(runs["whole"].get<bool>());
  const double simulated = runs["simulated"];
  EXPECT_NEAR(runs["sampled"].get<double>(), simulated, 0.025 * simulated) << runs;
  EXPECT_GT(std::abs(runs["expected"].get<double>() - simulated), 0.05 * simulated)
      << "the replay alone is near too: another machine shows more. " << runs;
}

}  // namespace
}  // namespace systole::testbench
