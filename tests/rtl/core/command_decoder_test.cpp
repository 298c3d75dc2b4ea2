/// rtl/core/systole_command_decoder.sv against the decoding and the ranges of hw/program/.
#include <gtest/gtest.h>

#include <map>

#include "testbench/rtl/core/command_decoder_rtl.h"
#include "tests/rtl/core/core_program.h"

namespace systole::testbench {
namespace {

const RtlOptions kDecoderChecks{true, "", 4};

TEST(CommandDecoder, DecodesRandomProgramsToTheSameRanges) {
  const auto decoder = make_command_decoder(kDecoderChecks);
  hw::test::Random random(17);
  RtlCounts counts;
  std::map<hw::Opcode, int> kinds;
  std::map<std::size_t, int> tensors;
  int statistics = 0;
  for (int i = 0; i < 150; ++i) {
    const hw::Program program = random_core_program(random, 40);
    check_command_decoder(*decoder, program, counts);
    ASSERT_EQ(counts.mismatches, 0U) << "program " << i;
    for (const hw::Command& command : program.commands) {
      ++kinds[command.opcode()];
      const hw::ChainUse* const use = hw::chain_use(command);
      if (use == nullptr) continue;
      const hw::Chain& chain = hw::chain_of(*use, program);
      ++tensors[hw::tensor_operands(chain)];
      statistics += hw::writes_row_statistics(chain) ? 1 : 0;
    }
  }
  EXPECT_GT(counts.operations, 6'000U);
  for (const auto opcode : {hw::Opcode::kLoad, hw::Opcode::kLoadAccumulator, hw::Opcode::kMatmul,
                            hw::Opcode::kStore, hw::Opcode::kMove}) {
    EXPECT_GT(kinds[opcode], 500) << static_cast<int>(opcode);
  }
  for (const std::size_t count : {0U, 1U, 2U, 3U}) EXPECT_GT(tensors[count], 20) << count;
  EXPECT_GT(statistics, 50);
}

// Many rows far apart: their number times the pitch needs more than 32 bits.
TEST(CommandDecoder, RangesMayBeLongerThanFourGigabytes) {
  const auto decoder = make_command_decoder(kDecoderChecks);
  hw::Program program;
  program.commands = {hw::test::empty_command(hw::Opcode::kLoad)};
  auto& load = *program.commands[0].as<hw::cmd::Load>();
  load.from = {64, 1 << 20};
  load.to = {0, 16};
  load.m = 5000;
  load.n = 16;
  RtlCounts counts;
  check_command_decoder(*decoder, program, counts);
  EXPECT_EQ(counts.mismatches, 0U);
  EXPECT_GT(hw::ranges_of(program.commands[0], program)[0].end, std::uint64_t{1} << 32);
}

TEST(CommandDecoder, RefusesWhatACoreOfThreeUnitsDoesNot) {
  const auto decoder = make_command_decoder(kDecoderChecks);
  for (const auto opcode : {hw::Opcode::kAttention, hw::Opcode::kHost, hw::Opcode::kLoop}) {
    const std::vector<std::uint8_t> bytes = hw::encode_commands({hw::test::empty_command(opcode)});
    EXPECT_FALSE(decoder->decode(bytes.data(), {}, {}).legal);
  }
  std::vector<std::uint8_t> unknown(hw::kCommandBytes);
  unknown[0] = hw::kOpcodes;
  EXPECT_FALSE(decoder->decode(unknown.data(), {}, {}).legal);
  unknown[0] = 0;
  EXPECT_TRUE(decoder->decode(unknown.data(), {}, {}).is_end);
  EXPECT_FALSE(decoder->failed());
}

}  // namespace
}  // namespace systole::testbench
