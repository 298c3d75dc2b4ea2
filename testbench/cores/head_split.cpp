#include "testbench/cores/head_split.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/round.h"
#include "mapper/relocation.h"
#include "testbench/cores/column_parts.h"
#include "testbench/network/tensors.h"

namespace systole::testbench {
namespace {

/// Memory that is given out from address 0 on.
class Regions {
 public:
  std::uint64_t take(std::uint64_t bytes) {
    const std::uint64_t at = end_;
    end_ = round_up(end_ + bytes, mapper::kRelocationAlignment);
    return at;
  }
  [[nodiscard]] std::uint64_t end() const { return end_; }

 private:
  std::uint64_t end_ = 0;
};

/// Where tensors are that cross from segment to segment.
class Exchanges {
 public:
  Exchanges(const CorePlan& plan, Regions& regions) : plan_(plan), regions_(regions) {}

  mapper::Relocation::Moved place(const ColumnPart::Exchanged& exchanged, const ColumnPart& part,
                                  const mapper::Mapping& mapping, std::size_t core) {
    const model::Tensor& tensor = part.graph->tensors[exchanged.here];
    const std::uint32_t pitch = mapping.tensors[exchanged.here].pitch;
    const auto key = std::pair{exchanged.whole, exchanged.own ? core + 1 : 0};
    const auto [entry, added] = places_.try_emplace(key, Place{0, pitch});
    if (added) entry->second.address = regions_.take(std::uint64_t{pitch} * tensor.rows);
    if (entry->second.pitch != pitch) {
      throw hw::InputError(
          "--split heads: rows of " + tensor.name + " are " + std::to_string(pitch) +
          " bytes apart for " + plan_.system.cores[core].name + " and " +
          std::to_string(entry->second.pitch) + " for a core before it, expected equal cores");
    }
    return {exchanged.here, tensor.rows, entry->second.address, !tensor.data.empty()};
  }

 private:
  struct Place {
    std::uint64_t address;
    std::uint32_t pitch;
  };
  const CorePlan& plan_;
  Regions& regions_;
  std::map<std::pair<model::TensorId, std::size_t>, Place> places_;  ///< by tensor and core, or 0
};

/// Of the whole network's output or input as a part has it.
mapper::TensorPlace place_of_whole(const ColumnPart& part, const mapper::Mapping& mapping,
                                   model::TensorId whole) {
  const auto found = std::find_if(
      part.exchanged.begin(), part.exchanged.end(),
      [&](const ColumnPart::Exchanged& exchanged) { return exchanged.whole == whole; });
  return mapper::place_of(*part.graph, mapping, found->here);
}

}  // namespace

CorePlan plan_heads(const hw::CoreSystem& system, std::shared_ptr<const model::Graph> graph,
                    std::size_t inferences) {
  CorePlan plan{system, Split::kHeads, graph, {}, {}};
  const std::size_t count = system.cores.size();
  const std::uint64_t memory = std::uint64_t{system.machine.dram.mib} << 20;
  const auto parts = column_parts(*graph, count);
  const auto only = [&](model::Tensor::Kind kind) {
    return only_tensor(*graph, kind, "input or output");
  };
  const model::TensorId input = only(model::Tensor::Kind::kInput);
  const model::TensorId output = only(model::Tensor::Kind::kOutput);
  Regions regions;
  Exchanges exchanges(plan, regions);
  std::vector<bool> has_input(count, false);
  std::vector<std::vector<std::size_t>> programs(parts.size());  // by segment: of its cores
  for (std::size_t segment = 0; segment < parts.size(); ++segment) {
    for (std::size_t core = 0; core < count; ++core) {
      if (!parts[segment][core]) continue;
      const ColumnPart& part = *parts[segment][core];
      const hw::Machine& machine = system.cores[core].machine;
      const mapper::Mapping mapping = mapper::map_graph(*part.graph, machine);
      mapper::Relocation to;
      for (const ColumnPart::Exchanged& exchanged : part.exchanged) {
        to.moved.push_back(exchanges.place(exchanged, part, mapping, core));
      }
      to.constants = to.tensors = regions.take(mapping.program_address);
      to.program = regions.end();
      auto moved =
          std::make_shared<mapper::Mapping>(mapper::relocated(mapping, to, machine, memory));
      regions.take(moved->dram_bytes - to.program);
      programs[segment].push_back(plan.programs.size());
      CoreProgram program{core, part.graph, moved, part.origins, {}, {}, 0};
      if (part.reads_input && !has_input[core]) {
        has_input[core] = true;
        program.input = place_of_whole(part, *moved, input);
      }
      if (!part.output.empty()) {
        // Rows of the columns that this core has.
        const std::size_t element = hw::bytes_of(graph->tensors[output].type);
        program.output = place_of_whole(part, *moved, output);
        program.output_col = part.output.front().begin;
        program.output->address += program.output_col * element;
        program.output->cols = part.output.back().end - program.output_col;
      }
      plan.programs.push_back(std::move(program));
    }
  }
  std::vector<std::size_t> before;
  for (std::size_t i = 0; i < inferences; ++i) {
    for (const std::vector<std::size_t>& segment : programs) {
      std::vector<std::size_t> now;
      for (const std::size_t program : segment) {
        now.push_back(plan.tasks.size());
        plan.tasks.push_back({i, program, before});
      }
      before = std::move(now);
    }
  }
  return plan;
}

}  // namespace systole::testbench
