#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hw/description/core_system.h"
#include "hw/program/program.h"
#include "testbench/cores/core_plan.h"
#include "testbench/generation/generation.h"
#include "testbench/run/simulation.h"
#include "tlm/bus/bus_core.h"
#include "tlm/common/observer.h"

namespace systole::testbench {

/// Cycles of a core's critical paths by what they were spent on, all its tasks together.
struct PathShare {
  std::string unit, cause, meaning;  ///< as of PathCause
  std::uint64_t together = 0;        ///< while the other cores ran
  std::uint64_t alone = 0;           ///< the same tasks while no other core did anything
};

/// The way of a core's requests through bus and memory, in bus cycles, all of them together.
struct RequestTimes {
  std::uint64_t requests = 0, bytes = 0;
  /// Of the requests: reads of the page table, and those of programs. How many there are depends on
  /// when things happen: load and store unit share a TLB, and which chains are at hand depends on
  /// what has completed. All others follow from the programs alone.
  std::uint64_t walks = 0, fetches = 0;
  std::uint64_t request_wait = 0;  ///< for the request channel
  std::uint64_t data_wait = 0;     ///< for a data channel, or that of write responses
  std::uint64_t target_time = 0;   ///< in the L2 cache or the DRAM, waiting there included

  [[nodiscard]] std::uint64_t transfers() const { return requests - walks - fetches; }
  /// All of an initiator, which are neither walks nor fetches until it is said.
  void add(const tlm_model::BusCore::Initiator& of) {
    requests += of.reads + of.writes;
    bytes += of.read_bytes + of.written_bytes;
    request_wait += of.request_wait;
    data_wait += of.data_wait;
    target_time += of.target_time;
  }
};

/// What one core did in a run of several. Cycles are of its own clock.
struct CoreShare {
  std::string name;
  std::uint64_t tasks = 0;
  std::uint64_t running = 0;  ///< from starts to interrupts
  std::uint64_t alone = 0;    ///< of `running`: what the same tasks take while no other core runs
  std::uint64_t wait = 0;     ///< its next task needs results of another core
  std::uint64_t done = 0;     ///< no task was left for it
  std::uint64_t host = 0;     ///< the rest: its host writes inputs, starts it, reads results
  std::uint64_t total = 0;    ///< of the simulation: running + wait + done + host
  std::uint64_t macs = 0;
  std::vector<PathShare> path;  ///< together they are `running` and `alone`; most lost first
  RequestTimes together_requests, alone_requests;
  tlm_model::CoreTraffic traffic;

  /// Cycles that it took longer because others used bus and memory. May be negative: their accesses
  /// can leave rows open that it needs, or bring lines into a cache.
  [[nodiscard]] std::int64_t lost() const {
    return static_cast<std::int64_t>(running) - static_cast<std::int64_t>(alone);
  }
};

/// The first task that a core ran, as SimulationResult has that of one core.
struct FirstTask {
  const hw::Program* program = nullptr;  ///< of the plan; none: it had no task
  std::vector<tlm_model::CommandTrace> traces;
  std::vector<hw::BlockReport> accounts;  ///< of the core's blocks, for their names
  std::uint64_t started = 0, finished = 0;
};

/// A ring beside the cores of a plan, in what the plan leaves of the memory.
struct RingPart {
  const hw::CoreSite* site = nullptr;
  std::vector<std::uint64_t> ddr;  ///< by core, see hw::ring_ddr()
  GenerationTask task;             ///< what it generates; its waveform is that of the system
  /// Where the waveforms of the blocks in RTL of its cores go; empty: nowhere.
  std::function<RtlOptions(std::uint32_t core)> rtl;
};

/// The base has cycles per inference of the first core's clock, from its first start to its last
/// interrupt. Traces are of the first core's first task.
struct CoresResult : SimulationResult {
  std::vector<CoreShare> cores;  ///< of the plan, then the ring
  std::optional<Generation> ring;
  CheckResult ring_check;                     ///< its logits, with those of the ring alone
  std::vector<FirstTask> first_tasks;         ///< by core of the plan
  std::vector<hw::EnergyEvents> core_events;  ///< by core: of `events`, what happens in it
  double seconds = 0.0;                       ///< simulated time of all inferences
};

struct CoresOptions {
  bool functional = true;
  bool check = false;
  unsigned threads = 1;  ///< as of SimulationOptions, without a ring
  bool alone = true;     ///< simulate each core alone too, in processes beside this one
  /// What a core computes with, in a run with values; empty: models. Runs of cores alone have
  /// models, which take the same cycles.
  std::function<tlm_model::Engines(std::size_t core)> engines;
  const RingPart* ring = nullptr;  ///< null: there is none; else it outlives the run
  /// Tensors of the whole graph that are kept as commands leave them in memory; with values only.
  std::vector<model::TensorId> tensors;
  WaveOptions wave;
  std::vector<tlm_model::BusObserver> bus_observers;
  /// What each core runs from now on.
  std::function<void(std::size_t core, const hw::Program& program, std::size_t inference)> on_task;
  std::function<void(std::size_t core, const tlm_model::CommandTrace& trace)> observer;
  std::function<void(const SimulationProgress&)> progress;
};

/// Runs the plan: one input per inference, bytes of the network's input tensor. One simulation per
/// process; those of cores alone are in separate processes. Throws InputError if inputs do not
/// fit.
[[nodiscard]] CoresResult simulate(const CorePlan& plan,
                                   const std::vector<std::vector<std::uint8_t>>& inputs,
                                   const CoresOptions& options);

}  // namespace systole::testbench
