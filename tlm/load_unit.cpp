#include "tlm/load_unit.h"

#include <algorithm>
#include <cstring>

namespace systole::tlm_model {

LoadUnit::LoadUnit(const sc_core::sc_module_name& name, const hw::Machine& machine,
                   CommandProcessor& processor, LocalMemory& memory, bool functional)
    : ExecutionUnit(
          name, hw::Unit::kLoad, processor,
          {{"memory", "latency, a full request window, or contention on the way to memory"}}),
      dma("dma", machine, machine.dma.outstanding_reads),
      functional_(functional),
      beat_bytes_(machine.bus.width_bytes),
      memory_(memory) {}

std::uint8_t* LoadUnit::staging(std::size_t bytes) {
  if (!functional_) return nullptr;
  if (staging_.size() < bytes) staging_.resize(bytes);
  return staging_.data();
}

void LoadUnit::widen(const hw::Command& command, std::uint64_t row, const std::uint8_t* from) {
  std::int32_t* to = memory_.accumulators() + command.c + row * command.c_pitch;
  const auto copy = [&](auto type) {
    for (std::uint32_t i = 0; i < command.n; ++i) {
      decltype(type) value;
      std::memcpy(&value, from + i * sizeof value, sizeof value);
      to[i] = static_cast<std::int32_t>(value);
    }
  };
  switch (command.type) {
    case hw::DType::kS8:
      return copy(std::int8_t{});
    case hw::DType::kU8:
      return copy(std::uint8_t{});
    case hw::DType::kS16:
      return copy(std::int16_t{});
    case hw::DType::kU16:
      return copy(std::uint16_t{});
    case hw::DType::kS32:
      return copy(std::int32_t{});
  }
}

std::uint64_t LoadUnit::execute(Entry& entry) {
  const hw::Command& command = entry.command;
  const bool to_accumulator = command.opcode == hw::Opcode::kLoadAccumulator;
  const std::uint64_t row_bytes =
      command.n * (to_accumulator ? hw::bytes_of(command.type) : std::uint64_t{1});
  BankedSram& sram = to_accumulator ? memory_.accumulator : memory_.scratchpad;
  const std::uint64_t started = cycle();
  std::uint64_t done = started;
  for (std::uint64_t row = 0; row < command.m; ++row) {
    // Where the row goes, in bytes of its memory.
    const std::uint64_t at = to_accumulator ? (command.c + row * command.c_pitch) * 4
                                            : command.a + row * command.a_pitch;
    const std::uint64_t local_bytes = to_accumulator ? command.n * std::uint64_t{4} : row_bytes;
    std::uint8_t* into = to_accumulator ? staging(row_bytes)
                         : functional_  ? memory_.scratchpad.data() + at
                                        : nullptr;
    const std::uint64_t arrived =
        dma.read(command.dram + row * command.dram_pitch, into, row_bytes);
    done = std::max(done, arrived);
    if (to_accumulator && functional_) widen(command, row, into);
    const std::uint64_t words = (local_bytes + sram.word_bytes() - 1) / sram.word_bytes();
    sram.record(at, at + local_bytes, words, arrived - std::min(arrived, words), arrived);
  }
  dma.synchronise();
  // Of the cycles in the unit, those that the data need on the bus are work; the rest is waiting
  // for memory: latency, a full request window, contention.
  const std::uint64_t elapsed = cycle() - started;
  const std::uint64_t beats = command.m * ((row_bytes + beat_bytes_ - 1) / beat_bytes_);
  const std::uint64_t busy = std::min(elapsed, beats);
  spend_busy(busy);
  spend_stalled(elapsed - busy, kMemory);
  return done;
}

std::vector<hw::Counter> LoadUnit::counters() const {
  return {{"requests", "requests", "read requests issued", dma.stats().requests},
          {"read_bytes", "bytes", "bytes read from memory", dma.stats().bytes},
          {"window_full", "cycles", "a request waited for one of the outstanding ones",
           dma.stats().window_wait_cycles}};
}

}  // namespace systole::tlm_model
