#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/program/program.h"
#include "mapper/program_file.h"
#include "testbench/common/child_process.h"
#include "testbench/common/progress.h"
#include "testbench/rtl/core/core_ports.h"

/// The core in RTL in the place of the model's: behind AXI4 bridges, on the bus of its machine,
/// with its DRAM and its host.
namespace systole::testbench {

/// A program in memory, and where its values are.
struct GatesProgram {
  const hw::Program& program;
  std::uint64_t address;  ///< of its header
  const hw::MemoryImage& image;
  mapper::TensorPlace input, output;
  /// Of the first inference, or null: CorePorts::expect().
  const std::vector<CoreCommandTimes>* expected = nullptr;
};

/// What the gates did.
struct GatesRun {
  std::vector<CoreCommandTimes> commands;  ///< of the first inference; cycle 0 starts the program
  std::uint64_t cycles = 0;                ///< of the RTL's clock, all inferences
  std::vector<std::vector<std::uint8_t>> outputs;  ///< per inference
  std::vector<std::uint64_t> counted;              ///< register CYCLES, per inference
  double wall_seconds = 0.0;
  std::uint64_t began = 0;  ///< cycle of the system in which the first inference started
  bool differs = false;     ///< from what was expected; the run stops there
  CommandDifference difference;
  bool failed = false;  ///< an assertion has fired, or a response was an error
  bool wave_is_cut_short = false;
};

/// One core, its host, bus and memory. The SystemC kernel must be fresh.
class CoreOnBus {
 public:
  /// `core` and `program` must outlive this.
  CoreOnBus(const hw::Machine& machine, CorePorts& core, const GatesProgram& program);
  ~CoreOnBus();

  /// Runs one inference per input; at most one call. Throws std::invalid_argument if the core stops
  /// at a command, std::runtime_error if it hangs.
  [[nodiscard]] GatesRun run(const std::vector<std::vector<std::uint8_t>>& inputs);

 private:
  struct Modules;

  /// Of the first inference.
  void take_first(const CoreRun& run, GatesRun& result) const;

  const hw::Machine machine_;
  CorePorts& core_;
  const GatesProgram& program_;
  std::unique_ptr<Modules> modules_;
};

/// Throws InputError, which names --rtl core, if the gates are not those of the machine, or cannot
/// run the program. `options.own` may name a user's gates, as for make_core_ports().
void require_gates(const hw::Machine& machine, const hw::Program& program,
                   const RtlOptions& options = {});

/// Runs one inference per input. The SystemC kernel must be fresh.
[[nodiscard]] GatesRun run_gates(const hw::Machine& machine, CorePorts& core,
                                 const GatesProgram& program,
                                 const std::vector<std::vector<std::uint8_t>>& inputs);

/// The same in another process, beside what this one does.
class GatesBeside {
 public:
  GatesBeside(const hw::Machine& machine, const GatesProgram& program,
              const std::vector<std::vector<std::uint8_t>>& inputs, const RtlOptions& options);
  /// Waits for the end, and says how long that takes; at most one call. Throws as
  /// ChildProcess::result().
  [[nodiscard]] GatesRun result();

 private:
  StatusLine line_;
  ChildProcess process_;
};

}  // namespace systole::testbench
