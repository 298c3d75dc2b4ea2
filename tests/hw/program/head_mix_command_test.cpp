#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "hw/attention/mask_codec.h"
#include "hw/program/command_codec.h"
#include "hw/program/disassembly.h"
#include "hw/program/program.h"
#include "hw/program/program_fetch.h"
#include "tests/hw/attention/sparse_heads.h"
#include "tests/hw/program/complaint.h"

/// Programs whose commands mix heads: a store that encodes, an attention that decodes.
namespace systole::hw {
namespace {

constexpr std::uint64_t kMixDram = 1 << 16;

HeadMix mix(std::uint32_t in_heads, std::uint32_t out_heads) {
  return {in_heads, out_heads, std::vector<std::int8_t>(in_heads * out_heads, 1),
          std::vector<std::int32_t>(out_heads, 0), std::vector<Dyadic>(out_heads, Dyadic{1, 1})};
}

/// Mix 0 encodes 3 heads to 2; mixes 1 and 2 decode 2 and 1 heads to 3. The store has 4 rows of 3
/// heads of 8 features, the attention 4 tokens and keys in 3 heads of 8 features.
Program mixing_program() {
  Program program;
  Stage softmax;
  softmax.op = StageOp::kSoftmax;
  softmax.imm = {0, 1, 0, 8, 1, 0, 8};
  program.chains = {{{}, DType::kS8}, {{softmax}, DType::kU8}};
  program.mixes = {mix(3, 2), mix(2, 3), mix(1, 3)};
  const HeadMask mask{4, 4, std::vector<std::uint8_t>(16, 1)};
  program.masks = {{0x8000, encode_mask({split(mask, {0}), split(mask, {}), split(mask, {1})})}};
  program.operators = {{}};
  cmd::Store store;
  store.m = 4;
  store.n = store.from.pitch = 24;
  store.to = {0x1000, 16};
  store.encoder = 0;
  cmd::Attention attention;
  attention.softmax = 1;
  attention.queries = attention.keys = 4;
  attention.k = attention.n = 8;
  attention.heads = 3;
  attention.query = {0x1000, 16};
  attention.key = {0x2000, 8};
  attention.value = {0x3000, 24};
  attention.out = {0x4000, 24};
  attention.decoders = 1;
  program.commands = {{store}, {attention}, {}};
  return program;
}

bool touches(const Program& program, std::size_t command, const Range& expected) {
  for (const Range& range : ranges_of(program.commands[command], program)) {
    if (range.space == expected.space && range.begin == expected.begin &&
        range.end == expected.end && range.write == expected.write) {
      return true;
    }
  }
  return false;
}

TEST(HeadMixCommand, TouchesLatentRows) {
  const Program program = mixing_program();
  EXPECT_NO_THROW(check_program(program, machine_with_engines(), kMixDram));
  EXPECT_TRUE(touches(program, 0, {Space::kDram, 0x1000, 0x1000 + 4 * 16, true}));
  EXPECT_TRUE(touches(program, 0, {Space::kAccumulator, 0, 4 * 24, false}));
  EXPECT_TRUE(touches(program, 1, {Space::kDram, 0x1000, 0x1000 + 4 * 16, false}));
  EXPECT_TRUE(touches(program, 1, {Space::kDram, 0x2000, 0x2000 + 4 * 8, false}));
  EXPECT_TRUE(touches(program, 1, {Space::kDram, 0x3000, 0x3000 + 4 * 24, false}));
  EXPECT_TRUE(touches(program, 1, {Space::kDram, 0x4000, 0x4000 + 4 * 24, true}));
}

TEST(HeadMixCommand, NamesEveryMixThatACoreMustHold) {
  const Program program = mixing_program();
  const References store = references_of(program.commands[0]);
  ASSERT_EQ(store.mix_count, 1U);
  EXPECT_EQ(store.mixes[0], 0U);
  const References attention = references_of(program.commands[1]);
  ASSERT_EQ(attention.mix_count, 2U);
  EXPECT_EQ(attention.mixes[0], 1U);
  EXPECT_EQ(attention.mixes[1], 2U);
  EXPECT_EQ(attention.mask, 0U);
  EXPECT_EQ(attention.chain_count, 2U);
}

TEST(HeadMixCommand, KeepsItsMixInMemoryAndAsText) {
  Program program = mixing_program();
  work_of<cmd::Store>(program, 0).encoder = 0xfedb;
  const std::vector<std::uint8_t> bytes = encode_commands(program.commands);
  EXPECT_EQ(bytes[6], 0xdc);
  EXPECT_EQ(bytes[7], 0xfe);
  EXPECT_EQ(decode_command(bytes.data()), program.commands[0]);
  EXPECT_EQ(decode_command(bytes.data() + kCommandBytes), program.commands[1]);
  const std::string text = disassemble(program);
  EXPECT_NE(text.find(" encoder=65243\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" decoders=1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("mix 1 in_heads=2 out_heads=3 weights=1,1,1,1,1,1 bias=0,0,0 "
                      "multipliers=1,1,1 shifts=1,1,1\n"),
            std::string::npos)
      << text;
}

TEST(HeadMixCommand, NeedsAMachineWithEncoderLines) {
  Machine machine = machine_with_engines();
  machine.attention.encoder_lines = 0;
  Program program = mixing_program();
  EXPECT_EQ(complaint_of(program, machine),
            "command 0 (store): the machine has no encoder (attention.lines is 32, "
            "attention.encoder_lines is 0)");
  program.commands.erase(program.commands.begin());
  EXPECT_NO_THROW(check_program(program, machine, kMixDram));
}

struct BadMixing {
  const char* name;
  std::function<void(Program& program)> change;
  const char* expected;
};

class RefusesMixing : public testing::TestWithParam<BadMixing> {};

TEST_P(RefusesMixing, AndSaysWhy) {
  Program program = mixing_program();
  GetParam().change(program);
  EXPECT_EQ(complaint_of(program, machine_with_engines()), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    HeadMixCommand, RefusesMixing,
    testing::Values(
        BadMixing{"Mix", [](Program& p) { p.mixes[2].bias.pop_back(); },
                  "mix 2: number of biases 2, expected 3"},
        BadMixing{"Encoder", [](Program& p) { work_of<cmd::Store>(p, 0).encoder = 3; },
                  "command 0 (store): mix 3 of 3"},
        BadMixing{"Decoder", [](Program& p) { work_of<cmd::Attention>(p, 1).decoders = 65534; },
                  "command 1 (attention): mix 65534 of 3"},
        BadMixing{"KeyDecoder", [](Program& p) { work_of<cmd::Attention>(p, 1).decoders = 2; },
                  "command 1 (attention): mix 3 of 3"},
        BadMixing{"QueryHeads", [](Program& p) { work_of<cmd::Attention>(p, 1).decoders = 0; },
                  "command 1 (attention): heads is 3, expected the 2 that mix 0 decodes to"},
        BadMixing{"KeyHeads", [](Program& p) { p.mixes[2] = mix(1, 4); },
                  "command 1 (attention): heads is 3, expected the 4 that mix 2 decodes to"},
        BadMixing{"Columns", [](Program& p) { work_of<cmd::Store>(p, 0).n = 23; },
                  "command 0 (store): n is 23, expected a multiple of the encoder's 3 heads"},
        BadMixing{"Type", [](Program& p) { p.chains[0].out = DType::kU8; },
                  "command 0 (store): its encoder follows a chain that gives another type "
                  "than s8, works on whole rows or transposes"},
        BadMixing{"RowWise",
                  [](Program& p) {
                    p.chains[0].stages = p.chains[1].stages;
                    p.commands[0].op = 0;
                  },
                  "command 0 (store): its encoder follows a chain that gives another type "
                  "than s8, works on whole rows or transposes"},
        BadMixing{"Transposed",
                  [](Program& p) {
                    p.chains[0].stages = {default_stage(StageOp::kTranspose)};
                    p.commands[0].op = 0;
                  },
                  "command 0 (store): its encoder follows a chain that gives another type "
                  "than s8, works on whole rows or transposes"},
        BadMixing{"Pitch", [](Program& p) { work_of<cmd::Store>(p, 0).to.pitch = 15; },
                  "command 0 (store): dram_pitch 15, expected at least the 16 of a written row"},
        BadMixing{"QueryBuffer", [](Program& p) { work_of<cmd::Attention>(p, 1).k = 20000; },
                  "command 1 (attention): attention.query_kib is 53, expected room for one token's "
                  "60000 bytes"}),
    [](const testing::TestParamInfo<BadMixing>& test) { return test.param.name; });

}  // namespace
}  // namespace systole::hw
