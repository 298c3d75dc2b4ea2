#include "analysis/mapped_cost.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "analysis/port_traffic.h"
#include "hw/array/array.h"
#include "hw/core/bank_words.h"
#include "hw/memory/fixed_memory.h"
#include "hw/number/weight_groups.h"
#include "hw/program/program_fetch.h"
#include "hw/program/program_ranges.h"
#include "mapper/replay/replay_work.h"
#include "mapper/tile/host_cost.h"
#include "mapper/tile/tiling.h"

namespace systole::analysis {
namespace {

/// What one operator moves, by DMA port.
struct Traffic {
  explicit Traffic(const hw::Machine& machine)
      : loads(machine), operands(machine), results(machine) {}

  void add(const hw::Command& command, const hw::Program& program) {
    if (const auto* const load = command.as<hw::cmd::Load>()) {
      if (load->window) {
        add_window(*load);
      } else {
        const hw::ReadRows read = hw::read_rows(*load);
        loads.add_rows(load->from.address, load->from.pitch, read.rows, read.bytes);
      }
      if (load->pre) add_operands(*load->pre, load->m, load->n, program, loads);
    } else if (const auto* const result = command.as<hw::cmd::Result>()) {
      add_operands(result->chain, result->m, result->n, program, operands);
      if (const auto* const store = command.as<hw::cmd::Store>()) {
        const hw::WrittenRows written = hw::written_rows(*store, program);
        results.add_rows(store->to.address, store->to.pitch, written.rows, written.bytes);
      }
    } else if (const auto* const attention = command.as<hw::cmd::Attention>()) {
      const hw::LayerMask& mask = program.masks[attention->mask];
      loads.add_rows(mask.address, 0, 1, mask.bytes.size());
    } else if (const auto* const loop = command.as<hw::cmd::Loop>()) {
      loads.add_rows(loop->a.address, loop->a.pitch, loop->m, loop->k);
      loads.add_rows(loop->b.address, loop->b.pitch, loop->k, loop->n);
      if (loop->d.address != 0) {
        loads.add_rows(loop->d.address, loop->d.pitch, loop->m, std::uint64_t{loop->n} * 4);
      }
      if (loop->c.address != 0) {
        results.add_rows(loop->c.address, loop->c.pitch, loop->m,
                         hw::written_rows(*loop, program).bytes);
      }
    }
  }

  PortTraffic loads;     ///< of the load unit
  PortTraffic operands;  ///< tensor operands of the store unit
  PortTraffic results;
  std::uint64_t fetched_bytes = 0;  ///< commands

 private:
  void add_window(const hw::cmd::Load& load) {
    for (std::uint64_t row = 0; row < load.m; ++row) {
      hw::for_each_run(*load.window, row, load.n, load.from.pitch, [&](const hw::WindowRun& run) {
        loads.add_rows(load.from.address + run.offset, 0, 1, run.bytes);
      });
    }
  }
  static void add_operands(const hw::ChainUse& use, std::uint64_t rows, std::uint64_t cols,
                           const hw::Program& program, PortTraffic& port) {
    hw::for_each_operand(use, program, [&](const hw::DramTile& tile, hw::DType type) {
      port.add_rows(tile.address, tile.pitch, rows, cols * hw::bytes_of(type));
    });
  }
};

/// Cycles of a port that issues a request a cycle and waits for the oldest one in flight.
double port_cycles(const PortTraffic& traffic, const mapper::DmaRate& rate) {
  return static_cast<double>(traffic.requests()) * std::max(1.0, rate.cycles_per_request);
}

double memory_cycles(const Traffic& traffic, const hw::Machine& machine) {
  const mapper::DmaRate reads = mapper::dma_rate(machine, machine.dma.outstanding_reads);
  const mapper::DmaRate writes = mapper::dma_rate(machine, machine.dma.outstanding_writes);
  const Roofline roofline = roofline_of(machine);
  const double beat = machine.bus.width_bytes / roofline.bus_bytes;
  const auto fetched = static_cast<double>(traffic.fetched_bytes);
  const double read_beats =
      static_cast<double>(traffic.loads.beats() + traffic.operands.beats()) * beat +
      fetched / roofline.bus_bytes;
  const double write_beats = static_cast<double>(traffic.results.beats()) * beat;
  // A memory of fixed latency spends an answer beat on a write, however long.
  const std::uint64_t written = hw::has_fixed_memory(machine)
                                    ? traffic.results.requests() * machine.bus.width_bytes
                                    : traffic.results.burst_bytes();
  const double dram =
      (static_cast<double>(traffic.loads.burst_bytes() + traffic.operands.burst_bytes() + written) +
       fetched) /
      roofline.dram_bytes;
  return std::max({port_cycles(traffic.loads, reads), port_cycles(traffic.operands, reads),
                   port_cycles(traffic.results, writes), read_beats, write_beats, dram});
}

}  // namespace

CommandCycles::CommandCycles(const mapper::Mapping& mapping, const hw::Machine& machine)
    : mapping_(mapping), machine_(machine) {}

double CommandCycles::of(const hw::Command& command) const {
  const hw::CommandShape shape = hw::shape_of(command);
  switch (command.opcode()) {
    case hw::Opcode::kMatmul:
      return static_cast<double>(
          hw::steady_matmul_cycles(machine_.array, *command.as<hw::cmd::Matmul>()));
    case hw::Opcode::kLoop:
      return static_cast<double>(
          hw::array_cycles(machine_.array, shape.m, shape.n, shape.k, true).interval);
    case hw::Opcode::kAttention:
      return static_cast<double>(mapping_.tilings[command.op].compute_cycles);
    case hw::Opcode::kStore:
    case hw::Opcode::kMove:
      return static_cast<double>(mapper::least_cycles(command, mapping_.program, machine_));
    case hw::Opcode::kLoad:
    case hw::Opcode::kLoadAccumulator: {
      Traffic traffic(machine_);
      traffic.add(command, mapping_.program);
      return std::max(memory_cycles(traffic, machine_), stage_cycles(command));
    }
    case hw::Opcode::kHost: {
      const auto function = command.as<hw::cmd::HostCall>()->function;
      return mapper::host_cost(mapping_.program.host_functions[function],
                               static_cast<std::uint32_t>(shape.m),
                               static_cast<std::uint32_t>(shape.n), machine_)
          .total();
    }
    case hw::Opcode::kEnd:
      break;
  }
  return 0;
}

double CommandCycles::stage_cycles(const hw::Command& command) const {
  const auto* const load = command.as<hw::cmd::Load>();
  if (load != nullptr && load->packed()) {
    const hw::ExpansionCycles cycles = hw::expansion_cycles(load->n, machine_.dma.expander_lanes,
                                                            hw::scratchpad_word_bytes(machine_));
    return static_cast<double>(hw::read_rows(*load).rows * cycles.per_group + cycles.fill);
  }
  if (load == nullptr || !load->pre) return 0;
  const hw::Chain& chain = hw::chain_of(*load->pre, mapping_.program);
  return static_cast<double>(
      hw::chain_cycles(chain, load->m, load->n, machine_.preop.lanes).total(load->m));
}

std::vector<OperatorEstimate> estimate(const mapper::Mapping& mapping, const hw::Machine& machine) {
  const CommandCycles cycles(mapping, machine);
  const hw::Program& program = mapping.program;
  std::vector<OperatorEstimate> estimates(program.operators.size());
  std::vector<Traffic> traffic(estimates.size(), Traffic(machine));
  const std::vector<std::uint64_t> fetched = hw::fetched_bytes(program, machine);
  for (std::size_t i = 0; i < program.commands.size(); ++i) {
    const hw::Command& command = program.commands[i];
    if (command.opcode() == hw::Opcode::kEnd) continue;
    OperatorEstimate& estimate = estimates[command.op];
    ++estimate.commands;
    traffic[command.op].fetched_bytes += fetched[i];
    traffic[command.op].add(command, program);
    if (command.opcode() == hw::Opcode::kLoad || command.opcode() == hw::Opcode::kLoop) {
      Traffic load(machine);
      load.add(command, program);
      estimate.loads += load.loads.bytes();
    }
    const hw::Unit unit = hw::unit_of(command.opcode());
    if (unit == hw::Unit::kCompute || unit == hw::Unit::kLoop) {
      estimate.bound.array += cycles.of(command);
    } else if (hw::unit_of(command.opcode()) == hw::Unit::kStore) {
      estimate.bound.postop += cycles.of(command);
    } else if (hw::unit_of(command.opcode()) == hw::Unit::kHost) {
      estimate.bound.host += cycles.of(command);
    }
  }
  for (std::size_t i = 0; i < estimates.size(); ++i) {
    OperatorEstimate& estimate = estimates[i];
    estimate.name = program.operators[i].name;
    estimate.macs = program.operators[i].macs;
    estimate.read_bytes =
        traffic[i].loads.bytes() + traffic[i].operands.bytes() + traffic[i].fetched_bytes;
    estimate.written_bytes = traffic[i].results.bytes();
    estimate.store_unit_bytes = traffic[i].operands.bytes() + traffic[i].results.bytes();
    estimate.bound.memory = memory_cycles(traffic[i], machine);
    estimate.expected_cycles = mapping.tilings[i].cycles;
    estimate.expected_loads = mapping.tilings[i].load_bytes;
    const mapper::Group& group = mapping.groups[i];
    if (!group.attention()) continue;
    // Which rows the engines fetch follows from the mask: the mapper's plan has counted them.
    estimate.read_bytes += mapping.tilings[i].load_bytes;
    estimate.loads += mapping.tilings[i].load_bytes;
    estimate.written_bytes += std::uint64_t{group.m()} * group.n();
    estimate.bound.memory +=
        static_cast<double>(mapping.tilings[i].load_bytes) / roofline_of(machine).memory_bytes();
  }
  return estimates;
}

std::string general_name(const std::string& name) {
  std::string general;
  bool starred = false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto ends_with = [&](const char* word) {
      const std::string tail(word);
      return general.size() >= tail.size() &&
             general.compare(general.size() - tail.size(), tail.size(), tail) == 0;
    };
    const bool digit = std::isdigit(static_cast<unsigned char>(name[i])) != 0;
    if (digit && (starred || ends_with("blocks.") || ends_with(".head"))) {
      if (!starred) general += '*';
      starred = true;
      continue;
    }
    starred = false;
    general += name[i];
  }
  return general;
}

std::string short_name(const std::string& name) {
  const std::string prefix = "blocks.*.";
  return name.compare(0, prefix.size(), prefix) == 0 ? name.substr(prefix.size()) : name;
}

}  // namespace systole::analysis
