#include "hw/program/program_fetch.h"

#include "hw/program/program_image.h"
#include "hw/program/program_ranges.h"
#include "hw/program/record_store.h"

namespace systole::hw {

References references_of(const Command& command) {
  References to;
  const auto chain = [&to](std::uint32_t index) { to.chains.at(to.chain_count++) = index; };
  const auto mix = [&to](std::uint32_t index) { to.mixes.at(to.mix_count++) = index; };
  if (const ChainUse* const use = chain_use(command)) chain(use->chain);
  if (const auto* const loop = command.as<cmd::Loop>()) chain(loop->chain);
  if (const auto* const store = command.as<cmd::Store>()) {
    if (store->encoder) mix(*store->encoder);
  }
  if (const auto* const attention = command.as<cmd::Attention>()) {
    chain(attention->chain);
    const std::uint32_t chains = attention->operand_chains ? 4 : 1;
    for (std::uint32_t i = 0; i < chains; ++i) chain(attention->softmax + i);
    if (attention->decoders) {
      mix(*attention->decoders);
      mix(*attention->decoders + 1U);
    }
    to.mask = attention->mask;
  }
  return to;
}

OperandEntries operand_entries(const Command& command, const Program& program) {
  const ChainUse* const use = chain_use(command);
  const std::size_t operands = use == nullptr ? 0 : tensor_operands(chain_of(*use, program));
  if (operands < 2) return {};
  return {use->operands, static_cast<std::uint32_t>(operands - 1)};
}

std::vector<std::uint64_t> fetched_bytes(const Program& program, const Machine& machine) {
  // The host sends the commands.
  if (machine.unroller.loops != 0) return std::vector<std::uint64_t>(program.commands.size(), 0);
  const ProgramHeader header = header_of(program);
  RecordStore chains(machine.core.chain_slots), mixes(kMixSlots);
  const auto bytes_for = [](RecordStore& store, std::uint32_t index, std::uint64_t bytes) {
    const bool held = store.holds(index);
    store.use(index);
    return held ? 0 : bytes;
  };
  std::vector<std::uint64_t> bytes(program.commands.size(), kCommandBytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const Command& command = program.commands[i];
    const References to = references_of(command);
    for (std::size_t c = 0; c < to.chain_count; ++c) {
      bytes[i] += bytes_for(chains, to.chains[c], header.chain_bytes);
    }
    for (std::size_t m = 0; m < to.mix_count; ++m) {
      bytes[i] += bytes_for(mixes, to.mixes[m], header.mix_bytes);
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
