#include "testbench/cores/head_split.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/round.h"
#include "mapper/relocation.h"
#include "mapper/step_mapper.h"
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

/// Programs of one graph, or of each step of a graph that moves.
class HeadPlanner {
 public:
  HeadPlanner(const hw::CoreSystem& system, std::shared_ptr<const model::Graph> graph,
              MoveGraph move)
      : plan_{system, Split::kHeads, std::move(graph), {}, {}, std::move(move)},
        input_(input_tensor(*plan_.graph)),
        output_(output_tensor(*plan_.graph)),
        exchanges_(plan_, regions_) {}

  CorePlan plan(std::size_t inferences) {
    if (plan_.move) {
      plan_.move(inferences - 1);  // the largest views decide where things are
      for (const auto& segment : column_parts(*plan_.graph, cores())) make_mappers(segment);
    }
    for (std::size_t i = 0; i < inferences; ++i) {
      if (i == 0 || plan_.move) add_programs(i);
      add_tasks(i);
    }
    if (plan_.move) plan_.move(0);
    return std::move(plan_);
  }

 private:
  using Segment = std::vector<std::unique_ptr<ColumnPart>>;  ///< by core
  /// Of a part of a graph that moves: what maps its steps, and where its constants are.
  struct Stepped {
    std::unique_ptr<mapper::StepMapper> mapper;
    std::optional<std::uint64_t> base;
  };

  [[nodiscard]] std::size_t cores() const { return plan_.system.cores.size(); }

  void make_mappers(const Segment& segment) {
    std::vector<Stepped>& mappers = stepped_.emplace_back(cores());
    for (std::size_t core = 0; core < cores(); ++core) {
      if (!segment[core]) continue;
      mappers[core].mapper = std::make_unique<mapper::StepMapper>(
          *segment[core]->graph, hw::mapped_machine(plan_.system, core), mapper::RowGaps::kNone);
    }
  }

  void add_programs(std::size_t inference) {
    if (plan_.move) plan_.move(inference);
    const auto parts = column_parts(*plan_.graph, cores());
    programs_.assign(parts.size(), {});
    has_input_.assign(cores(), false);
    for (std::size_t segment = 0; segment < parts.size(); ++segment) {
      for (std::size_t core = 0; core < cores(); ++core) {
        if (parts[segment][core]) add_program(*parts[segment][core], segment, core, inference == 0);
      }
    }
  }

  void add_program(ColumnPart& part, std::size_t segment, std::size_t core, bool is_first) {
    const mapper::Mapping mapping =
        plan_.move ? stepped_[segment][core].mapper->map(*part.graph, is_first)
                   : mapper::map_graph(*part.graph, hw::mapped_machine(plan_.system, core),
                                       mapper::RowGaps::kNone);
    mapper::Relocation to;
    for (const ColumnPart::Exchanged& exchanged : part.exchanged) {
      to.moved.push_back(exchanges_.place(exchanged, part, mapping, core));
    }
    std::optional<std::uint64_t> unmoved;
    std::optional<std::uint64_t>& base = plan_.move ? stepped_[segment][core].base : unmoved;
    if (!base) base = regions_.take(mapping.program_address);
    to.constants = to.tensors = *base;
    to.program = regions_.end();
    auto moved = std::make_shared<mapper::Mapping>(mapper::relocated(
        mapping, to, plan_.system.cores[core].machine, hw::memory_of_tiles(plan_.system)));
    regions_.take(moved->dram_bytes - to.program);
    if (plan_.move) drop_constants(*part.graph);
    programs_[segment].push_back(plan_.programs.size());
    CoreProgram program{core, part.graph, moved, part.origins, {}, {}, 0};
    if (part.reads_input && !has_input_[core]) {
      has_input_[core] = true;
      program.input = place_of_whole(part, *moved, input_);
    }
    if (!part.output.empty()) {
      // Rows of the columns that this core has.
      const std::size_t element = hw::bytes_of(plan_.graph->tensors[output_].type);
      program.output = place_of_whole(part, *moved, output_);
      program.output_col = part.output.front().begin;
      program.output->address += program.output_col * element;
      program.output->cols = part.output.back().end - program.output_col;
    }
    plan_.programs.push_back(std::move(program));
  }

  /// They are in the image; of each step there would be a copy.
  static void drop_constants(model::Graph& graph) {
    for (model::Tensor& tensor : graph.tensors) {
      if (tensor.kind != model::Tensor::Kind::kConstant) continue;
      tensor.data = {};
      tensor.groups = {};
    }
  }

  void add_tasks(std::size_t inference) {
    for (const std::vector<std::size_t>& segment : programs_) {
      std::vector<std::size_t> now;
      for (const std::size_t program : segment) {
        now.push_back(plan_.tasks.size());
        plan_.tasks.push_back({inference, program, before_});
      }
      before_ = std::move(now);
    }
  }

  CorePlan plan_;
  const model::TensorId input_, output_;
  Regions regions_;
  Exchanges exchanges_;
  std::vector<std::vector<Stepped>> stepped_;       ///< by segment and core
  std::vector<std::vector<std::size_t>> programs_;  ///< by segment: of its cores
  std::vector<bool> has_input_;                     ///< by core: one of its programs has it
  std::vector<std::size_t> before_;                 ///< tasks of the last segment
};

}  // namespace

CorePlan plan_heads(const hw::CoreSystem& system, std::shared_ptr<const model::Graph> graph,
                    std::size_t inferences, MoveGraph move) {
  return HeadPlanner(system, std::move(graph), std::move(move)).plan(inferences);
}

}  // namespace systole::testbench
