#pragma once

#include <verilated.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/program/program_image.h"
#include "testbench/rtl/drive/ports.h"

namespace systole::testbench {

/// Sends the records of a program's chains over the pins of a decoder, a word a cycle, each into
/// the slot of its number. `cycle()` ends a cycle.
template <typename Dut, typename Cycle>
void send_chains(Dut& dut, const hw::Program& program, const Cycle& cycle) {
  constexpr std::size_t kWord = 8;
  const hw::ProgramHeader header = hw::header_of(program);
  const std::vector<std::uint8_t> image = hw::encode_program(program);
  for (std::size_t chain = 0; chain < program.chains.size(); ++chain) {
    const std::uint8_t* const record = image.data() + header.chain(chain);
    dut->chain_slot_i = static_cast<CData>(chain);
    dut->chain_valid_i = 1;
    for (std::size_t at = 0; at < header.chain_bytes; at += kWord) {
      dut->chain_first_i = at == 0;
      for (std::size_t i = 0; i < kWord; ++i) set_lane<8>(dut->chain_word_i, i, record[at + i]);
      dut.settle();
      cycle();
    }
    dut->chain_valid_i = 0;
    dut->chain_store_i = 1;
    dut.settle();
    cycle();
    dut->chain_store_i = 0;
  }
}

}  // namespace systole::testbench
