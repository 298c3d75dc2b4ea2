#include "hw/ring/pass_image.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "hw/description/core_system.h"
#include "hw/description/machine_file.h"
#include "hw/ring/ring_map.h"
#include "support/input_error.h"
#include "support/random/draws.h"

namespace systole::hw::dfx {
namespace {

constexpr PassLimits kLimits{64 * 64, 1U << 20, 1U << 20};

Machine ring_of(std::uint32_t cores) {
  Machine machine = find_machine("dfx");
  machine.dfx.cores = cores;
  return machine;
}

Instruction vector_sum() {
  Instruction i;
  i.op = Opcode::kAdd;
  i.phase = Phase::kResidual;
  i.second = Second::kVector;
  i.dst = 128;
  i.src = 64;
  i.other = 192;
  i.elements = 100;
  return i;
}

Instruction product() {
  Instruction i;
  i.op = Opcode::kConv1d;
  i.function = TableFunction::kGelu;
  i.has_bias = true;
  i.rows = 3;
  i.pitch = 1024;
  i.dst = 512;
  i.src = 256;
  i.elements = 60;
  i.memory = 4096;
  i.weights = {8192, false, false, 2, 4, 4};
  return i;
}

Instruction int8_product() {
  Instruction i = product();
  i.scales = 6000;
  i.other = 17;
  i.weights.int8 = true;
  return i;
}

Instruction scores() {
  Instruction i;
  i.op = Opcode::kMaskedMm;
  i.dst = 512;
  i.elements = 50;
  i.result = 9;
  i.constant = Half{0x3800};
  i.weights = {1024, false, false, 1, 4, 1};
  return i;
}

Instruction largest() {
  Instruction i;
  i.op = Opcode::kMm;
  i.dst = 512;
  i.elements = 60;
  i.finds_largest = true;
  i.winner = 1024;
  i.first_column = 77;
  i.weights = {1024, true, false, 1, 4, 1};
  return i;
}

Instruction largest_of_rows() {
  Instruction i = largest();
  i.rows = 2;
  i.pitch = 1024;
  return i;
}

Instruction cache(Opcode op) {
  Instruction i;
  i.op = op;
  i.src = 64;
  i.heads = 2;
  i.elements = 64;
  i.token = 33;
  i.memory = 4096;
  i.head_bytes = 65536;
  return i;
}

Instruction from_memory(Opcode op) {
  Instruction i = vector_sum();
  i.op = op;
  i.second = Second::kMemory;
  i.memory = 2048;
  return i;
}

Instruction rotation() {
  Instruction i = from_memory(Opcode::kRotate);
  i.heads = 2;
  i.elements = 64;
  return i;
}

Instruction inverse() {
  Instruction i;
  i.op = Opcode::kRecip;
  i.second = Second::kScalar;
  i.other = 4;
  i.result = 5;
  return i;
}

Instruction sum_of(Opcode op) {
  Instruction i;
  i.op = op;
  i.src = 64;
  i.elements = 64;
  i.result = 8;
  return i;
}

Instruction meeting() {
  Instruction i;
  i.op = Opcode::kSync;
  i.phase = Phase::kSync;
  return i;
}

Pass whole_pass() {
  Pass pass;
  pass.exchanges = {{64, {0, 100, 200}, true}};
  pass.instructions = {vector_sum(),
                       product(),
                       int8_product(),
                       scores(),
                       largest(),
                       cache(Opcode::kWriteKeys),
                       cache(Opcode::kWriteValues),
                       inverse(),
                       sum_of(Opcode::kAccum),
                       from_memory(Opcode::kLoad),
                       rotation(),
                       meeting()};
  return pass;
}

std::string error_of(const Pass& pass, const PassLimits& limits = kLimits) {
  return input_error_of(
      [&] { static_cast<void>(decode_pass(encode_pass(pass, 2), ring_of(2), limits)); });
}

TEST(PassImage, HoldsEveryFieldOfAPass) {
  const Pass pass = whole_pass();
  const std::vector<std::uint8_t> bytes = encode_pass(pass, 2);
  EXPECT_EQ(pass_bytes({bytes.begin(), bytes.begin() + kPassHeaderBytes}), bytes.size());
  const Pass read = decode_pass(bytes, ring_of(2), kLimits);
  EXPECT_EQ(encode_pass(read, 2), bytes);
  ASSERT_EQ(read.exchanges.size(), 1U);
  EXPECT_EQ(read.exchanges[0].first, pass.exchanges[0].first);
  EXPECT_TRUE(read.exchanges[0].sums);
  ASSERT_EQ(read.instructions.size(), pass.instructions.size());
  const Instruction& int8 = read.instructions[2];
  EXPECT_EQ(int8.op, Opcode::kConv1d);
  EXPECT_EQ(int8.weights.address, 8192U);
  EXPECT_EQ(int8.weights.block, 4U);
  EXPECT_TRUE(int8.weights.int8);
  EXPECT_EQ(int8.scales, 6000U);
  EXPECT_EQ(read.instructions[3].constant, Half{0x3800});
  EXPECT_EQ(read.instructions[4].first_column, 77U);
  EXPECT_EQ(read.instructions[5].head_bytes, 65536U);
}

/// An instruction with one field just beyond what exists, and what its error names.
struct Beyond {
  Instruction instruction;
  std::function<void(Instruction&)> change;
  const char* names;
};

// As it is each is run; one step further it is refused.
TEST(PassImage, RefusesWhatDoesNotExist) {
  const Beyond cases[] = {
      {vector_sum(), [](auto& i) { i.dst = 63 * 64; }, "register: destination"},
      {vector_sum(), [](auto& i) { i.src = 63 * 64; }, "register: source"},
      {vector_sum(), [](auto& i) { i.other = 63 * 64; }, "register: second operand"},
      {vector_sum(), [](auto& i) { i.src = 1; }, "register: begin"},
      {vector_sum(), [](auto& i) { i.dst = 32; }, "register: begin"},
      {vector_sum(), [](auto& i) { i.other = 16; }, "register: begin"},
      {vector_sum(), [](auto& i) { i.elements = 0; }, "number of elements"},
      {vector_sum(), [](auto& i) { i.elements = ~0U; }, "register: source"},
      {vector_sum(), [](auto& i) { i.op = static_cast<Opcode>(17); }, "no opcode"},
      {vector_sum(), [](auto& i) { i.phase = static_cast<Phase>(7); }, "phase"},
      {vector_sum(), [](auto& i) { i.second = static_cast<Second>(5); }, "kind of second operand"},
      {product(), [](auto& i) { i.rows = 0; }, "number of rows"},
      {product(), [](auto& i) { i.rows = 5; }, "register: source"},
      {product(), [](auto& i) { i.src = 2048; }, "register: source"},
      {product(), [](auto& i) { i.src += 1; }, "register: source"},
      {product(), [](auto& i) { i.dst = 2048; }, "register: destination"},
      {product(), [](auto& i) { i.weights.k_tiles = 1U << 21; }, "number of K tiles"},
      {product(), [](auto& i) { i.weights.slices = ~0U; }, "number of slices"},
      {product(), [](auto& i) { i.weights.block = 0; }, "number of slices of a block"},
      {product(), [](auto& i) { i.weights.slices = 0; }, "bias without columns"},
      {product(), [](auto& i) { i.weights.address = (1U << 20) - 16382; }, "address: weights"},
      {product(), [](auto& i) { i.weights.address = 1; }, "address: weights"},
      {product(), [](auto& i) { i.weights.address = ~std::uint64_t{1}; }, "address: weights"},
      {product(), [](auto& i) { i.memory = (1U << 20) - 126; }, "address: bias"},
      {product(), [](auto& i) { i.elements = 4000; }, "register: function"},
      {product(), [](auto& i) { i.function = static_cast<TableFunction>(3); }, "no such function"},
      {rotation(), [](auto& i) { i.heads = 0; }, "heads or elements"},
      {rotation(), [](auto& i) { i.elements = 65; }, "whole registers"},
      {rotation(), [](auto& i) { i.src = 63 * 64; }, "register: source"},
      {rotation(), [](auto& i) { i.src = 65; }, "register: source"},
      {rotation(), [](auto& i) { i.dst = 63 * 64; }, "register: destination"},
      {rotation(), [](auto& i) { i.dst = 65; }, "register: begin"},
      {rotation(), [](auto& i) { i.second = Second::kVector; }, "expected cosines and sines"},
      {rotation(), [](auto& i) { i.memory = (1U << 20) - 254; }, "address: cosines and sines"},
      {int8_product(), [](auto& i) { i.scales = (1U << 20) - 254; }, "address: scales"},
      {int8_product(), [](auto& i) { i.other = 4094; }, "scalar: scale"},
      {scores(), [](auto& i) { i.elements = 3600; }, "register: scores"},
      {scores(), [](auto& i) { i.result = 4096; }, "scalar: maximum"},
      {scores(), [](auto& i) { i.rows = 2; }, "number of rows"},
      {largest(), [](auto& i) { i.winner = 64 * 64 - 63; }, "register: winner"},
      {largest(), [](auto& i) { i.elements = 65; }, "column"},
      {largest_of_rows(), [](auto& i) { i.winner = 3 * 1024 - 63; }, "register: winner"},
      {largest_of_rows(), [](auto& i) { i.rows = 0; }, "number of rows"},
      {largest(), [](auto& i) { i.weights.address = (1U << 20) - 8190; }, "address: weights"},
      {cache(Opcode::kWriteKeys), [](auto& i) { i.heads = 0; }, "heads or elements"},
      {cache(Opcode::kWriteKeys), [](auto& i) { i.elements = 65; }, "whole registers"},
      {cache(Opcode::kWriteKeys), [](auto& i) { i.src = 4032; }, "register: source"},
      {cache(Opcode::kWriteKeys), [](auto& i) { i.token = 16 * 480; }, "address: cache"},
      {cache(Opcode::kWriteValues), [](auto& i) { i.token = 64 * 120; }, "address: cache"},
      {cache(Opcode::kWriteValues), [](auto& i) { i.head_bytes = 1U << 20; }, "address: cache"},
      {cache(Opcode::kWriteValues), [](auto& i) { i.memory = ~std::uint64_t{0}; }, "cache"},
      {inverse(), [](auto& i) { i.other = 4096; }, "scalar: other"},
      {inverse(), [](auto& i) { i.result = 4096; }, "scalar: result"},
      {inverse(), [](auto& i) { i.second = Second::kVector; }, "expected a scalar"},
      {sum_of(Opcode::kAccum), [](auto& i) { i.result = 4096; }, "scalar: result"},
      {sum_of(Opcode::kAbsMax), [](auto& i) { i.src = 4096; }, "register: source"},
      {from_memory(Opcode::kMul), [](auto& i) { i.memory = (1U << 20) - 198; }, "second operand"},
      {from_memory(Opcode::kLoad), [](auto& i) { i.second = Second::kConstant; }, "operand"},
      {meeting(), [](auto& i) { i.exchange = 1; }, "exchange"},
  };
  for (const Beyond& beyond : cases) {
    Pass pass = whole_pass();
    pass.instructions = {beyond.instruction};
    EXPECT_EQ(error_of(pass), "no error") << beyond.names;
    beyond.change(pass.instructions[0]);
    const std::string error = error_of(pass);
    expect_contains(error, beyond.names);
    expect_contains(error, "pass: instruction 0: ");
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
}

TEST(PassImage, TakesOperandsUpToTheEndOfMemory) {
  Pass pass = whole_pass();
  pass.instructions = {product(), from_memory(Opcode::kMul)};
  pass.instructions[0].memory = (1U << 20) - 128;
  pass.instructions[1].memory = (1U << 20) - 200;
  EXPECT_EQ(error_of(pass), "no error");
}

TEST(PassImage, RefusesExchangesAndHeadersThatAreNone) {
  Pass pass = whole_pass();
  pass.exchanges[0].first = {0, 200, 100};
  expect_contains(error_of(pass), "exchange 0: found bounds that decrease");
  pass.exchanges[0].first = {0, 1, 64 * 63 + 1};
  expect_contains(error_of(pass), "exchange 0: found registers that do not exist");
  const std::vector<std::uint8_t> good = encode_pass(whole_pass(), 2);
  const auto error = [](const std::vector<std::uint8_t>& bytes, std::uint32_t cores) {
    return input_error_of([&] { static_cast<void>(decode_pass(bytes, ring_of(cores), kLimits)); });
  };
  expect_contains(error(good, 3), "of a ring of 2 cores, expected 3");
  expect_contains(error({good.begin(), good.begin() + 19}, 2), "found its begin alone");
  expect_contains(error({good.begin(), good.end() - 1}, 2), "found less than all of it");
  std::vector<std::uint8_t> other = good;
  other[0] ^= 1;
  expect_contains(error(other, 2), "found other bytes than \"DFXP\"");
  other = good;
  other[4] ^= 1;
  expect_contains(error(other, 2), "header: found");
  other = good;
  other[kPassHeaderBytes + 4] = 2;  // whether the exchange is of sums
  expect_contains(error(other, 2), "found a byte that is neither 0 nor 1");
}

// Any bytes: a pass within the limits, or one line.
TEST(PassImage, SurvivesRandomBytes) {
  std::mt19937 random(7);
  const std::vector<std::uint8_t> good = encode_pass(whole_pass(), 2);
  int refused = 0;
  const int count = systole::test::draws(20'000);
  for (int n = 0; n < count; ++n) {
    std::vector<std::uint8_t> bytes = good;
    for (std::uint32_t k = random() % 6 + 1; k > 0; --k) {
      bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
    }
    try {
      const Pass pass = decode_pass(bytes, ring_of(2), kLimits);
      EXPECT_EQ(encode_pass(pass, 2), bytes);
    } catch (const InputError& error) {
      ++refused;
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
  EXPECT_GT(refused, count / 4);
  EXPECT_LT(refused, count);
}

// Memories, registers and register files of every machine are apart from each other.
TEST(RingMap, HasNoTwoAnswersToAnAddress) {
  std::mt19937 random(3);
  for (int n = 0; n < 200; ++n) {
    Machine machine = ring_of(1 + random() % 64);
    machine.hbm.mib = 1U << random() % 17;
    machine.dram.mib = 1U << random() % 17;
    machine.vector.registers = 64U << random() % 15;
    machine.matrix.depth = 16U << random() % 4;
    const std::vector<AddressRange> map = address_map({machine, {}});
    ASSERT_EQ(map.size(), 4U * machine.dfx.cores);
    for (std::size_t i = 1; i < map.size(); ++i) {
      ASSERT_GE(map[i].base, map[i - 1].base + map[i - 1].bytes) << n << ' ' << i;
    }
    const CoreAddresses last = addresses_of(machine, machine.dfx.cores - 1);
    EXPECT_TRUE(std::any_of(map.begin(), map.end(), [&](const AddressRange& range) {
      return range.base == last.vectors && range.bytes == vector_bytes(machine);
    }));
  }
}

}  // namespace
}  // namespace systole::hw::dfx
