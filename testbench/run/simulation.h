#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hw/energy.h"
#include "hw/machine/machine.h"
#include "mapper/mapping.h"
#include "mapper/program_file.h"
#include "model/graph/graph.h"
#include "testbench/common/progress.h"
#include "testbench/run/class_cycles.h"
#include "testbench/run/machine_run.h"
#include "testbench/wave/wave.h"
#include "tlm/common/observer.h"
#include "tlm/core/core.h"
#include "tlm/system.h"

namespace systole::testbench {

struct SimulationOptions {
  bool functional = true;  ///< off: cycles without values, and no outputs
  bool check = false;      ///< compare every operator's result with the reference
  unsigned threads = 1;  ///< with 2, values are computed beside their timing; results are the same
  /// Tensors of the graph that are kept as commands leave them in memory; with values only.
  std::vector<model::TensorId> tensors;
  /// Off: SimulationResult::outputs has those of the last inference alone, so that memory does not
  /// grow with their number.
  bool keep_outputs = true;
  bool bounds = true;            ///< off: no lower bound of any inference, which takes host time
  bool keep_traces = true;       ///< off: no SimulationResult::traces
  WaveOptions wave;              ///< waveform to write; no path: none
  tlm_model::Observer observer;  ///< may be empty
  std::vector<tlm_model::BusObserver> bus_observers;
  /// After so many inferences SimulationResult::first_events are taken; 0: never.
  std::size_t first_inferences = 0;
  /// The program of each inference, if it is not always the same: moves the graph to it and
  /// returns its mapping, which must live until the next call. The first is that given to
  /// simulate(), which need not live longer than until then.
  std::function<const mapper::Mapping&(std::size_t inference)> next_step;
  /// Of the inference that next_step is called for afterwards: the first byte, and the one after
  /// the last, of memory that it and those after it do not read. May be empty.
  std::function<std::pair<std::uint64_t, std::uint64_t>(std::size_t inference)> unread;
  /// The image of what next_step returned, which goes piece by piece as memory takes it; that of
  /// the mapping given to simulate() is not read then. Empty: images stay in their mappings.
  std::function<hw::MemoryImage()> take_image;
  /// The bytes of the input of each inference from the outputs that are kept of those before it, in
  /// the place of those given to simulate(), of which there are as many at most; nothing ends the
  /// run.
  std::function<std::optional<std::vector<std::uint8_t>>(
      const std::vector<std::vector<std::uint8_t>>& outputs)>
      next_input;
  std::function<void(const SimulationProgress&)> progress;  ///< after each command
};

/// How memory contents compared with the reference.
struct CheckResult {
  std::uint64_t operators = 0;
  std::uint64_t bytes = 0;
  std::uint64_t mismatches = 0;
  std::string first;  ///< where the first mismatch is and what was found there

  /// Both together; `first` is that of the one before.
  void add(const CheckResult& other);
};

struct SimulationResult : MachineRun {
  std::vector<std::uint64_t> cycles;  ///< per inference, start to interrupt
  std::vector<double> bounds;         ///< per inference: cycles of its lower bound
  /// Per inference: the graph's output tensor; empty without values.
  std::vector<std::vector<std::uint8_t>> outputs;
  /// By tensor of SimulationOptions::tensors and inference: rows one after another, 0 where no
  /// command writes.
  std::vector<std::vector<std::vector<std::uint8_t>>> tensors;
  std::uint64_t total_cycles = 0;  ///< of core time, host included
  CheckResult check;
  bool wave_is_cut_short = false;      ///< the waveform reached its size limit
  tlm_model::System::Traffic traffic;  ///< of the core, in all inferences
  hw::EnergyEvents events, first_events;
  /// Of the first inference, by position in the program, without kEnd's.
  std::vector<tlm_model::CommandTrace> traces;
  std::uint64_t started = 0,
                finished = 0;  ///< of the first inference: the core's first and last cycle
  ClassCycles classes;         ///< of the first inference
  std::uint64_t commands = 0;
};

/// Runs one inference per input on the machine. `inputs[i]` are the bytes of the graph's input
/// tensor. One simulation per process: the SystemC kernel elaborates only once.
/// Throws InputError if the machine or the inputs do not fit the graph.
[[nodiscard]] SimulationResult simulate(const model::Graph& graph, const mapper::Mapping& mapping,
                                        const hw::Machine& machine, tlm_model::Engines engines,
                                        const std::vector<std::vector<std::uint8_t>>& inputs,
                                        const SimulationOptions& options);

/// The same for a program from a file, on its own machine: no reference to check with, no bound.
[[nodiscard]] SimulationResult simulate(const mapper::LoadableProgram& loaded,
                                        tlm_model::Engines engines,
                                        const std::vector<std::vector<std::uint8_t>>& inputs,
                                        const SimulationOptions& options);

}  // namespace systole::testbench
