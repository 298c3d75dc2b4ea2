#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/attention/mask_codec.h"
#include "hw/number/softmax_mode.h"
#include "hw/program/disassembly.h"
#include "hw/program/program.h"
#include "hw/program/program_image.h"
#include "tests/hw/attention/sparse_heads.h"
#include "tests/hw/program/complaint.h"

/// Programs with an attention command: what it touches, its checks, its text.
namespace systole::hw {
namespace {

constexpr std::uint64_t kAttentionDram = 1 << 20;
constexpr std::uint32_t kMaskedHeads = 2;
constexpr std::uint64_t kQueryAt = 0x1000, kKeyAt = 0x2000, kValueAt = 0x3000, kOutAt = 0x4000,
                        kMaskAt = 0x5000;

/// 3 queries, 4 keys; 24 features of Q and K, 16 of V; two heads.
Program attention_program() {
  Program program;
  Stage softmax;
  softmax.op = StageOp::kSoftmax;
  softmax.imm = {0, 1, 0, 8, 1, 0, 8};
  const Stage divide = default_stage(StageOp::kDivideRowSum);
  Stage requantise;
  requantise.op = StageOp::kRequantise;
  requantise.imm = {1, 8, -128, 127};
  program.chains = {{{softmax}, DType::kU8}, {{divide, requantise}, DType::kS8}};
  const HeadMask mask{3, 4, {1, 0, 0, 1, 1, 1, 0, 0, 1, 0, 1, 0}};
  program.masks = {{kMaskAt, encode_mask({split(mask, {0}), split(mask, {})})}};
  program.operators = {{}};

  cmd::Attention attention;
  attention.chain = 1;
  attention.queries = 3;
  attention.keys = 4;
  attention.k = 24;
  attention.n = 16;
  attention.heads = kMaskedHeads;
  attention.query = {kQueryAt, 144};  // Q, K and V of a token are in one row
  attention.key = {kKeyAt, 50};
  attention.value = {kValueAt, 40};
  attention.out = {kOutAt, 32};
  program.commands = {{attention}, {}};
  return program;
}

void expect_ranges(const Program& program, const std::vector<Range>& expected) {
  const std::vector<Range> ranges = ranges_of(program.commands[0], program);
  ASSERT_EQ(ranges.size(), expected.size());
  for (const Range& range : expected) {
    EXPECT_EQ(std::count_if(ranges.begin(), ranges.end(),
                            [&](const Range& other) {
                              return other.space == range.space && other.begin == range.begin &&
                                     other.end == range.end && other.write == range.write;
                            }),
              1)
        << range.begin << " " << range.end;
  }
}

TEST(AttentionCommand, TouchesItsOperandsTheMaskAndAllLocalMemory) {
  const Program program = attention_program();
  constexpr std::uint64_t kAll = std::numeric_limits<std::uint32_t>::max();
  expect_ranges(program, {{Space::kDram, kQueryAt, kQueryAt + 2 * 144 + 48, false},
                          {Space::kDram, kKeyAt, kKeyAt + 3 * 50 + 48, false},
                          {Space::kDram, kValueAt, kValueAt + 3 * 40 + 32, false},
                          {Space::kDram, kOutAt, kOutAt + 2 * 32 + 32, true},
                          {Space::kDram, kMaskAt, kMaskAt + program.masks[0].bytes.size(), false},
                          {Space::kScratchpad, 0, kAll, true},
                          {Space::kAccumulator, 0, kAll, true}});
}

TEST(AttentionCommand, WaitsForMatmulsAndForReadersOfItsResult) {
  const Program program = attention_program();
  const auto conflicts = [&](const Range& range) {
    const std::vector<Range> ranges = ranges_of(program.commands[0], program);
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const Range& own) { return conflict(own, range); });
  };
  EXPECT_TRUE(conflicts({Space::kScratchpad, 4096, 4097, false}));
  EXPECT_TRUE(conflicts({Space::kAccumulator, 0, 1, false}));
  EXPECT_TRUE(conflicts({Space::kDram, kOutAt + 95, kOutAt + 96, false}));
  EXPECT_FALSE(conflicts({Space::kDram, kOutAt + 96, kOutAt + 97, true}));
  EXPECT_FALSE(conflicts({Space::kDram, kKeyAt, kKeyAt + 1, false}));
  EXPECT_TRUE(conflicts({Space::kDram, kMaskAt, kMaskAt + 1, true}));
  EXPECT_EQ(unit_of(Opcode::kAttention), Unit::kCompute);
  EXPECT_EQ(name_of(Opcode::kAttention), "attention");
}

TEST(AttentionCommand, ThatIsLegalPasses) {
  EXPECT_NO_THROW(check_program(attention_program(), machine_with_engines(), kAttentionDram));
}

TEST(AttentionCommand, MayFillTheBuffersOfTheSmallestMachine) {
  Machine machine = machine_with_engines();
  machine.attention.query_kib = machine.attention.key_kib = machine.attention.value_kib = 1;
  machine.accumulator.kib = 1;
  Program program = attention_program();
  auto& attention = work_of<cmd::Attention>(program, 0);
  attention.k = 1024;
  // A query computes two cells: with 254 outputs, it takes 1 KiB of the accumulator.
  attention.n = 254;
  attention.query.pitch = attention.out.pitch = 2048;
  EXPECT_NO_THROW(check_program(program, machine, kAttentionDram));
}

struct BadAttention {
  const char* name;
  std::function<void(Program& program, Machine& machine)> change;
  const char* expected;
};

class RefusesAttention : public testing::TestWithParam<BadAttention> {};

TEST_P(RefusesAttention, AndSaysWhy) {
  Program program = attention_program();
  Machine machine = machine_with_engines();
  GetParam().change(program, machine);
  const std::string what = complaint_of(program, machine);
  EXPECT_EQ(what.find("command 0 (attention): " + std::string(GetParam().expected)), 0U) << what;
  EXPECT_EQ(what.find('\n'), std::string::npos) << what;
}

template <typename Field, typename Value>
BadAttention set(const char* name, Field cmd::Attention::*field, Value value,
                 const char* expected) {
  return {name,
          [=](Program& p, Machine&) {
            work_of<cmd::Attention>(p, 0).*field = static_cast<Field>(value);
          },
          expected};
}

BadAttention tile(const char* name, DramTile cmd::Attention::*field, DramTile value,
                  const char* expected) {
  return {name, [=](Program& p, Machine&) { work_of<cmd::Attention>(p, 0).*field = value; },
          expected};
}

BadAttention machine(const char* name, std::function<void(Machine& machine)> change,
                     const char* expected) {
  return {name, [change](Program&, Machine& m) { change(m); }, expected};
}

BadAttention chains(const char* name, std::function<void(Chain& softmax, Chain& out)> change,
                    const char* expected) {
  return {name, [change](Program& p, Machine&) { change(p.chains[0], p.chains[1]); }, expected};
}

BadAttention mask(const char* name, std::function<void(std::vector<std::uint8_t>& bytes)> change,
                  const char* expected) {
  return {name, [change](Program& p, Machine&) { change(p.masks[0].bytes); }, expected};
}

constexpr const char* kSoftmaxChain =
    "its softmax chain does not end with a deferred softmax to at most 8 bits";
constexpr const char* kOutChain =
    "its output chain has operands, works on whole rows, or gives more than a byte";

INSTANTIATE_TEST_SUITE_P(
    AttentionCommand, RefusesAttention,
    testing::Values(
        set("NoQueries", &cmd::Attention::queries, 0, "m is 0, expected"),
        set("NoOutputs", &cmd::Attention::n, 0, "n is 0, expected"),
        set("NoKeys", &cmd::Attention::keys, 0, "keys is 0, expected 1 to 65535"),
        set("NoFeatures", &cmd::Attention::k, 0, "k is 0, expected 1 to 65535"),
        set("NoHeads", &cmd::Attention::heads, 0, "heads is 0, expected 1 to 65535"),
        set("Queries", &cmd::Attention::queries, 65536, "m is 65536, expected 1 to 65535"),
        set("Keys", &cmd::Attention::keys, 65536, "keys is 65536, expected 1 to"),
        set("Features", &cmd::Attention::k, 65536, "k is 65536, expected 1 to 65535"),
        set("Outputs", &cmd::Attention::n, 65536, "n is 65536, expected 1 to 65535"),
        set("Heads", &cmd::Attention::heads, 65536, "heads is 65536, expected 1 to"),
        BadAttention{"Operator", [](Program& p, Machine&) { p.commands[0].op = 1; },
                     "operator 1 of 1"},
        set("Softmax", &cmd::Attention::softmax, 2, "chain 2 of 2"),
        set("Chain", &cmd::Attention::chain, 9, "chain 9 of 2"),
        set("Mask", &cmd::Attention::mask, 1, "mask 1 of 1"),
        tile("Pitch", &cmd::Attention::out, {kOutAt, 31},
             "out_pitch 31, expected at least the 32 of a written row"),
        tile("QueryRange", &cmd::Attention::query, {kAttentionDram, 144},
             "reads DRAM bytes 1048576"),
        tile("KeyRange", &cmd::Attention::key, {1048379, 50},
             "reads DRAM bytes 1048379 to 1048577"),
        tile("KeyAddress", &cmd::Attention::key, {0xffffffff, 50}, "reads DRAM bytes 4294967295"),
        tile("ValueRange", &cmd::Attention::value, {kValueAt, 0xffffffff},
             "reads DRAM bytes 12288"),
        tile("OutRange", &cmd::Attention::out, {~std::uint64_t{0}, 32},
             "writes DRAM bytes 18446744073709551615"),
        tile("FarKey", &cmd::Attention::key, {1ULL << 32, 50},
             "key at 4294967296, expected below 4 GiB"),
        tile("FarValue", &cmd::Attention::value, {1ULL << 32, 40},
             "value at 4294967296, expected below 4 GiB"),
        machine(
            "NoEngines", [](Machine& m) { m.attention.lines = 0; },
            "the machine has no attention engines (attention.lines is 0)"),
        BadAttention{"QueryBuffer",
                     [](Program& p, Machine& m) {
                       work_of<cmd::Attention>(p, 0).k = 1025;
                       m.attention.query_kib = 1;
                     },
                     "attention.query_kib is 1, expected room for one token's 1025 bytes"},
        BadAttention{"KeyBuffer",
                     [](Program& p, Machine& m) {
                       work_of<cmd::Attention>(p, 0).k = 1025;
                       m.attention.key_kib = 1;
                     },
                     "attention.key_kib is 1, expected room for one token's 1025 bytes"},
        BadAttention{"ValueBuffer",
                     [](Program& p, Machine& m) {
                       work_of<cmd::Attention>(p, 0).n = 1025;
                       m.attention.value_kib = 1;
                     },
                     "attention.value_kib is 1, expected room for one token's 1025 bytes"},
        BadAttention{"Accumulator",
                     [](Program& p, Machine& m) {
                       work_of<cmd::Attention>(p, 0).n = 255;
                       work_of<cmd::Attention>(p, 0).out.pitch = 510;
                       m.accumulator.kib = 1;
                     },
                     "mask 0, scores and outputs of one query take 1028 bytes, expected at most"},
        chains(
            "NoSoftmax", [](Chain& softmax, Chain&) { softmax.stages.clear(); }, kSoftmaxChain),
        chains(
            "TwoStages",
            [](Chain& softmax, Chain&) { softmax.stages.push_back(Stage{StageOp::kRelu}); },
            kSoftmaxChain),
        chains(
            "OtherStage", [](Chain& softmax, Chain&) { softmax.stages[0] = {StageOp::kRelu}; },
            kSoftmaxChain),
        chains(
            "Normalised",
            [](Chain& softmax, Chain&) {
              softmax.stages[0].imm[0] = static_cast<int>(SoftmaxMode::kNormalisedFloor);
            },
            kSoftmaxChain),
        chains(
            "WideCodes", [](Chain& softmax, Chain&) { softmax.stages[0].imm[6] = 9; },
            kSoftmaxChain),
        chains(
            "Bias",
            [](Chain&, Chain& out) {
              out.stages[0] = {StageOp::kAdd, Operand::kChannel};
            },
            kOutChain),
        chains(
            "PerChannel", [](Chain&, Chain& out) { out.stages[1].operand = Operand::kChannel; },
            kOutChain),
        chains(
            "Tensor",
            [](Chain&, Chain& out) {
              out.stages[1].op = StageOp::kAdd;
              out.stages[1].operand = Operand::kTensor;
              out.stages[1].imm = {1, 8, -128, 127};
            },
            kOutChain),
        chains(
            "RowWise", [](Chain& softmax, Chain& out) { out.stages = softmax.stages; }, kOutChain),
        chains(
            "WideOutput", [](Chain&, Chain& out) { out.out = DType::kS16; }, kOutChain),
        mask(
            "CutMask", [](std::vector<std::uint8_t>& b) { b.resize(b.size() - 8); },
            "mask 0, byte"),
        mask(
            "LongMask", [](std::vector<std::uint8_t>& b) { b.push_back(0); },
            "mask 0, byte 64: bytes after the last head"),
        mask(
            "NoMask", [](std::vector<std::uint8_t>& b) { b.clear(); },
            "mask 0, byte 0: the mask ends too early"),
        mask(
            "KeyTwice", [](std::vector<std::uint8_t>& b) { b[8] = 1; },
            "mask 0, byte 32: sparse head: a key is named twice"),
        set("OtherHeads", &cmd::Attention::heads, 1, "mask 0, byte"),
        set("OtherKeys", &cmd::Attention::keys, 5, "mask 0, byte"),
        BadAttention{"MaskAddress",
                     [](Program& p, Machine&) { p.masks[0].address = ~std::uint64_t{0}; },
                     "reads DRAM bytes 18446744073709551615"}),
    [](const testing::TestParamInfo<BadAttention>& test) { return test.param.name; });

TEST(AttentionCommand, WithMoreHeadsAndQueriesThanMemoryHoldsIsRefusedQuickly) {
  Program program = attention_program();
  auto& attention = work_of<cmd::Attention>(program, 0);
  attention.queries = attention.heads = kMaxSparseTokens;
  attention.keys = attention.n = attention.k = 1;
  attention.out.pitch = kMaxSparseTokens;
  const HeadMask empty{kMaxSparseTokens, 1, std::vector<std::uint8_t>(kMaxSparseTokens, 0)};
  const std::vector<std::uint8_t> head = encode_mask({split(empty, {})});
  std::vector<std::uint8_t>& bytes = program.masks[0].bytes;
  bytes.clear();
  for (std::size_t h = 0; h < kMaxSparseTokens; ++h) {
    bytes.insert(bytes.end(), head.begin(), head.end());
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THROW(check_program(program, machine_with_engines(), kAttentionDram), InputError);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

TEST(AttentionCommand, OfOneMaskManyTimesIsCheckedAsQuicklyAsOnce) {
  Program program = attention_program();
  const HeadMask full{300, 300, std::vector<std::uint8_t>(90000, 1)};
  program.masks[0].bytes = encode_mask({split(full, {}), split(full, {})});
  auto attention = work_of<cmd::Attention>(program, 0);
  attention.queries = attention.keys = 300;
  attention.out.address = kAttentionDram / 2;
  Machine machine = machine_with_engines();
  machine.attention.index_kib = 200;
  const auto seconds = [&](std::size_t commands) {
    program.commands.assign(commands, {attention});
    program.commands.emplace_back();
    const auto begin = std::chrono::steady_clock::now();
    check_program(program, machine, kAttentionDram);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const double once = seconds(1);
  EXPECT_LT(seconds(100), 20 * once + 0.05);
}

TEST(AttentionDisassembly, ShowsEveryFieldUnderItsOwnName) {
  const Program program = attention_program();
  const std::string text = disassemble(program);
  const std::string line = text.substr(text.find("attention"));
  EXPECT_EQ(line,
            "attention op=0 chain=1 m=3 n=16 k=24 softmax=0 mask=0 heads=2 keys=4 query=0x1000:144 "
            "key=0x2000:50 value=0x3000:40 out=0x4000:32\nend\n");
  EXPECT_EQ(encode_program(decode_program(encode_program(program), "p", 1 << 20)),
            encode_program(program));
}

}  // namespace
}  // namespace systole::hw
