#include "testbench/rtl/core/command_decoder_rtl.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "Vcommand_decoder_5_checked.h"
#include "hw/postop/postop.h"
#include "hw/program/program_fetch.h"
#include "hw/program/program_image.h"
#include "testbench/rtl/drive/ports.h"
#include "testbench/rtl/drive/rtl_check.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {
namespace {

using hw::Range;
using hw::Space;

constexpr std::size_t kChainWordBytes = 8, kChainSlots = 64;

/// The number in `Bytes` bytes of a port.
template <unsigned Bytes, typename Port>
std::uint64_t address_in(const Port& port, std::size_t index) {
  std::uint64_t address = 0;
  for (unsigned byte = 0; byte < Bytes; ++byte) {
    address |= get_lane<8>(port, index * Bytes + byte) << (8 * byte);
  }
  return address;
}

class CommandDecoder final : public CommandDecoderRtl {
 public:
  explicit CommandDecoder(const RtlOptions& options) : dut_(options) {
    dut_->chain_valid_i = dut_->chain_store_i = 0;
    dut_.reset();
  }

  DecodedCommand decode(const std::uint8_t* command, const std::vector<std::uint8_t>& chain,
                        const std::vector<hw::DramTile>& operands) override {
    for (std::size_t at = 0; at < chain.size(); at += kChainWordBytes) {
      dut_->chain_valid_i = 1;
      dut_->chain_first_i = at == 0;
      for (std::size_t i = 0; i < kChainWordBytes; ++i)
        set_lane<8>(dut_->chain_word_i, i, chain[at + i]);
      cycle();
    }
    dut_->chain_valid_i = 0;
    if (!chain.empty()) {
      slot_ = (slot_ + 1) % kChainSlots;  // what others hold is not of this command
      dut_->chain_slot_i = dut_->command_slot_i = static_cast<CData>(slot_);
      dut_->chain_store_i = 1;
      cycle();
      dut_->chain_store_i = 0;
    }
    for (std::size_t i = 0; i < hw::kCommandBytes; ++i) set_lane<8>(dut_->command_i, i, command[i]);
    for (std::size_t i = 0; i + 1 < kTensors; ++i) {
      const hw::DramTile tile = i < operands.size() ? operands[i] : hw::DramTile{};
      set_lane<64>(dut_->operand_address_i, i, tile.address);
      set_lane<32>(dut_->operand_pitch_i, i, tile.pitch);
    }
    cycle();
    return decoded();
  }

  void expect(const DecodedCommand& command) override {
    words_ = {static_cast<std::int32_t>(command.ranges.size())};
    dut_.show_operation(words_.data(), 0);
  }
  [[nodiscard]] std::uint64_t cycles() const override { return dut_.cycles(); }
  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  static constexpr unsigned kDramBytes = kDramBits / 8, kLocalBytes = kLocalBits / 8;

  void cycle() {
    dut_.settle();
    dut_.show_cycle(dut_.cycles());
    dut_.show_words(words_.data(), words_.size());
    dut_.end_cycle(true);
  }

  DecodedCommand decoded() {
    DecodedCommand result;
    result.legal = dut_->legal_o != 0;
    result.is_end = dut_->end_o != 0;
    result.uses_chain = dut_->uses_chain_o != 0;
    result.chain = dut_->chain_o;
    result.operands = dut_->operands_o;
    result.unit = static_cast<hw::Unit>(dut_->unit_o);
    for (std::size_t i = 0; i <= kTensors; ++i) {
      add(result, Space::kDram, address_in<kDramBytes>(dut_->dram_begin_o, i),
          address_in<kDramBytes>(dut_->dram_end_o, i), (dut_->dram_write_o >> i & 1U) != 0);
    }
    for (std::size_t i = 0; i < 2; ++i) {
      add(result, Space::kScratchpad, address_in<kLocalBytes>(dut_->scratchpad_begin_o, i),
          address_in<kLocalBytes>(dut_->scratchpad_end_o, i),
          (dut_->scratchpad_write_o >> i & 1U) != 0);
    }
    add(result, Space::kAccumulator, dut_->accumulator_begin_o, dut_->accumulator_end_o,
        dut_->accumulator_write_o != 0);
    add(result, Space::kStatistics, dut_->statistics_begin_o, dut_->statistics_end_o,
        dut_->statistics_write_o != 0);
    sort_ranges(result.ranges);
    return result;
  }

  static void add(DecodedCommand& to, Space space, std::uint64_t begin, std::uint64_t end,
                  bool write) {
    if (end != 0) to.ranges.push_back({space, begin, end, write});
  }

  VerilatedDut<Vcommand_decoder_5_checked> dut_;
  std::array<std::int32_t, kDecoderViewWords> words_{};
  std::size_t slot_ = 0;  ///< of the chain that came last
};

auto key_of(const Range& range) {
  return std::make_tuple(range.space, range.begin, range.end, range.write);
}

bool fits(const Range& range) {
  const unsigned bits =
      range.space == Space::kDram ? CommandDecoderRtl::kDramBits : CommandDecoderRtl::kLocalBits;
  return range.end >> bits == 0;
}

/// Whether a core with three units does such commands.
bool is_of_three_units(const hw::Command& command) {
  if (const auto* const load = command.as<hw::cmd::Load>()) return !load->window;
  if (const auto* const store = command.as<hw::cmd::Store>()) return !store->encoder;
  return command.opcode() <= hw::Opcode::kMove;
}

/// What the decoder should say; nothing else of a command that it refuses.
DecodedCommand expected_of(const hw::Command& command, const hw::Program& program) {
  DecodedCommand expected;
  if (!is_of_three_units(command)) return expected;
  expected.ranges = hw::ranges_of(command, program);
  expected.legal = std::all_of(expected.ranges.begin(), expected.ranges.end(), fits);
  expected.is_end = command.opcode() == hw::Opcode::kEnd;
  expected.unit = hw::unit_of(command.opcode());
  if (const hw::ChainUse* const use = hw::chain_use(command)) {
    expected.uses_chain = true;
    expected.chain = use->chain;
    expected.operands = use->operands;
    const std::size_t tensors = hw::tensor_operands(hw::chain_of(*use, program));
    expected.legal = expected.legal && tensors <= CommandDecoderRtl::kTensors;
  }
  sort_ranges(expected.ranges);
  return expected;
}

}  // namespace

void sort_ranges(std::vector<Range>& ranges) {
  ranges.erase(std::remove_if(ranges.begin(), ranges.end(),
                              [](const Range& range) { return range.begin == range.end; }),
               ranges.end());
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return key_of(a) < key_of(b); });
}

std::unique_ptr<CommandDecoderRtl> make_command_decoder(const RtlOptions& options) {
  return std::make_unique<CommandDecoder>(options);
}

void check_command_decoder(CommandDecoderRtl& decoder, const hw::Program& program,
                           RtlCounts& counts) {
  RtlCheck check(counts, {});
  const std::vector<std::uint8_t> image = hw::encode_program(program);
  const hw::ProgramHeader header = hw::header_of(program);
  const std::uint64_t before = decoder.cycles();
  for (std::size_t i = 0; i < program.commands.size(); ++i) {
    const hw::Command& command = program.commands[i];
    const DecodedCommand expected = expected_of(command, program);
    std::vector<std::uint8_t> chain;
    std::vector<hw::DramTile> operands;
    if (expected.uses_chain) {
      const auto from = image.begin() + static_cast<std::ptrdiff_t>(header.chain(expected.chain));
      chain.assign(from, from + header.chain_bytes);
      const hw::OperandEntries entries = hw::operand_entries(command, program);
      for (std::uint32_t o = 0; o < entries.count; ++o) {
        operands.push_back(program.operand_tiles.at(entries.first + o));
      }
    }
    decoder.expect(expected);
    const DecodedCommand found = decoder.decode(image.data() + header.command(i), chain, operands);
    check.operation();
    check.mismatch(found.legal != expected.legal || found.is_end != expected.is_end);
    if (!expected.legal || expected.is_end) continue;
    check.mismatch(found.unit != expected.unit || found.uses_chain != expected.uses_chain);
    if (expected.uses_chain) {
      check.mismatch(found.chain != expected.chain || found.operands != expected.operands);
    }
    check.mismatch(
        found.ranges.size() != expected.ranges.size() ||
        !std::equal(found.ranges.begin(), found.ranges.end(), expected.ranges.begin(),
                    [](const Range& a, const Range& b) { return key_of(a) == key_of(b); }));
  }
  counts.cycles += decoder.cycles() - before;
  check.assertions(decoder.failed());
}

}  // namespace systole::testbench
