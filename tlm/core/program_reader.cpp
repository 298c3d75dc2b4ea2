#include "tlm/core/program_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/units.h"
#include "hw/attention/head_mix.h"
#include "hw/postop/postop.h"
#include "hw/program/command_codec.h"

namespace systole::tlm_model {
namespace {

/// Of commands, which are whole words.
std::uint64_t hash_of(const std::uint8_t* bytes, std::size_t count) {
  static_assert(hw::kCommandBytes % sizeof(std::uint64_t) == 0);
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::size_t at = 0; at < count; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, sizeof(word));
    hash = hw::hash_with(hash, word);
  }
  return hash;
}

}  // namespace

ProgramReader::ProgramReader(const sc_core::sc_module_name& name, const hw::Machine& machine,
                             DmaPort& port)
    : sc_module(name),
      machine_(machine),
      host_sends_(machine.unroller.loops != 0),
      clock_(machine.core.clock_mhz),
      port_(port),
      chains_(machine.core.chain_slots),
      mixes_(hw::kMixSlots) {
  SC_HAS_PROCESS(ProgramReader);
  SC_THREAD(run);
}

void ProgramReader::start(std::uint64_t address) {
  address_ = address;
  chains_.clear();
  mixes_.clear();
  look_ = {};
  queue_.clear();
  begun_ = 0;
  fault_.clear();
  started_.notify();
}

ProgramReader::Fetched ProgramReader::next() {
  while (queue_.empty()) wait(arrived_);
  const Fetched fetched = queue_.front();
  queue_.pop_front();
  if (fetched.index % machine_.core.fetch_commands == 0) {
    ++begun_;
    taken_.notify();
  }
  return fetched;
}

void ProgramReader::complete(const hw::Command& command) {
  const hw::References to = hw::references_of(command);
  if (to.chain_count + to.mix_count == 0) return;
  const std::uint64_t now = clock_.cycle_from(sc_core::sc_time_stamp());
  for (std::size_t i = 0; i < to.chain_count; ++i) chains_.leave(to.chains[i], now);
  for (std::size_t i = 0; i < to.mix_count; ++i) mixes_.leave(to.mixes[i], now);
  completed_.notify();
}

void ProgramReader::run() {
  for (;;) {
    wait(started_);
    try {
      read_program();
    } catch (const hw::InputError& error) {
      fault_ = error.what();
      queue_.push_back({});
      queue_.back().arrival = clock_.cycle_from(sc_core::sc_time_stamp());
      arrived_.notify();
    }
  }
}

void ProgramReader::read_program() {
  const std::size_t chunk = machine_.core.fetch_commands;
  const std::uint64_t capacity = machine_.dram.mib * hw::kMib;
  if (address_ >= capacity || capacity - address_ < hw::kHeaderBytes) {
    throw hw::InputError("program at " + std::to_string(address_) + ", expected it in DRAM");
  }
  // The first chunk comes along with the header, which says only then how long the program is.
  std::vector<std::uint8_t> bytes;
  const std::uint64_t first =
      std::min<std::uint64_t>(capacity - address_, hw::kHeaderBytes + chunk * hw::kCommandBytes);
  std::uint64_t arrival = read(0, first, bytes);
  clock_.wait_until(arrival);
  take_header(bytes);
  for (std::uint32_t at = 0; at < header_.commands; at += static_cast<std::uint32_t>(chunk)) {
    const std::size_t count = std::min<std::size_t>(chunk, header_.commands - at);
    const std::uint8_t* commands = bytes.data() + hw::kHeaderBytes;
    if (at != 0) {
      // One chunk is fetched ahead, so that dispatch waits for memory only when that is really
      // slow.
      while (begun_ < at / chunk) wait(taken_);
      clock_.wait_until(look_.end());
      arrival = read(header_.command(at), count * hw::kCommandBytes, bytes);
      clock_.wait_until(arrival);
      commands = bytes.data();
    }
    take_chunk(at, arrival, commands, count);
  }
}

std::uint64_t ProgramReader::read(std::uint64_t offset, std::size_t bytes,
                                  std::vector<std::uint8_t>& into, std::uint64_t not_before) {
  into.resize(bytes);
  if (host_sends_) {
    tlm::tlm_generic_payload payload;
    payload.set_command(tlm::TLM_READ_COMMAND);
    payload.set_address(address_ + offset);
    payload.set_data_ptr(into.data());
    payload.set_data_length(static_cast<unsigned>(bytes));
    port_.socket->transport_dbg(payload);
    return clock_.cycle_from(sc_core::sc_time_stamp());
  }
  return port_.read(address_ + offset, into.data(), bytes, not_before);
}

void ProgramReader::take_header(const std::vector<std::uint8_t>& bytes) {
  const hw::ProgramHeader header = hw::decode_header(bytes.data());
  if (header.bytes() > machine_.dram.mib * hw::kMib - address_) {
    throw hw::InputError("program of " + std::to_string(header.bytes()) + " bytes at " +
                         std::to_string(address_) + ", expected it in DRAM");
  }
  if (!(header == header_)) ++generation_;
  await_values();
  header_ = header;
  program_.operand_tiles.resize(header.operands);
  program_.masks.resize(header.masks);
  program_.chains.resize(header.chains);
  program_.mixes.resize(header.mixes);
  chain_bytes_.resize(header.chains);
  mix_bytes_.resize(header.mixes);
  const std::size_t chunk = machine_.core.fetch_commands;
  chunks_.resize((header.commands + chunk - 1) / chunk);
}

void ProgramReader::take_chunk(std::uint32_t first, std::uint64_t arrival,
                               const std::uint8_t* bytes, std::size_t count) {
  decoded_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    try {
      decoded_.push_back(hw::decode_command(bytes + i * hw::kCommandBytes));
    } catch (const hw::InputError& error) {
      throw hw::InputError("command " + std::to_string(first + i) + ": " + error.what());
    }
  }
  Chunk& chunk = chunks_[first / machine_.core.fetch_commands];
  const std::uint64_t hash = hash_of(bytes, count * hw::kCommandBytes);
  if (hash != std::exchange(chunk.hash, hash)) chunk.generation = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const hw::Command& command = decoded_[i];
    if (!host_sends_) look_.next(arrival);
    const std::uint64_t referred = read_referred(command);
    hw::CommandCheck::check_end(command, first + i, header_.commands);
    if (chunk.generation != generation_) check(command, first + i);
    queue_.push_back({command, first + i, std::max(arrival, referred)});
    arrived_.notify();
  }
  chunk.generation = generation_;
}

void ProgramReader::check(const hw::Command& command, std::uint32_t index) {
  if (command.opcode() == hw::Opcode::kHost) {
    // The rest of it is for the host, which has the functions.
    if (machine_.host.operators != hw::HostOperators::kNone) return;
    throw hw::InputError("command " + std::to_string(index) +
                         ": the machine's host computes nothing");
  }
  if (checked_with_ != generation_) {
    check_ = std::make_unique<hw::CommandCheck>(program_, machine_, machine_.dram.mib * hw::kMib);
    checked_with_ = generation_;
  }
  check_->run(command, index);
}

std::uint64_t ProgramReader::read_referred(const hw::Command& command) {
  const hw::References to = hw::references_of(command);
  std::uint64_t ready = 0;
  for (std::size_t i = 0; i < to.chain_count; ++i) {
    ready = std::max(ready, hold_chain(to.chains[i]));
  }
  for (std::size_t i = 0; i < to.mix_count; ++i) {
    ready = std::max(ready, hold_mix(to.mixes[i]));
  }
  // The core knows how many operands there are when it has the chain.
  ready = std::max(ready, read_operands(command));
  return to.mask ? std::max(ready, read_mask(*to.mask)) : ready;
}

std::uint64_t ProgramReader::read_entries(std::uint64_t offset, std::size_t bytes,
                                          std::vector<std::uint8_t>& into) {
  clock_.wait_until(look_.at());
  const std::uint64_t arrival = read(offset, bytes, into, look_.asks());
  return host_sends_ ? arrival : look_.take_entry(arrival);
}

std::uint64_t ProgramReader::read_operands(const hw::Command& command) {
  const hw::OperandEntries entries = hw::operand_entries(command, program_);
  if (entries.count == 0) return 0;
  if (entries.first > header_.operands || entries.count > header_.operands - entries.first) {
    throw hw::InputError("operands " + std::to_string(entries.first) + " and after, of " +
                         std::to_string(header_.operands));
  }
  std::vector<std::uint8_t> bytes;
  const std::uint64_t ready =
      read_entries(header_.operand(entries.first), entries.count * hw::kOperandTileBytes, bytes);
  for (std::size_t i = 0; i < entries.count; ++i) {
    hw::DramTile& held = program_.operand_tiles[entries.first + i];
    const hw::DramTile tile = hw::decode_operand_tile(&bytes[i * hw::kOperandTileBytes]);
    if (held == tile) continue;
    held = tile;
    ++generation_;
  }
  return ready;
}

std::uint64_t ProgramReader::read_mask(std::uint32_t index) {
  if (index >= header_.masks) {
    throw hw::InputError("mask " + std::to_string(index) + " of " + std::to_string(header_.masks));
  }
  std::vector<std::uint8_t> bytes;
  const std::uint64_t ready = read_entries(header_.mask(index), hw::kMaskEntryBytes, bytes);
  hw::LayerMask mask = hw::decode_mask_entry(bytes.data(), machine_.dram.mib * hw::kMib);
  if (!mask.bytes.empty()) {
    tlm::tlm_generic_payload payload;
    payload.set_command(tlm::TLM_READ_COMMAND);
    payload.set_address(mask.address);
    payload.set_data_ptr(mask.bytes.data());
    payload.set_data_length(static_cast<unsigned>(mask.bytes.size()));
    payload.set_streaming_width(payload.get_data_length());
    if (port_.socket->transport_dbg(payload) != mask.bytes.size()) {
      throw hw::InputError("mask " + std::to_string(index) + " at " + std::to_string(mask.address) +
                           ", expected it in memory");
    }
  }
  hw::LayerMask& held = program_.masks[index];
  if (held.address != mask.address || held.bytes != mask.bytes) {
    held = std::move(mask);
    ++generation_;
  }
  return ready;
}

std::uint64_t ProgramReader::hold(hw::RecordStore& store, std::uint32_t index, const Table& table) {
  if (store.holds(index)) {
    store.use(index);
    return 0;
  }
  clock_.wait_until(look_.at());
  while (!store.free_from(index)) wait(completed_);
  store.use(index);
  std::vector<std::uint8_t> bytes;
  const std::uint64_t arrival = read(table.offset, table.stride, bytes,
                                     look_.asks(clock_.cycle_from(sc_core::sc_time_stamp())));
  if (bytes != table.held) {
    await_values();
    table.take(bytes);
    table.held = std::move(bytes);
    ++generation_;
  }
  return host_sends_ ? arrival : look_.take_chain(arrival, table.stride);
}

std::uint64_t ProgramReader::hold_chain(std::uint32_t index) {
  if (index >= header_.chains) {
    throw hw::InputError("chain " + std::to_string(index) + " of " +
                         std::to_string(header_.chains));
  }
  return hold(chains_, index,
              {header_.chain(index), header_.chain_bytes, chain_bytes_[index],
               [&](const std::vector<std::uint8_t>& bytes) {
                 hw::Chain chain = hw::decode_chain(bytes.data(), bytes.size());
                 hw::check_chain(chain, hw::chain_limits(machine_));
                 program_.chains[index] = std::move(chain);
               }});
}

std::uint64_t ProgramReader::hold_mix(std::uint32_t index) {
  if (index >= header_.mixes) {
    throw hw::InputError("mix " + std::to_string(index) + " of " + std::to_string(header_.mixes));
  }
  return hold(mixes_, index,
              {header_.mix(index), header_.mix_bytes, mix_bytes_[index],
               [&](const std::vector<std::uint8_t>& bytes) {
                 hw::HeadMix mix = hw::decode_mix(bytes.data(), bytes.size());
                 hw::check_head_mix(mix);
                 program_.mixes[index] = std::move(mix);
               }});
}

}  // namespace systole::tlm_model
