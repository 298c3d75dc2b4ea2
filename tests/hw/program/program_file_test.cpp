#include "hw/program/program_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/error.h"
#include "tests/hw/program/random_program.h"

namespace systole::hw {
namespace {

using test::pick;
using test::Random;

constexpr std::size_t kHeader = 8 + 4 + 4 + 7 * 12;

/// One chain of one stage (76 bytes), one operand tile (12 bytes), one mask of three (15 bytes),
/// one mix of two heads to one (17 bytes), one function (28 bytes), one operator "ab" to "c" (43
/// bytes), one command.
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
  program.host_functions.emplace_back();
  Operator op;
  op.name = "ab";
  op.tensor = "c";
  program.operators = {op};
  program.commands = {Command{}};
  return program;
}

constexpr std::size_t kChain = kHeader;
constexpr std::size_t kStage = kChain + 4;
constexpr std::size_t kTile = kStage + 72;
constexpr std::size_t kMaskOffset = kTile + 12;
constexpr std::size_t kMix = kMaskOffset + 8 + 4 + 3;
constexpr std::size_t kFunction = kMix + 6 + 2 + 9;
constexpr std::size_t kOperator = kFunction + 4 + 12 + 8 + 4;
constexpr std::size_t kCommand = kOperator + 4 + 2 + 4 + 1 + 4 + 12 + 16;

/// A directory of its own for one test.
class ProgramFile : public testing::Test {
 protected:
  ProgramFile() {
    std::string name = (std::filesystem::temp_directory_path() / "systole_program_XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~ProgramFile() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const char* name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
};

TEST_F(ProgramFile, GivesBackWhatWasWritten) {
  Random random(2);
  for (int i = 0; i < 20; ++i) {
    const Program program = test::random_program(random);
    write_program(program, path("p"));
    EXPECT_EQ(encode_program(read_program(path("p"))), encode_program(program));
  }
}

TEST_F(ProgramFile, KeepsEveryField) {
  Random random(3);
  const Program program = tiny_program();
  const Program copy = decode_program(encode_program(program), "p");
  ASSERT_EQ(copy.chains.size(), 1U);
  EXPECT_EQ(copy.chains[0].out, DType::kS16);
  EXPECT_EQ(copy.chains[0].stages, program.chains[0].stages);
  EXPECT_EQ(copy.operand_tiles, program.operand_tiles);
  ASSERT_EQ(copy.masks.size(), 1U);
  EXPECT_EQ(copy.masks[0].address, 0x1234567890U);
  EXPECT_EQ(copy.masks[0].bytes, (std::vector<std::uint8_t>{7, 0, 255}));
  ASSERT_EQ(copy.mixes.size(), 1U);
  EXPECT_EQ(copy.mixes[0].in_heads, 2U);
  EXPECT_EQ(copy.mixes[0].out_heads, 1U);
  EXPECT_EQ(copy.mixes[0].weights, (std::vector<std::int8_t>{-3, 4}));
  EXPECT_EQ(copy.mixes[0].bias, (std::vector<std::int32_t>{-5}));
  EXPECT_EQ(copy.mixes[0].factors, (std::vector<Dyadic>{{6, 7}}));
  EXPECT_EQ(copy.mixes[0].rounding, Rounding::kFloor);
  ASSERT_EQ(copy.operators.size(), 1U);
  EXPECT_EQ(copy.operators[0].name, "ab");
  EXPECT_EQ(copy.operators[0].tensor, "c");
  ASSERT_EQ(copy.commands.size(), 1U);
  EXPECT_EQ(copy.commands[0].opcode, Opcode::kEnd);
}

TEST_F(ProgramFile, RefusesWhatIsNoFile) {
  EXPECT_THROW(static_cast<void>(read_program(path("missing"))), InputError);
  EXPECT_THROW(static_cast<void>(read_program(folder_.string())), InputError);
  EXPECT_THROW(static_cast<void>(read_program("/dev/zero")), InputError);
  std::ofstream(path("empty")).close();
  EXPECT_THROW(static_cast<void>(read_program(path("empty"))), InputError);
}

TEST_F(ProgramFile, NamesTheFileInItsErrors) {
  std::ofstream(path("text")) << "not a program";
  try {
    static_cast<void>(read_program(path("text")));
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()).find(path("text") + ": "), 0U) << error.what();
  }
}

void put(std::string& bytes, std::size_t at, std::uint64_t value, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
}

struct BadFile {
  const char* name;
  std::function<void(std::string& bytes)> change;
  const char* expected;
};

class RefusesFile : public testing::TestWithParam<BadFile> {};

TEST_P(RefusesFile, AndNamesThePlace) {
  std::string bytes = encode_program(tiny_program());
  ASSERT_EQ(bytes.size(), kCommand + kCommandBytes);
  GetParam().change(bytes);
  try {
    static_cast<void>(decode_program(bytes, "p"));
    FAIL() << "accepted";
  } catch (const InputError& error) {
    const std::string what = error.what();
    EXPECT_EQ(what.find("p: "), 0U) << what;
    EXPECT_NE(what.find(GetParam().expected), std::string::npos) << what;
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
  }
}

std::function<void(std::string& bytes)> set_byte(std::size_t at, unsigned value) {
  return [=](std::string& bytes) { put(bytes, at, value, 1); };
}

std::function<void(std::string& bytes)> word(std::size_t at, std::uint64_t value,
                                             std::size_t count) {
  return [=](std::string& bytes) { put(bytes, at, value, count); };
}

std::function<void(std::string& bytes)> cut(std::size_t size) {
  return [=](std::string& bytes) { bytes.resize(size); };
}

INSTANTIATE_TEST_SUITE_P(
    ProgramFile, RefusesFile,
    testing::Values(
        BadFile{"Empty", cut(0), "no Systole program"},
        BadFile{"HalfMagic", cut(5), "no Systole program"},
        BadFile{"Magic", set_byte(0, 'X'), "no Systole program"},
        BadFile{"NoVersion", cut(10), "header, byte 8: 4 bytes expected, 2 left"},
        BadFile{"Version", word(8, 1, 4), "program version 1, expected 5"},
        BadFile{"Sections", word(12, 3, 4), "3 sections, expected 7"},
        BadFile{"HalfHeader", cut(kHeader - 1), "header, byte 92: 8 bytes expected, 7 left"},
        BadFile{"ChainsHuge", word(20, ~std::uint64_t{0}, 8), "chains: 18446744073709551615 bytes"},
        BadFile{"ChainsShort", word(20, 75, 8), "chains, byte 168: 8 bytes expected, 7 left"},
        BadFile{"ChainsLong", word(20, 77, 8), "chains, byte 176: 1 bytes too many"},
        BadFile{"ChainCount", word(16, 0xffffffff, 4), "chains, byte 176: 1 bytes expected"},
        BadFile{"NoChain", word(16, 0, 4), "chains, byte 100: 76 bytes too many"},
        BadFile{"TileCount", word(28, 2, 4), "operand tiles, byte 188: 8 bytes expected, 0 left"},
        BadFile{"NoTile", word(28, 0, 4), "operand tiles, byte 176: 12 bytes too many"},
        BadFile{"TilesHuge", word(32, 1 << 30, 8), "operand tiles: 1073741824 bytes announced"},
        BadFile{"TilesShort", word(32, 11, 8), "operand tiles, byte 184: 4 bytes expected, 3 left"},
        BadFile{"MaskCount", word(40, 0xffffffff, 4), "masks, byte 203: 8 bytes expected, 0 left"},
        BadFile{"NoMask", word(40, 0, 4), "masks, byte 188: 15 bytes too many"},
        BadFile{"MasksHuge", word(44, 1 << 30, 8), "masks: 1073741824 bytes announced"},
        BadFile{"MasksShort", word(44, 11, 8), "masks, byte 196: 4 bytes expected, 3 left"},
        BadFile{"MaskHuge", word(kMaskOffset + 8, 0xffffffff, 4),
                "masks, byte 200: 4294967295 bytes"},
        BadFile{"MaskLong", word(kMaskOffset + 8, 4, 4),
                "masks, byte 200: 4 bytes expected, 3 left"},
        BadFile{"MaskShort", word(kMaskOffset + 8, 2, 4), "masks, byte 202: 1 bytes too many"},
        BadFile{"MixCount", word(52, 0xffffffff, 4), "mixes, byte 220: 2 bytes expected, 0 left"},
        BadFile{"NoMix", word(52, 0, 4), "mixes, byte 203: 17 bytes too many"},
        BadFile{"MixesHuge", word(56, 1 << 30, 8), "mixes: 1073741824 bytes announced"},
        BadFile{"MixHuge", word(kMix, 0xffffffff, 4), "mixes, byte 209: 4294836225 bytes expected"},
        BadFile{"MixInputs", word(kMix, 3, 2), "mixes, byte 220: 1 bytes expected, 0 left"},
        BadFile{"MixOutputs", word(kMix + 2, 0, 2), "mixes, byte 209: 11 bytes too many"},
        BadFile{"MixRounding", set_byte(kMix + 4, 3), "mixes, byte 207: rounding 3"},
        BadFile{"MixReserved", set_byte(kMix + 5, 1), "mixes, byte 208: reserved byte 1"},
        BadFile{"FunctionCount", word(64, 2, 4), "functions, byte 248: 1 bytes expected"},
        BadFile{"FunctionsHuge", word(68, 1 << 30, 8), "functions: 1073741824 bytes announced"},
        BadFile{"HostOperator", set_byte(kFunction, 4), "functions, byte 220: host operator 4"},
        BadFile{"InputType", set_byte(kFunction + 1, 5), "input type 5"},
        BadFile{"OperandType", set_byte(kFunction + 2, 5), "operand type 5"},
        BadFile{"FunctionType", set_byte(kFunction + 3, 5), "result type 5"},
        BadFile{"NoNumber", word(kFunction + 4, 0x7fc00000, 4), "number before is not finite"},
        BadFile{"Columns", word(kFunction + 24, 0xffffffff, 4), "functions, byte 248: 4 bytes"},
        BadFile{"OperatorCount", word(76, 0xffffffff, 4), "operators, byte 291: 4 bytes"},
        BadFile{"OperatorsHuge", word(80, 1 << 30, 8), "operators: 1073741824 bytes announced"},
        BadFile{"CommandCount", word(88, 0xffffffff, 4), "commands, byte 371: 80 bytes expected"},
        BadFile{"CommandsShort", word(92, 79, 8), "commands, byte 291: 80 bytes expected, 79"},
        BadFile{"OutType", set_byte(kChain, 5), "chains, byte 100: output type 5"},
        BadFile{"ChainReserved", set_byte(kChain + 1, 1), "chains, byte 101: reserved"},
        BadFile{"StageCount", word(kChain + 2, 0xffff, 2), "chains, byte 176: 8 bytes expected"},
        BadFile{"StageOpcode", set_byte(kStage, 17),
                "chains, byte 176: micro-code before has stage opcode 17, expected less than 17"},
        BadFile{"Operand", set_byte(kStage + 1, 5), "operand 5, expected less than 5"},
        BadFile{"OtherOperand", set_byte(kStage, 5), "operand of a kind that the stage does not"},
        BadFile{"Rounding", set_byte(kStage + 2, 3), "rounding 3, expected less than 3"},
        BadFile{"TensorType", set_byte(kStage + 3, 5), "tensor type 5, expected less than 5"},
        BadFile{"NoTensor", set_byte(kStage + 1, 4), "tensor type 1, expected less than 1"},
        BadFile{"SideOutput", set_byte(kStage + 4, 4), "side output 4, expected less than 4"},
        BadFile{"StageReserved5", set_byte(kStage + 5, 1), "reserved byte 1"},
        BadFile{"StageReserved6", set_byte(kStage + 6, 2), "reserved byte 2"},
        BadFile{"StageReserved7", set_byte(kStage + 7, 128), "reserved byte 128"},
        BadFile{"Immediate", set_byte(kStage + 8 * 6, 1), "immediate that the stage does not use"},
        BadFile{"NameHuge", word(kOperator, 0xffffffff, 4), "4294967295 bytes expected"},
        BadFile{"NameLong", word(kOperator, 40, 4), "operators, byte"},
        BadFile{"Place", set_byte(kOperator + 11, 3), "place 3"},
        BadFile{"OperatorType", set_byte(kOperator + 12, 9), "type 9"},
        BadFile{"OperatorReserved", set_byte(kOperator + 13, 1), "reserved bytes 1"},
        BadFile{"Opcode", set_byte(kCommand, 8), "commands, byte 371: command before has opcode 8"},
        BadFile{"CommandType", set_byte(kCommand + 1, 5), "type 5"},
        BadFile{"Flags", set_byte(kCommand + 2, 8), "reserved bits"},
        BadFile{"CommandReserved", set_byte(kCommand + 3, 3), "reserved bits"},
        BadFile{"UnusedMix", set_byte(kCommand + 7, 1),
                "gives encoder, which its opcode does not use"},
        BadFile{"UnusedField", set_byte(kCommand + 40, 1), "which its opcode does not use"},
        BadFile{"UnusedFlag", set_byte(kCommand + 2, 1), "accumulate"},
        BadFile{"CutCommand", cut(kCommand + 40), "commands: 80 bytes announced, 40 left"},
        BadFile{"Trailing", [](std::string& bytes) { bytes += "x"; },
                "1 bytes follow the last section"}),
    [](const testing::TestParamInfo<BadFile>& test) { return test.param.name; });

TEST(ProgramBytes, AreRefusedOrReadExactlyWhateverIsDoneToThem) {
  Random random(99);
  int read = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string bytes = encode_program(test::random_program(random));
    for (std::int64_t changes = pick(random, 1, 4); changes > 0 && !bytes.empty(); --changes) {
      const auto at = static_cast<std::size_t>(
          pick(random, 0, static_cast<std::int64_t>(std::min<std::size_t>(bytes.size(), 400)) - 1));
      switch (pick(random, 0, 3)) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << pick(random, 0, 7)));
          break;
        case 2:
          bytes.erase(at, static_cast<std::size_t>(pick(random, 1, 8)));
          break;
        default:
          bytes.insert(at, 1, static_cast<char>(random()));
      }
    }
    try {
      // One program, one encoding: what is read must encode to the same bytes.
      EXPECT_EQ(encode_program(decode_program(bytes, "fuzz")), bytes);
      ++read;
    } catch (const InputError&) {
      continue;
    }
  }
  EXPECT_GT(read, 100);
}

}  // namespace
}  // namespace systole::hw
