#include "hw/program/program_fetch.h"

#include "hw/program/program_image.h"
#include "hw/program/program_ranges.h"
#include "hw/program/record_store.h"

namespace systole::hw {

References references_of(const Command& command) {
  References to;
  const auto chain = [&to](std::uint32_t index) { to.chains.at(to.chain_count++) = index; };
  const auto mix = [&to](std::uint32_t index) { to.mixes.at(to.mix_count++) = index; };
  switch (command.opcode) {
    case Opcode::kLoad:
    case Opcode::kLoadAccumulator:
      if (command.mix != 0) chain(command.mix - 1U);
      break;
    case Opcode::kStore:
    case Opcode::kMove:
      chain(command.chain);
      if (command.mix != 0) mix(command.mix - 1U);
      break;
    case Opcode::kLoop:
      chain(command.chain);
      break;
    case Opcode::kAttention:
      chain(command.chain);
      for (std::uint32_t i = 0; i < (command.accumulate ? 4U : 1U); ++i) chain(command.c + i);
      if (command.mix != 0) {
        mix(command.mix - 1U);
        mix(command.mix);
      }
      to.mask = true;
      break;
    default:
      break;
  }
  return to;
}

OperandEntries operand_entries(const Command& command, const Program& program) {
  const Chain* const chain = chain_of(command, program);
  const std::size_t operands = chain == nullptr ? 0 : tensor_operands(*chain);
  if (operands < 2) return {};
  return {first_operand_tile(command), static_cast<std::uint32_t>(operands - 1)};
}

std::vector<std::uint64_t> fetched_bytes(const Program& program, const Machine& machine) {
  // The host sends the commands.
  if (machine.unroller.loops != 0) return std::vector<std::uint64_t>(program.commands.size(), 0);
  const ProgramHeader header = header_of(program);
  RecordStore chains(machine.core.chain_slots), mixes(kMixSlots);
  const auto bytes_for = [](RecordStore& store, std::uint32_t index, std::uint64_t user,
                            std::uint64_t bytes) {
    if (store.use(index, user) != nullptr) return std::uint64_t{0};
    store.add({index, 0, user});
    return bytes;
  };
  std::vector<std::uint64_t> bytes(program.commands.size(), kCommandBytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const Command& command = program.commands[i];
    const References to = references_of(command);
    for (std::size_t c = 0; c < to.chain_count; ++c) {
      bytes[i] += bytes_for(chains, to.chains[c], i, header.chain_bytes);
    }
    for (std::size_t m = 0; m < to.mix_count; ++m) {
      bytes[i] += bytes_for(mixes, to.mixes[m], i, header.mix_bytes);
    }
    if (to.mask) bytes[i] += kMaskEntryBytes;
    bytes[i] += operand_entries(command, program).count * kOperandTileBytes;
  }
  bytes.front() += kHeaderBytes;
  if (bytes.size() < machine.core.fetch_commands) {
    bytes.back() += (machine.core.fetch_commands - bytes.size()) * kCommandBytes;
  }
  return bytes;
}

}  // namespace systole::hw
