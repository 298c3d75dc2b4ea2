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
      copy(std::int8_t{});
      break;
    case hw::DType::kU8:
      copy(std::uint8_t{});
      break;
    case hw::DType::kS16:
      copy(std::int16_t{});
      break;
    case hw::DType::kU16:
      copy(std::uint16_t{});
      break;
    case hw::DType::kS32:
      copy(std::int32_t{});
      break;
  }
  if (memory_.accumulator_engine != nullptr) {
    const std::uint64_t first = command.c + row * command.c_pitch;
    memory_.accumulator_engine->write({first, 1, command.n, command.n}, to, command.n, false);
  }
}

std::uint64_t LoadUnit::execute(Entry& entry) {
  const hw::Command& command = entry.command;
  const bool to_accumulator = command.opcode == hw::Opcode::kLoadAccumulator;
  const std::uint64_t row_bytes =
      command.n * (to_accumulator ? hw::bytes_of(command.type) : std::uint64_t{1});
  // Where the rows go, in bytes of their memory.
  BankedSram& sram = to_accumulator ? memory_.accumulator : memory_.scratchpad;
  const std::uint64_t first = to_accumulator ? command.c * std::uint64_t{4} : command.a;
  const std::uint64_t pitch = to_accumulator ? command.c_pitch * std::uint64_t{4} : command.a_pitch;
  const std::uint64_t local_bytes = to_accumulator ? command.n * std::uint64_t{4} : row_bytes;
  const std::uint64_t words = (local_bytes + sram.word_bytes() - 1) / sram.word_bytes();
  DmaPort::Rows rows{command.dram, command.dram_pitch, nullptr, pitch, command.m, row_bytes};
  if (functional_ && to_accumulator) {
    staging_.resize(command.m * row_bytes);
    rows.data = staging_.data();
    rows.data_pitch = row_bytes;
  } else if (functional_) {
    rows.data = sram.data() + first;
  }
  const std::uint64_t started = cycle();
  const std::uint64_t done = dma.read_rows(rows, [&](std::uint64_t row, std::uint64_t arrived) {
    if (functional_ && to_accumulator) widen(command, row, rows.data + row * row_bytes);
    const std::uint64_t at = first + row * pitch;
    sram.record(at, at + local_bytes, words, arrived - std::min(arrived, words), arrived);
  });
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
  return {
      {"requests", "requests", "read requests issued", dma.stats().requests},
      {"read_bytes", "bytes", "bytes read from memory", dma.stats().bytes},
      {"window_full", "cycles", "a request waited for one of the outstanding ones",
       dma.stats().window_wait_cycles},
      {"tlb_misses", "misses", "a page that the shared table did not hold", dma.stats().tlb_misses},
      {"tlb_wait", "cycles", "a request waited for its translation", dma.stats().tlb_wait_cycles}};
}

}  // namespace systole::tlm_model
