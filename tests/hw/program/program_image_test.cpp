#include "hw/program/program_image.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/program/disassembly.h"
#include "tests/hw/program/random_program.h"
#include "tests/support/input_error.h"

namespace systole::hw {
namespace {

using test::pick;
using test::Random;
using Image = std::vector<std::uint8_t>;

/// The mask of tiny_program() ends where it does.
constexpr std::uint64_t kMemory = 0x1234567893;

/// One command, one operand tile, one mask of three bytes, one chain of one stage, one mix of two
/// heads to one.
Program tiny_program() {
  Program program;
  Stage stage;
  stage.op = StageOp::kSub;
  stage.operand = Operand::kTensor;
  stage.rounding = Rounding::kFloor;
  stage.tensor = DType::kU8;
  stage.side = Reduction::kSumSquares;
  stage.imm[0] = -2;
  program.chains = {{{stage}, DType::kS16}};
  program.operand_tiles = {{0x9876543210, 0x12345678}};
  program.masks = {{0x1234567890, {7, 0, 255}}};
  program.mixes = {{2, 1, {-3, 4}, {-5}, {{6, 7}}, Rounding::kFloor}};
  program.commands = {Command{}};
  return program;
}

// The layout that hardware relies on, by hand.
constexpr std::size_t kCommand = 64;
constexpr std::size_t kTile = 64 + 128;
constexpr std::size_t kMask = kTile + 64;
constexpr std::size_t kChain = kMask + 64;
constexpr std::size_t kStage = kChain + 8;
constexpr std::size_t kMix = kChain + 128;
constexpr std::size_t kEnd = kMix + 64;

TEST(ProgramImage, LiesInMemoryAsDescribed) {
  const Image image = encode_program(tiny_program());
  ASSERT_EQ(image.size(), kEnd);
  EXPECT_EQ(std::string(image.begin(), image.begin() + 8), "SYSTPROG");
  const auto word = [&](std::size_t at) {
    return image[at] | image[at + 1] << 8 | image[at + 2] << 16 | image[at + 3] << 24;
  };
  // Version, commands, operands, masks, chains and their bytes, mixes and theirs.
  for (const auto& [at, value] : std::vector<std::pair<std::size_t, int>>{
           {8, 8}, {12, 1}, {16, 1}, {20, 1}, {24, 1}, {28, 80}, {32, 1}, {36, 24}}) {
    EXPECT_EQ(word(at), value) << at;
  }
  EXPECT_EQ(image[kTile], 0x10);
  EXPECT_EQ(image[kTile + 8], 0x78);
  EXPECT_EQ(image[kMask], 0x90);
  EXPECT_EQ(image[kMask + 8], 3);
  EXPECT_EQ(image[kChain], static_cast<std::uint8_t>(DType::kS16));
  EXPECT_EQ(image[kChain + 2], 1) << "stages";
  EXPECT_EQ(image[kStage], static_cast<std::uint8_t>(StageOp::kSub));
  EXPECT_EQ(image[kMix], 2);
  EXPECT_EQ(image[kMix + 6], 0xfd) << "a weight of -3";
  const ProgramHeader header = decode_header(image.data());
  EXPECT_EQ(header.command(0), kCommand);
  EXPECT_EQ(header.operand(0), kTile);
  EXPECT_EQ(header.mask(0), kMask);
  EXPECT_EQ(header.chain(0), kChain);
  EXPECT_EQ(header.mix(0), kMix);
  EXPECT_EQ(header.bytes(), kEnd);
}

TEST(ProgramImage, KeepsEveryFieldOfEveryRecord) {
  const Program program = tiny_program();
  const Program copy = decode_program(encode_program(program), "p", kMemory);
  ASSERT_EQ(copy.chains.size(), 1U);
  EXPECT_EQ(copy.chains[0], program.chains[0]);
  EXPECT_EQ(copy.operand_tiles, program.operand_tiles);
  ASSERT_EQ(copy.masks.size(), 1U);
  EXPECT_EQ(copy.masks[0].address, 0x1234567890U);
  EXPECT_EQ(copy.masks[0].bytes, Image(3)) << "its content is not in the image";
  ASSERT_EQ(copy.mixes.size(), 1U);
  EXPECT_EQ(copy.mixes[0].in_heads, 2U);
  EXPECT_EQ(copy.mixes[0].out_heads, 1U);
  EXPECT_EQ(copy.mixes[0].weights, program.mixes[0].weights);
  EXPECT_EQ(copy.mixes[0].bias, program.mixes[0].bias);
  EXPECT_EQ(copy.mixes[0].factors, program.mixes[0].factors);
  EXPECT_EQ(copy.mixes[0].rounding, Rounding::kFloor);
  ASSERT_EQ(copy.commands.size(), 1U);
  EXPECT_EQ(copy.commands[0].opcode(), Opcode::kEnd);
}

TEST(ProgramImage, RecordsOfOneTableHaveTheStrideOfTheLongest) {
  Program program = tiny_program();
  program.chains.push_back({{}, DType::kS8});
  program.chains[0].stages.resize(3, program.chains[0].stages[0]);
  const Image image = encode_program(program);
  const ProgramHeader header = decode_header(image.data());
  EXPECT_EQ(header.chain_bytes, 8U + 3 * 72);
  EXPECT_EQ(header.chain(1) - header.chain(0), header.chain_bytes);
  EXPECT_EQ(decode_chain(&image[header.chain(1)], header.chain_bytes), program.chains[1]);
}

struct BadImage {
  const char* name;
  std::function<void(Image& image)> change;
  const char* expected;
};

class RefusesImage : public testing::TestWithParam<BadImage> {};

TEST_P(RefusesImage, AndNamesThePlace) {
  Image image = encode_program(tiny_program());
  ASSERT_EQ(image.size(), kEnd);
  GetParam().change(image);
  const std::string what =
      input_error_of([&] { static_cast<void>(decode_program(image, "p", kMemory)); });
  EXPECT_EQ(what.find("p: "), 0U) << what;
  EXPECT_NE(what.find(GetParam().expected), std::string::npos) << what;
  EXPECT_EQ(what.find('\n'), std::string::npos) << what;
}

std::function<void(Image& image)> set_byte(std::size_t at, unsigned value) {
  return [=](Image& image) { image[at] = static_cast<std::uint8_t>(value); };
}
std::function<void(Image& image)> set_word(std::size_t at, std::uint32_t value) {
  return [=](Image& image) {
    for (std::size_t i = 0; i < 4; ++i) image[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
  };
}
std::function<void(Image& image)> cut(std::size_t size) {
  return [=](Image& image) { image.resize(size); };
}

INSTANTIATE_TEST_SUITE_P(
    ProgramImage, RefusesImage,
    testing::Values(
        BadImage{"Empty", cut(0), "0 bytes, expected a header of 64"},
        BadImage{"HalfHeader", cut(63), "63 bytes, expected a header of 64"},
        BadImage{"Magic", set_byte(0, 'X'), "header: no Systole program"},
        BadImage{"Version", set_word(8, 5), "header: program version 5, expected 8"},
        BadImage{"NoCommands", set_word(12, 0), "header: no commands"},
        BadImage{"HeaderReserved", set_byte(63, 1), "header: bytes after the last field"},
        BadImage{"Commands", set_word(12, 0xffffffff), "expected the 343597384"},
        BadImage{"Chains", set_word(24, 65537), "65537 chains, expected at most 65536"},
        BadImage{"Mixes", set_word(32, 0xffffffff), "4294967295 mixes, expected at most"},
        BadImage{"ChainBytes", set_word(28, 7), "chains of 7 bytes, expected 8 to 16777216"},
        BadImage{"ChainsHuge", set_word(28, 0xffffffff), "chains of 4294967295 bytes, expected"},
        BadImage{"MixBytes", set_word(36, 0), "mixes of 0 bytes, expected 8"},
        BadImage{"Cut", cut(kEnd - 1), "511 bytes, expected the 512 of its header"},
        BadImage{"Long", cut(kEnd + 1), "513 bytes, expected the 512 of its header"},
        BadImage{"Gap", set_byte(kTile - 1, 1), "bytes between its sections are not zero"},
        BadImage{"OperandReserved", set_byte(kTile + 12, 1), "operand 0: bytes after"},
        BadImage{"MaskReserved", set_byte(kMask + 12, 1), "mask 0: bytes after"},
        BadImage{"MaskLong", set_word(kMask + 8, 4), "mask 0: mask of 4 bytes at 78187493520"},
        BadImage{"MaskAfterMemory", set_word(kMask + 4, 0x13), "mask 0: mask of 3 bytes at"},
        BadImage{"MixHuge", set_word(kMix, 0xffffffff), "mix 0: 4294836225 bytes expected"},
        BadImage{"MixRounding", set_byte(kMix + 4, 3), "mix 0: rounding 3"},
        BadImage{"MixReserved", set_byte(kMix + 5, 1), "mix 0: reserved byte 1"},
        BadImage{"MixLong", set_byte(kMix + 23, 1), "mix 0: bytes after the last field"},
        BadImage{"OutType", set_byte(kChain, 5), "chain 0: output type 5"},
        BadImage{"ChainReserved", set_byte(kChain + 1, 1), "chain 0: reserved byte 1"},
        BadImage{"StageCount", set_byte(kChain + 3, 255), "chain 0: 8 bytes expected, 0 left"},
        BadImage{"NoStage", set_byte(kChain + 2, 0), "chain 0: bytes after the last field"},
        BadImage{"StageOpcode", set_byte(kStage, 20), "stage opcode 20, expected less than 20"},
        BadImage{"Operand", set_byte(kStage + 1, 5), "operand 5, expected less than 5"},
        BadImage{"OtherOperand", set_byte(kStage, 5), "operand of a kind that the stage does not"},
        BadImage{"Rounding", set_byte(kStage + 2, 3), "rounding 3, expected less than 3"},
        BadImage{"TensorType", set_byte(kStage + 3, 5), "tensor type 5, expected less than 5"},
        BadImage{"NoTensor", set_byte(kStage + 1, 4), "tensor type 1, expected less than 1"},
        BadImage{"SideOutput", set_byte(kStage + 4, 5), "side output 5, expected less than 5"},
        BadImage{"StageReserved", set_byte(kStage + 7, 128), "reserved byte 128"},
        BadImage{"Immediate", set_byte(kStage + 8 * 6, 1), "immediate that the stage does not use"},
        BadImage{"Opcode", set_byte(kCommand, 9), "command 0: opcode 9"},
        BadImage{"CommandType", set_byte(kCommand + 1, 5), "command 0: byte 1 is 5"},
        BadImage{"Flags", set_byte(kCommand + 2, 8), "byte 2 is 8"},
        BadImage{"Issue", set_byte(kCommand + 3, 3), "byte 3 is 3"},
        BadImage{"UnusedMix", set_byte(kCommand + 7, 1),
                 "command 0: byte 7 is 1, but its opcode does not use it"},
        BadImage{"UnusedFlag", set_byte(kCommand + 2, 1), "byte 2 is 1"}),
    [](const testing::TestParamInfo<BadImage>& test) { return test.param.name; });

TEST(ProgramImage, IsRefusedOrReadExactlyWhateverIsDoneToIt) {
  Random random(99);
  int read = 0;
  for (int i = 0; i < 1500; ++i) {
    Program program = test::random_program(random);
    for (LayerMask& mask : program.masks) mask.bytes.assign(mask.bytes.size(), 0);
    Image image = encode_program(program);
    for (std::int64_t changes = pick(random, 0, 3); changes > 0; --changes) {
      std::uint8_t& byte = image[static_cast<std::size_t>(
          pick(random, 0, static_cast<std::int64_t>(image.size()) - 1))];
      byte = static_cast<std::uint8_t>(pick(random, 0, 1) == 0 ? random()
                                                               : byte ^ 1U << pick(random, 0, 7));
    }
    try {
      // One program, one encoding: what is read must encode to the same bytes.
      EXPECT_EQ(encode_program(decode_program(image, "fuzz", ~std::uint64_t{0})), image);
      ++read;
    } catch (const InputError&) {
      continue;
    }
  }
  EXPECT_GT(read, 400);
}

TEST(Disassembly, ShowsWhatItsDescriptionSays) {
  Program program = tiny_program();
  Operator op;
  op.name = "ffn \"up\"\x01";
  op.tensor = "h";
  op.rows = 2;
  program.operators = {op};
  HostFunction function;
  function.op = HostOp::kLayerNorm;
  function.gamma = {1, 0.5F};
  function.beta = {0, -0.25F};
  program.host_functions = {function};
  cmd::Load load;
  load.from = {4096, 64};
  load.m = 2;
  load.n = 3;
  program.commands = {{load}, {}};
  const std::string text = disassemble(program);
  for (const char* const line :
       {"chain 0 s16 { sub tensor rounding=floor type=u8 side=sum_squares multiplier=-2 }\n",
        "operand 0 address=0x9876543210 pitch=305419896\n",
        "mask 0 address=0x1234567890 bytes=0700ff\n",
        "mix 0 in_heads=2 out_heads=1 rounding=floor weights=-3,4 bias=-5 multipliers=6 shifts=7\n",
        "function 0 layernorm ", " gamma=1,0.5 beta=0,-0.25\n",
        "operator 0 \"ffn \\\"up\\\"\\x01\" tensor=\"h\" place=dram type=s8 address=0x0 pitch=0 "
        "rows=2 cols=0 macs=0\n",
        "load op=0 dram=0x1000:64 a=0:0 m=2 n=3\nend\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "in\n" << text;
  }
  EXPECT_EQ(disassemble(Program{}), "");
}

}  // namespace
}  // namespace systole::hw
