#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "hw/program/program.h"
#include "testbench/wave/wave_recorder.h"
#include "testbench/wave/wave_signals.h"
#include "tlm/common/observer.h"
#include "tlm/common/signals.h"

namespace systole::testbench {

struct WaveOptions {
  std::string path;              ///< ends in ".fst" or ".vcd"; empty: no recording
  std::uint64_t inferences = 1;  ///< recorded from the beginning of the window on; 0: all
  std::uint64_t from_cycle = 0;  ///< the window, in core cycles since the simulation began
  std::uint64_t to_cycle = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t max_bytes = std::uint64_t{256} << 20;  ///< of the file; recording ends there
};

/// A core that a waveform shows.
struct WaveCore {
  std::string name;                      ///< of its module; its host is NAME_host
  const hw::Program* program = nullptr;  ///< outlives the waveform; null: of a core in a ring
};

/// Records what the modules of a simulation show, with a view for GTKWave beside it. Of
/// "run.fst" it makes "run.gtkw", and the tables "run.states.txt", "run.operators.txt" and so on
/// that turn numbers into names there, those that the machine needs. What is recorded is described
/// in docs/waveforms.md.
///
/// Construct it after the modules and before sc_start(): every module that overrides
/// sc_object::trace() adds its own signals. Recording changes nothing in the simulation.
class Wave {
 public:
  /// Throws InputError if the path has another ending, if one of the files cannot be written,
  /// or if the window is empty.
  Wave(const WaveOptions& options, const hw::Program& program, std::uint32_t core_mhz);
  /// Of several cores: each has groups of signals, and tables "run.NAME.operators.txt" and so on of
  /// its program. The window is in cycles of `core_mhz`.
  Wave(const WaveOptions& options, std::vector<WaveCore> cores, std::uint32_t core_mhz);
  Wave(const Wave&) = delete;
  Wave& operator=(const Wave&) = delete;

  /// The view opens on the first operator of these commands, in cycles of `clock_mhz`, if it is
  /// recorded; else on the first inference, whose texts would not fit into their boxes.
  void open_on_first_operator(const std::vector<tlm_model::CommandTrace>& traces,
                              std::uint32_t clock_mhz);
  /// An inference has ended at the present time.
  void end_inference();
  /// Ends the recording and puts all files in place; without it there are none. Throws InputError
  /// if that fails.
  void write();

  /// The recording ended early because the file had reached its limit.
  [[nodiscard]] bool is_cut_short() const noexcept { return recorder_->is_full(); }
  /// Everything that write() makes for a waveform `wave`, itself first; `cores`: names of several.
  [[nodiscard]] static std::vector<std::string> files(const std::string& wave,
                                                      const std::vector<std::string>& cores = {});

 private:
  /// The tables that the recorded signals need.
  void add_tables();
  void add_modules(const std::vector<sc_core::sc_object*>& objects);

  const WaveOptions options_;
  const std::vector<WaveCore> cores_;
  const std::string stem_;
  const WaveRecorder::Limits limits_;
  std::vector<tlm_model::Sampled*> sampled_;
  std::vector<tlm_model::Watched*> watched_;
  std::unique_ptr<WaveRecorder> recorder_;
  hw::AtomicFile view_;
  struct Table {
    WaveText text;
    std::string path;
    std::unique_ptr<hw::AtomicFile> file;
    std::size_t core;  ///< the first whose it is
  };
  std::vector<Table> tables_;
  std::uint64_t inferences_ = 0;
  std::uint64_t open_from_ps_ = 0, open_to_ps_ = 0;
  std::uint64_t first_end_ps_ = 0;  ///< of the first recorded inference; 0: none has ended
};

}  // namespace systole::testbench
