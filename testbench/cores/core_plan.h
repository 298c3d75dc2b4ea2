#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/description/core_system.h"
#include "hw/program/program.h"
#include "mapper/mapping.h"
#include "mapper/program_file.h"
#include "model/graph/graph.h"
#include "testbench/run/tensor_origin.h"

namespace systole::testbench {

/// How several cores share a run of inferences.
enum class Split : std::uint8_t {
  kBatch,   ///< each inference is one core's: the next for whoever is free
  kLayers,  ///< each core has some of the layers: a pipeline of inferences
  kHeads,   ///< each core has some of the heads and columns of every layer
};
/// "batch", "layers", "heads".
[[nodiscard]] std::string_view name_of(Split split);
inline constexpr std::size_t kSplits = 3;

/// A program of one of the cores, for all of the network or for a part of it.
struct CoreProgram {
  std::size_t core = 0;
  std::shared_ptr<const model::Graph> graph;  ///< what it computes
  std::shared_ptr<const mapper::Mapping> mapping;
  /// In the whole network's graph, by tensor of `graph`; empty: it is the same graph.
  std::vector<TensorOrigin> origins;
  std::optional<mapper::TensorPlace> input;   ///< that the host writes before it
  std::optional<mapper::TensorPlace> output;  ///< that the host reads after it, or columns of it
  std::uint32_t output_col = 0;               ///< the first of these
};

/// Moves a graph to an inference, from 0, whose views differ from those of the others.
using MoveGraph = std::function<void(std::size_t inference)>;

/// One run of a program.
struct CoreTask {
  std::size_t inference = 0;
  std::optional<std::size_t> program;  ///< none: that of whichever core takes it
  std::vector<std::size_t> after;      ///< tasks that have to be done before it begins
};

/// Who runs what, where in the memory that all share.
struct CorePlan {
  hw::CoreSystem system;
  Split split = Split::kBatch;
  std::shared_ptr<const model::Graph> graph;  ///< of the whole network
  std::vector<CoreProgram> programs;
  std::vector<CoreTask> tasks;  ///< a core takes its own in this order
  MoveGraph move;               ///< of `graph`; empty: it is the same for all inferences
};

/// The programs of a core as one, for the texts of a waveform: operators and commands of one after
/// those of the other.
class ShownPrograms {
 public:
  /// Those of core `core` in the plan.
  ShownPrograms(const CorePlan& plan, std::size_t core);

  /// Where a program begins in program().
  struct Place {
    std::uint32_t op = 0, command = 0;
  };
  /// `index`: in the plan, of a program of this core.
  [[nodiscard]] const Place& place(std::size_t index) const { return places_.at(index); }
  [[nodiscard]] const hw::Program& program() const { return program_; }

 private:
  hw::Program program_;
  std::map<std::size_t, Place> places_;  ///< by program of the plan
};

/// A network as one core of the system runs it alone.
struct CoreSubject {
  std::shared_ptr<const model::Graph> graph;
  std::shared_ptr<const mapper::Mapping> mapping;
};

/// Data parallel: each core has a program for the whole network. `subjects` by core; cores with
/// equal keys have the same one, and share its constants in memory. Throws InputError if memory
/// does not hold them all.
[[nodiscard]] CorePlan plan_batch(const hw::CoreSystem& system,
                                  const std::vector<CoreSubject>& subjects, std::size_t inferences);

/// Throws InputError unless the cores compute the same bits: equal keys of the datapath, and
/// equal work for the host.
void require_equal_results(const hw::CoreSystem& system);

}  // namespace systole::testbench
