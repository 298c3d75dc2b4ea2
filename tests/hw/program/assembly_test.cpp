#include "hw/program/assembly.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "hw/program/program_file.h"
#include "tests/hw/program/random_program.h"

namespace systole::hw {
namespace {

using test::pick;
using test::Random;

TEST(Assembly, OfRandomProgramsGivesTheSameBinary) {
  Random random(1);
  for (int i = 0; i < 500; ++i) {
    const std::string binary = encode_program(test::random_program(random));
    const std::string text = to_assembly(decode_program(binary, "p"));
    ASSERT_EQ(encode_program(parse_assembly(text, "p.s")), binary) << text;
  }
}

TEST(Assembly, ReadsWhatItsDescriptionShows) {
  const Program program = parse_assembly(
      "# a layer\n"
      "chain 0 s8 { add channel; requantise channel lo=-127 hi=127 rounding=half_even; relu }\r\n"
      "chain 1 s16 { }\n"
      "\n"
      "operator 0 \"ffn \\\"up\\\"\" tensor=\"h\\x41\" place=scratchpad type=s16 address=0x40 "
      "rows=2\n"
      "mask 0 address=0x80 bytes=00fFA97e\n"
      "mask 1\n"
      "mix 0 in_heads=2 out_heads=1 weights=-128,0x7f bias=-5 multipliers=6 shifts=7 "
      "rounding=floor\n"
      "matmul op=0 c=8:64 a=0x10:65 b=1:66 m=17 n=64 k=3 accumulate b_transposed  # comment\n"
      "store op=0 chain=1 dram=0x4000:64 m=1 n=1 parameters=5184 tensor=0xffffffffffffffff:7 "
      "encoder=65535\n"
      "end",
      "p.s");
  ASSERT_EQ(program.chains.size(), 2U);
  ASSERT_EQ(program.chains[0].stages.size(), 3U);
  const Stage& requantise = program.chains[0].stages[1];
  EXPECT_EQ(requantise.op, StageOp::kRequantise);
  EXPECT_EQ(program.chains[0].stages[0].op, StageOp::kAdd);
  EXPECT_EQ(program.chains[0].stages[0].operand, Operand::kChannel);
  EXPECT_EQ(requantise.operand, Operand::kChannel);
  EXPECT_EQ(requantise.rounding, Rounding::kHalfEven);
  EXPECT_EQ(requantise.imm[2], -127);
  EXPECT_EQ(requantise.imm[3], 127);
  EXPECT_TRUE(program.chains[1].stages.empty());
  EXPECT_EQ(program.chains[1].out, DType::kS16);
  ASSERT_EQ(program.masks.size(), 2U);
  EXPECT_EQ(program.masks[0].address, 0x80U);
  EXPECT_EQ(program.masks[0].bytes, (std::vector<std::uint8_t>{0, 255, 0xa9, 0x7e}));
  EXPECT_EQ(program.masks[1].address, 0U);
  EXPECT_TRUE(program.masks[1].bytes.empty());
  ASSERT_EQ(program.mixes.size(), 1U);
  EXPECT_EQ(program.mixes[0].in_heads, 2U);
  EXPECT_EQ(program.mixes[0].weights, (std::vector<std::int8_t>{-128, 127}));
  EXPECT_EQ(program.mixes[0].bias, (std::vector<std::int32_t>{-5}));
  EXPECT_EQ(program.mixes[0].factors, (std::vector<Dyadic>{{6, 7}}));
  EXPECT_EQ(program.mixes[0].rounding, Rounding::kFloor);
  EXPECT_EQ(program.operators[0].name, "ffn \"up\"");
  EXPECT_EQ(program.operators[0].tensor, "hA");
  EXPECT_EQ(program.operators[0].place, Operator::Place::kScratchpad);
  EXPECT_EQ(program.operators[0].address, 0x40U);
  ASSERT_EQ(program.commands.size(), 3U);
  const Command& matmul = program.commands[0];
  EXPECT_EQ(matmul.c_pitch, 64U);
  EXPECT_EQ(matmul.a, 16U);
  EXPECT_EQ(matmul.b_pitch, 66U);
  EXPECT_TRUE(matmul.accumulate);
  EXPECT_FALSE(matmul.a_unsigned);
  EXPECT_TRUE(matmul.b_transposed);
  EXPECT_EQ(program.commands[1].tensor, ~std::uint64_t{0});
  EXPECT_EQ(program.commands[1].tensor_pitch, 7U);
  EXPECT_EQ(program.commands[1].mix, 65535U);
  EXPECT_EQ(program.commands[2].opcode, Opcode::kEnd);
}

TEST(Assembly, ReadsStagesInFrontOfAnAnchorAndTheirOperands) {
  const Program program = parse_assembly(
      "chain 0 s16 { sub tensor type=u8 side=sum_squares; mul saved shift=3; mask fill=-5; "
      "layer_norm_apply; rope }\n"
      "operand 0 address=0x40 pitch=7\n"
      "load a=0:64 dram=0:64 m=1 n=2 type=s16 pre=1 operands=2 kept=1\n"
      "store chain=0 m=1 n=2 operands=3 continues\n"
      "end",
      "p.s");
  const std::vector<Stage>& stages = program.chains.at(0).stages;
  ASSERT_EQ(stages.size(), 5U);
  EXPECT_EQ(stages[0].operand, Operand::kTensor);
  EXPECT_EQ(stages[0].tensor, DType::kU8);
  EXPECT_EQ(stages[0].side, Reduction::kSumSquares);
  EXPECT_EQ(stages[1].operand, Operand::kSaved);
  EXPECT_EQ(stages[1].imm[0], 3);
  EXPECT_EQ(stages[2].operand, Operand::kImmediate);
  EXPECT_EQ(stages[2].imm[0], -5);
  EXPECT_EQ(stages[3].operand, Operand::kChannel);  // the only one that it takes
  EXPECT_EQ(stages[4].operand, Operand::kTensor);
  ASSERT_EQ(program.operand_tiles.size(), 1U);
  EXPECT_EQ(program.operand_tiles[0], (OperandTile{0x40, 7}));
  const Command& load = program.commands.at(0);
  EXPECT_EQ(load.type, DType::kS16);
  EXPECT_EQ(load.mix, 1U);
  EXPECT_EQ(load.b, 2U);
  EXPECT_EQ(load.k, 1U);
  EXPECT_EQ(program.commands.at(1).a, 3U);
  EXPECT_TRUE(program.commands.at(1).accumulate);
}

TEST(Assembly, OfNothingIsEmpty) {
  EXPECT_EQ(to_assembly(Program{}), "");
  EXPECT_TRUE(parse_assembly("", "p.s").commands.empty());
  EXPECT_TRUE(parse_assembly("# only a comment", "p.s").commands.empty());
}

TEST(Assembly, ShowsOnlyWhatACommandUses) {
  Program program;
  Command load;
  load.opcode = Opcode::kLoad;
  load.dram = 4096;
  load.dram_pitch = 64;
  load.m = 2;
  load.n = 3;
  program.commands = {load, Command{}};
  EXPECT_EQ(to_assembly(program), "load op=0 dram=0x1000:64 a=0:0 m=2 n=3\nend\n");
}

TEST(Assembly, OfTwoMasksOfOneNumberIsRefused) {
  try {
    static_cast<void>(parse_assembly("mask 0 bytes=00\nmask 0 bytes=01\nend\n", "p.s"));
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "p.s:2: mask number is 0, expected 1");
  }
}

struct BadText {
  const char* name;
  std::string line;
  const char* expected;
};

class RefusesAssembly : public testing::TestWithParam<BadText> {};

TEST_P(RefusesAssembly, AndNamesTheLine) {
  try {
    static_cast<void>(parse_assembly("# first\n" + GetParam().line + "\nend\n", "p.s"));
    FAIL() << "accepted";
  } catch (const InputError& error) {
    const std::string what = error.what();
    EXPECT_EQ(what.find("p.s:2: "), 0U) << what;
    EXPECT_NE(what.find(GetParam().expected), std::string::npos) << what;
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
    EXPECT_LT(what.size(), 300U);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Assembly, RefusesAssembly,
    testing::Values(
        BadText{"FunctionNumber", "function 1 softmax", "function number is 1, expected 0"},
        BadText{"FunctionOperator", "function 0 tanh", "operator is 'tanh', expected one of"},
        BadText{"FunctionWord", "function 0 gelu fast", "'fast' is no part of function"},
        BadText{"FunctionScale", "function 0 gelu in_scale=inf", "in_scale is 'inf', expected"},
        BadText{"FunctionLimit", "function 0 gelu hi=2147483648", "hi is '2147483648', expected"},
        BadText{"FunctionTwice", "function 0 gelu lo=1 lo=2", "lo is given twice"},
        BadText{"FunctionList", "function 0 layernorm gamma=1, beta=1", "gamma is '', expected"},
        BadText{"FunctionColumns", "function 0 layernorm gamma=1,2 beta=1",
                "function has 2 gamma and 1 beta"},
        BadText{"Command", "halt", "unknown command 'halt'"},
        BadText{"CommandPair", "m=1", "unknown command 'm=1'"},
        BadText{"LongCommand", std::string(100000, 'x'), "unknown command"},
        BadText{"Field", "load z=1", "'z=1' is no part of load"},
        BadText{"FieldOfOther", "load k=1", "'k=1' is no part of load"},
        BadText{"FieldTwice", "load m=1 m=2", "m is given twice"},
        BadText{"FlagTwice", "matmul accumulate accumulate", "accumulate is given twice"},
        BadText{"FlagWithValue", "matmul accumulate=1", "'accumulate=1' is no part of matmul"},
        BadText{"FieldWithoutValue", "load m", "'m' is no part of load"},
        BadText{"EmptyValue", "load m=", "m is ''"},
        BadText{"NoName", "load =4", "'=4' has no name"},
        BadText{"Negative", "load m=-1", "m is '-1', expected a number from 0"},
        BadText{"TooLarge", "load m=4294967296", "expected a number from 0 to 4294967295"},
        BadText{"TooLarge64", "load dram=18446744073709551616", "dram is '18446744073709551616'"},
        BadText{"ChainTooLarge", "store chain=65536", "expected a number from 0 to 65535"},
        BadText{"NotANumber", "load m=12x", "m is '12x'"},
        BadText{"EmptyHex", "load m=0x", "m is '0x'"},
        BadText{"NoPitch", "load m=1:2", "m has no pitch"},
        BadText{"BadPitch", "load a=1:z", "a pitch is 'z'"},
        BadText{"SeparatePitch", "load a_pitch=4", "'a_pitch=4' is no part of load"},
        BadText{"ElementType", "load_accumulator type=f32", "type is 'f32', expected one of s8"},
        BadText{"String", "load \"m\"", "'m' is no part of load"},
        BadText{"QuotedValue", "load m=\"1\"", "'m=1' is no part of load"},
        BadText{"OpenString", "operator 0 \"abc", "string without closing quote"},
        BadText{"Escape", "operator 0 \"\\n\"", "escape in a string"},
        BadText{"HexEscape", "operator 0 \"\\xg0\"", "escape in a string"},
        BadText{"CutEscape", "operator 0 \"\\x4", "escape in a string"},
        BadText{"Control", "load\x01", "byte 1, expected printable"},
        BadText{"NotAscii", "lo\xc3\xa4 m=1", "byte 195"},
        BadText{"Zero", std::string("lo\0ad", 5), "byte 0"},
        BadText{"OperatorNumber", "operator 1 \"x\"", "operator number is 1, expected 0"},
        BadText{"OperatorNoNumber", "operator", "operator number is missing"},
        BadText{"OperatorNoName", "operator 0", "expected: operator NUMBER"},
        BadText{"OperatorField", "operator 0 \"x\" size=3", "'size=3' is no part of operator"},
        BadText{"OperatorTwice", "operator 0 \"x\" rows=3 rows=3", "rows is given twice"},
        BadText{"OperatorTensor", "operator 0 \"x\" tensor=y", "'tensor=y' is no part"},
        BadText{"OperatorPlace", "operator 0 \"x\" place=sram",
                "expected one of dram, scratchpad, ring"},
        BadText{"ChainNumber", "chain 3 s8 { }", "chain number is 3, expected 0"},
        BadText{"ChainType", "chain 0 f8 { }", "type is 'f8'"},
        BadText{"ChainOpen", "chain 0 s8 relu }", "expected: chain NUMBER TYPE"},
        BadText{"ChainClose", "chain 0 s8 { relu", "expected: chain NUMBER TYPE"},
        BadText{"ChainRest", "chain 0 s8 { relu } x", "expected: chain NUMBER TYPE"},
        BadText{"EmptyStage", "chain 0 s8 { relu; }", "stage without a name"},
        BadText{"Stage", "chain 0 s8 { tanh }", "unknown stage 'tanh'"},
        BadText{"StageField", "chain 0 s8 { relu lo=1 }", "'lo=1' is no part of relu"},
        BadText{"StageWord", "chain 0 s8 { relu fast }", "'fast' is no part of relu"},
        BadText{"StageString", "chain 0 s8 { relu \"x\" }", "'x' is no part of relu"},
        BadText{"StageTwice", "chain 0 s8 { clamp lo=1 lo=1 }", "lo is given twice"},
        BadText{"StageRounding", "chain 0 s8 { requantise rounding=up }",
                "expected one of half_up, half_even, floor"},
        BadText{"StageImmediate", "chain 0 s8 { clamp hi=9223372036854775808 }",
                "expected a number of 64 bits"},
        BadText{"StageNegative", "chain 0 s8 { clamp lo=-9223372036854775809 }",
                "expected a number of 64 bits"},
        BadText{"StageSigns", "chain 0 s8 { clamp lo=--1 }", "lo is '--1'"},
        BadText{"MaskNumber", "mask 1 bytes=00", "mask number is 1, expected 0"},
        BadText{"MaskNoNumber", "mask", "mask number is missing"},
        BadText{"MaskTwice", "mask 0 bytes=00 bytes=00", "bytes is given twice"},
        BadText{"MaskHalfByte", "mask 0 bytes=00f", "bytes has half a byte at its end"},
        BadText{"MaskHexadecimal", "mask 0 bytes=00g0", "bytes has 'g0', expected two hexadecimal"},
        BadText{"MaskSecondDigit", "mask 0 bytes=000z", "bytes has '0z', expected two hexadecimal"},
        BadText{"MaskPrefix", "mask 0 bytes=0x00", "bytes has '0x', expected two hexadecimal"},
        BadText{"MaskSign", "mask 0 bytes=-1", "bytes has '-1', expected two hexadecimal"},
        BadText{"MaskString", "mask 0 bytes=\"00\"", "'bytes=00' is no part of mask"},
        BadText{"MaskAddress", "mask 0 address=-1", "address is '-1'"},
        BadText{"MaskPitch", "mask 0 address=1:2", "address is '1:2'"},
        BadText{"MaskField", "mask 0 size=3", "'size=3' is no part of mask"},
        BadText{"MaskWord", "mask 0 full", "'full' is no part of mask"},
        BadText{"MixNumber", "mix 1", "mix number is 1, expected 0"},
        BadText{"MixNoNumber", "mix", "mix number is missing"},
        BadText{"MixField", "mix 0 size=3", "'size=3' is no part of mix"},
        BadText{"MixWord", "mix 0 weights", "'weights' is no part of mix"},
        BadText{"MixString", "mix 0 bias=\"1\"", "'bias=1' is no part of mix"},
        BadText{"MixTwice", "mix 0 bias=1 bias=1", "bias is given twice"},
        BadText{"MixHeads", "mix 0 in_heads=65536", "expected a number from 0 to 65535"},
        BadText{"MixRounding", "mix 0 rounding=up", "expected one of half_up, half_even, floor"},
        BadText{"MixWide", "mix 0 weights=1,128", "weights has 128, expected -128 to 127"},
        BadText{"MixLow", "mix 0 bias=-2147483649", "bias has -2147483649, expected -2147483648"},
        BadText{"MixEmpty", "mix 0 shifts=", "shifts is ''"},
        BadText{"MixGap", "mix 0 shifts=1,,2", "shifts is ''"},
        BadText{"MixEnd", "mix 0 multipliers=1,", "multipliers is ''"},
        BadText{"MixWeights", "mix 0 in_heads=2 out_heads=1 weights=1",
                "mix has 1 weights, expected 2"},
        BadText{"MixBias", "mix 0 bias=1", "mix has 1 biases, expected 0"},
        BadText{"MixMultipliers", "mix 0 in_heads=0 out_heads=1 bias=1",
                "mix has 0 multipliers, expected 1"},
        BadText{"MixShifts", "mix 0 in_heads=0 out_heads=1 bias=1 multipliers=1 shifts=1,2",
                "mix has 2 shifts, expected 1"},
        BadText{"NoOperand", "chain 0 s8 { relu tensor }", "'tensor' is no part of relu"},
        BadText{"OldOperand", "chain 0 s8 { requantise per_channel }",
                "'per_channel' is no part of requantise"},
        BadText{"OperandQuoted", "chain 0 s8 { add \"channel\" }", "'channel' is no part of add"},
        BadText{"Side", "chain 0 s8 { relu side=row_min }", "side is 'row_min', expected row_max"},
        BadText{"SideTwice", "chain 0 s8 { relu side=row_max side=row_max }",
                "side is given twice"},
        BadText{"TileNumber", "operand 1 address=0", "operand number is 1, expected 0"},
        BadText{"TileAddress", "operand 0 address=-1", "address is '-1'"},
        BadText{"TilePitch", "operand 0 pitch=4294967296", "expected a number from 0 to 429"},
        BadText{"TileField", "operand 0 size=3", "'size=3' is no part of operand"},
        BadText{"TileWord", "operand 0 wide", "'wide' is no part of operand"},
        BadText{"TileQuoted", "operand 0 address=\"1\"", "'address=1' is no part of operand"},
        BadText{"TileTwice", "operand 0 pitch=1 pitch=1", "pitch is given twice"},
        BadText{"OperandsOfAMatmul", "matmul operands=1", "'operands=1' is no part of matmul"},
        BadText{"PreOfAStore", "store pre=1", "'pre=1' is no part of store"},
        BadText{"ContinuesOfALoad", "load continues", "'continues' is no part of load"},
        BadText{"TypeOfNoTensor", "chain 0 s8 { relu type=s8 }", "'type=s8' is no part of relu"}),
    [](const testing::TestParamInfo<BadText>& test) { return test.param.name; });

TEST(AssemblyText, IsRefusedOrReadWhateverIsDoneToIt) {
  Random random(42);
  int read = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = to_assembly(test::random_program(random));
    for (std::int64_t changes = pick(random, 1, 3); changes > 0 && !text.empty(); --changes) {
      const auto at =
          static_cast<std::size_t>(pick(random, 0, static_cast<std::int64_t>(text.size()) - 1));
      constexpr std::string_view kMarks = " =:;{}\"\\#-x09\n";
      switch (pick(random, 0, 3)) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.insert(at, 1, kMarks[random() % kMarks.size()]);
          break;
        case 2:
          text.erase(at, static_cast<std::size_t>(pick(random, 1, 9)));
          break;
        default:
          text[at] = kMarks[random() % kMarks.size()];
      }
    }
    try {
      const Program program = parse_assembly(text, "fuzz");
      // What was read must survive the round trip.
      EXPECT_EQ(encode_program(parse_assembly(to_assembly(program), "again")),
                encode_program(program));
      ++read;
    } catch (const InputError& error) {
      ASSERT_EQ(std::string(error.what()).find("fuzz:"), 0U) << error.what();
    }
  }
  EXPECT_GT(read, 50);
}

}  // namespace
}  // namespace systole::hw
