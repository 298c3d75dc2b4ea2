#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "testbench/rtl/core/load_path_rtl.h"
#include "tests/hw/program/random_program.h"
#include "tests/rtl/dma/read_answers.h"

namespace systole::testbench {

/// A row of bytes to the scratchpad.
inline hw::Command load_of(std::uint64_t from, std::uint32_t bytes, std::uint32_t to) {
  hw::Command command = hw::test::empty_command(hw::Opcode::kLoad);
  auto& load = *command.as<hw::cmd::Load>();
  load.from = {from, bytes};
  load.to = {to, bytes};
  load.m = 1;
  load.n = bytes;
  return command;
}
/// A product of 4 x 4 tiles with B after A.
inline hw::Command matmul_of(std::uint32_t a, std::uint32_t c) {
  hw::Command command = hw::test::empty_command(hw::Opcode::kMatmul);
  auto& matmul = *command.as<hw::cmd::Matmul>();
  matmul.a = {a, 4};
  matmul.b = {a + 16, 4};
  matmul.c = {c, 4};
  matmul.m = matmul.n = matmul.k = 4;
  return command;
}

/// A program of loads, matmuls, stores and moves in memories so small that they meet, with a memory
/// for it and times of the other units.
class RandomLoadPath {
 public:
  RandomLoadPath(hw::test::Random& random, std::int64_t most)
      : bytes_(1 << 14),
        answers_{LoadPathRtl::kBeatBytes, static_cast<std::uint64_t>(any(random, 1, 12)), 0,
                 static_cast<std::uint64_t>(any(random, 0, 1) == 0 ? 0 : any(random, 1, 700)),
                 random()},
        slots_(any(random, 0, 1) == 0 ? hw::SlotOrder::kIssue : hw::SlotOrder::kCompletion),
        row_bytes_(any(random, 0, 3) == 0 ? 8 : 0) {
    answers_.most = answers_.least + static_cast<std::uint64_t>(any(random, 0, 40));
    for (std::uint8_t& byte : bytes_) byte = static_cast<std::uint8_t>(random());
    for (std::int64_t i = any(random, 1, 4); i > 0; --i) {
      program_.chains.push_back(hw::test::random_chain(random, 4));
    }
    for (int i = 0; i < 12; ++i) program_.operand_tiles.push_back(dram(random));
    const std::int64_t gap = any(random, 0, 1) == 0 ? 0 : 40;
    std::uint64_t arrival = 0;
    for (std::int64_t i = any(random, 1, most); i > 0; --i) {
      program_.commands.push_back(command(random));
      LoadPathItem item;
      item.arrival = arrival += static_cast<std::uint64_t>(any(random, 0, gap));
      item.occupied = static_cast<std::uint64_t>(any(random, 1, 30));
      item.completed = item.occupied + static_cast<std::uint64_t>(any(random, 0, 30));
      item.released =
          static_cast<std::uint64_t>(any(random, 1, static_cast<std::int64_t>(item.completed)));
      items_.push_back(item);
    }
  }

  [[nodiscard]] LoadPathCase test() const { return {program_, items_, bytes_, slots_, row_bytes_}; }
  [[nodiscard]] const std::vector<LoadPathItem>& items() const { return items_; }
  [[nodiscard]] const ReadAnswers& answers() const { return answers_; }

 private:
  static std::int64_t any(hw::test::Random& random, std::int64_t least, std::int64_t most) {
    return hw::test::pick(random, least, most);
  }
  static std::uint32_t small(hw::test::Random& random, std::int64_t least, std::int64_t most) {
    return static_cast<std::uint32_t>(any(random, least, most));
  }
  static hw::DramTile dram(hw::test::Random& random) {
    return {static_cast<std::uint64_t>(any(random, 0, 4000)), small(random, 1, 400)};
  }
  static hw::LocalTile local(hw::test::Random& random, std::int64_t last) {
    return {small(random, 0, last), small(random, 1, 60)};
  }

  hw::Command command(hw::test::Random& random) {
    constexpr hw::Opcode kKinds[] = {
        hw::Opcode::kLoad,   hw::Opcode::kLoad,  hw::Opcode::kLoadAccumulator,
        hw::Opcode::kMatmul, hw::Opcode::kStore, hw::Opcode::kMove};
    hw::Command command = hw::test::empty_command(kKinds[any(random, 0, 5)]);
    const std::uint32_t m = small(random, 1, 8),
                        n = small(random, 1, any(random, 0, 2) == 0 ? 60 : 9);
    if (auto* const load = command.as<hw::cmd::Load>()) {
      load->from = dram(random);
      load->to = local(random, 3000);
      load->m = m;
      load->n = n;
      if (command.opcode() == hw::Opcode::kLoadAccumulator) {
        load->type = static_cast<hw::DType>(any(random, 0, hw::kDTypes - 1));
      }
    } else if (auto* const matmul = command.as<hw::cmd::Matmul>()) {
      matmul->a = local(random, 3000);
      matmul->b = local(random, 3000);
      matmul->c = local(random, 3000);
      matmul->m = m;
      matmul->n = n;
      matmul->k = small(random, 1, 30);
      matmul->b_transposed = any(random, 0, 1) != 0;
    } else if (auto* const result = command.as<hw::cmd::Result>()) {
      result->from = local(random, 3000);
      result->m = m;
      result->n = n;
      result->chain.chain = static_cast<std::uint16_t>(
          any(random, 0, static_cast<std::int64_t>(program_.chains.size()) - 1));
      result->chain.parameters = small(random, 0, 3000);
      result->chain.statistics = small(random, 0, 60);
      result->chain.tensor = dram(random);
      result->chain.operands = small(random, 0, 8);
      if (auto* const store = command.as<hw::cmd::Store>()) store->to = dram(random);
      if (auto* const move = command.as<hw::cmd::Move>()) move->to = local(random, 3000);
    }
    return command;
  }

  hw::Program program_;
  std::vector<LoadPathItem> items_;
  std::vector<std::uint8_t> bytes_;
  ReadAnswers answers_;
  hw::SlotOrder slots_;
  std::uint32_t row_bytes_;
};

}  // namespace systole::testbench
