#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "hw/description/core_system.h"
#include "hw/machine/machine.h"
#include "testbench/rtl/drive/rtl_counts.h"
#include "testbench/rtl/drive/rtl_options.h"
#include "testbench/wave/fst_place.h"
#include "tlm/core/core.h"

/// The blocks that can run as Verilated RTL: those with a key in section `backend` of a machine.
namespace systole::testbench {

[[nodiscard]] std::vector<std::string> rtl_blocks();

/// The name of the whole core, which is none of these: testbench/run/core_on_bus.h runs it.
inline constexpr const char* kCoreInRtl = "core";

/// Those of the attention engines.
[[nodiscard]] std::vector<std::string> attention_blocks();

/// Those of cores for text generation.
[[nodiscard]] std::vector<std::string> generation_blocks();

/// Those that a machine has.
[[nodiscard]] std::vector<std::string> rtl_blocks(const hw::Machine& machine);

/// Whether that block of the machine is its RTL.
[[nodiscard]] bool runs_as_rtl(const hw::Machine& machine, const std::string& block);

/// Runs `block` as RTL. "all": every block that the machine has, except that a machine with
/// attention engines keeps the model of a block of which no RTL of its size is built. Throws
/// InputError for a name without a twin.
void swap_for_rtl(hw::Machine& machine, const std::string& block);

/// The engines of a machine, each block from where `machine.backend` says. Blocks in RTL count into
/// `report`, which must outlive the engines. `options.wave`, if set, is the stem of the names of
/// the FST files, one per block. Throws InputError for a block of which no RTL of this size is
/// built.
[[nodiscard]] tlm_model::Engines make_engines(const hw::Machine& machine, const RtlOptions& options,
                                              RtlReport& report);

/// The waveforms of blocks in RTL in that of the machine: below the scope "rtl" of "run.fst", on
/// the same time axis, with separate groups in the view "run.gtkw".
class RtlWaves {
 public:
  /// Without a waveform, or a block in RTL, there are none; `gates`: the whole core is one. Throws
  /// InputError if `wave` is no FST, or one cannot be written beside it. Construct it before the
  /// engines: it has to outlive them.
  RtlWaves(const std::string& wave, const hw::Machine& machine, bool gates = false);
  /// The same for several cores: those of each are below its name, at the edges of its clock. Each
  /// core of a ring is a core, "ring.core0".
  RtlWaves(const std::string& wave, const hw::CoreSystem& system);

  /// For make_engines(), of a core in a ring or a system.
  [[nodiscard]] RtlOptions options(std::size_t core = 0) const;
  /// After the end of the engines, and of the waveform of the machine: adds to that. Throws
  /// InputError if that fails.
  void write();

 private:
  struct Wave {
    Wave(std::size_t of_core, const std::string& of_block, const std::string& full_name,
         const std::string& path)
        : core(of_core), block(of_block), name(full_name), file(path) {}

    std::size_t core;
    std::string block;
    std::string name;  ///< of the block among all of the machine
    FstPlace file;     ///< never put in place
  };
  /// The blocks of one core; `name`: before theirs, or empty.
  void add(const std::string& name, const hw::Machine& machine);
  void add_block(const std::string& name, const std::string& block);

  const std::string path_;
  std::vector<std::shared_ptr<SystemTime>> times_;  ///< by core
  std::deque<Wave> waves_;
};

}  // namespace systole::testbench
