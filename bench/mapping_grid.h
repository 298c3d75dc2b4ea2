#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/description/machine_file.h"
#include "hw/description/machine_rules.h"
#include "hw/machine/machine.h"

/// The machines and networks of mapping_bench.
namespace systole::bench {

/// What a doubling changes: a member of a part of the machine.
struct Resource {
  const char* name;
  std::uint32_t* (*key)(hw::Machine&);
};
template <auto Part, auto Member>
std::uint32_t* key_of(hw::Machine& machine) {
  return &((machine.*Part).*Member);
}
inline const std::vector<Resource> kResources = {
    {"scratchpad.kib", key_of<&hw::Machine::scratchpad, &hw::Machine::Sram::kib>},
    {"accumulator.kib", key_of<&hw::Machine::accumulator, &hw::Machine::Accumulator::kib>},
    {"scratchpad.banks", key_of<&hw::Machine::scratchpad, &hw::Machine::Sram::banks>},
    {"scratchpad.ports", key_of<&hw::Machine::scratchpad, &hw::Machine::Sram::ports>},
    {"accumulator.banks", key_of<&hw::Machine::accumulator, &hw::Machine::Accumulator::banks>},
    {"dram.channels", key_of<&hw::Machine::dram, &hw::Machine::Dram::channels>},
    {"dma.outstanding_reads", key_of<&hw::Machine::dma, &hw::Machine::Dma::outstanding_reads>},
    {"dma.outstanding_writes", key_of<&hw::Machine::dma, &hw::Machine::Dma::outstanding_writes>},
    {"bus.width_bytes", key_of<&hw::Machine::bus, &hw::Machine::Bus::width_bytes>},
    {"postop.lanes", key_of<&hw::Machine::postop, &hw::Machine::Postop::lanes>},
    {"core.load_queue", key_of<&hw::Machine::core, &hw::Machine::Core::load_queue>},
    {"core.compute_queue", key_of<&hw::Machine::core, &hw::Machine::Core::compute_queue>},
    {"core.store_queue", key_of<&hw::Machine::core, &hw::Machine::Core::store_queue>},
};

/// A machine of the grid: a base, or a base with one resource doubled.
struct GridMachine {
  hw::Machine machine;
  std::size_t base = 0;               ///< index of the base
  const Resource* doubled = nullptr;  ///< null: the base itself
};

inline std::uint32_t draw(std::mt19937_64& random, const std::vector<std::uint32_t>& values) {
  return values[random() % values.size()];
}

/// Bases are drawn from the whole range of sizes; some arrays are rectangular.
inline hw::Machine draw_base(std::mt19937_64& random) {
  hw::Machine machine = hw::find_machine("transformer");
  machine.array.rows = draw(random, {8, 16, 32, 64, 128});
  machine.array.cols = random() % 3 == 0 ? draw(random, {8, 16, 32, 64, 128}) : machine.array.rows;
  machine.scratchpad = {draw(random, {32, 64, 128, 256, 512, 1024, 2048}), draw(random, {2, 4, 8}),
                        draw(random, {1, 1, 2})};
  machine.accumulator = {draw(random, {16, 32, 64, 128, 256, 512, 1024}), draw(random, {2, 4}), 2};
  machine.dram.channels = draw(random, {1, 1, 2, 4});
  machine.bus.width_bytes = draw(random, {16, 16, 32});
  machine.dma.outstanding_reads = machine.dma.outstanding_writes = draw(random, {8, 16, 16, 32});
  machine.postop.lanes = draw(random, {16, 16, 32});
  return machine;
}

inline bool is_valid(const hw::Machine& machine) {
  try {
    hw::validate(machine);
    return true;
  } catch (const hw::InputError&) {
    return false;
  }
}

/// `bases` machines, each followed by those with one resource doubled, where they are valid.
inline std::vector<GridMachine> make_grid(std::size_t bases, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<GridMachine> grid;
  for (std::size_t base = 0; base < bases; ++base) {
    hw::Machine machine = draw_base(random);
    while (!is_valid(machine)) machine = draw_base(random);
    grid.push_back({machine, base, nullptr});
    for (const Resource& resource : kResources) {
      hw::Machine larger = machine;
      *resource.key(larger) *= 2;
      if (is_valid(larger)) grid.push_back({larger, base, &resource});
    }
  }
  return grid;
}

/// What is mapped. Shapes have the layers that the user asks for.
struct Network {
  std::string label, model;
  std::uint32_t length = 0, past = 0;  ///< 0: its own length; no cache
};
inline const std::vector<Network> kNetworks = {
    {"bert-base-128", "bert-base", 128}, {"bert-base-384", "bert-base", 384},
    {"bert-base-512", "bert-base", 512}, {"gpt2-1024", "gpt2", 1024},
    {"deit-small", "deit-small"},        {"vit65", "vit65"},
    {"gpt2-decode-512", "gpt2", 1, 512},
};

inline std::string name_of(const hw::Machine& m) {
  return std::to_string(m.array.rows) + "x" + std::to_string(m.array.cols) + " " +
         std::to_string(m.scratchpad.kib) + "+" + std::to_string(m.accumulator.kib) + " KiB, " +
         std::to_string(m.dram.channels) + " channels, bus " + std::to_string(m.bus.width_bytes) +
         ", " + std::to_string(m.dma.outstanding_reads) + " reads, " +
         std::to_string(m.postop.lanes) + " lanes, " + std::to_string(m.scratchpad.banks) +
         " banks of " + std::to_string(m.scratchpad.ports);
}

}  // namespace systole::bench
