#pragma once

#include <deque>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/signal_cleanup.h"
#include "hw/machine/machine.h"
#include "testbench/rtl/drive/rtl_counts.h"
#include "testbench/rtl/drive/rtl_options.h"
#include "tlm/core/core.h"

/// The blocks that can run as Verilated RTL: those with a key in section `backend` of a machine.
namespace systole::testbench {

[[nodiscard]] std::vector<std::string> rtl_blocks();

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

/// The FST files of blocks in RTL, beside the waveform of the machine: of "run.vcd" it makes
/// "run.softmax_unit.fst" and its view "run.softmax_unit.gtkw" for each of them. They appear whole
/// or not at all.
class RtlWaves {
 public:
  /// Without a waveform there are none. Throws InputError if one cannot be written. Construct it
  /// before the engines: it has to outlive them.
  RtlWaves(const std::string& vcd, const hw::Machine& machine);
  ~RtlWaves();
  RtlWaves(const RtlWaves&) = delete;
  RtlWaves& operator=(const RtlWaves&) = delete;

  /// For make_engines().
  [[nodiscard]] RtlOptions options() const;
  /// After the end of the engines: puts the files in place. Throws InputError if that fails.
  void write();

  /// Everything that write() makes if `block` is in RTL.
  [[nodiscard]] static std::vector<std::string> files(const std::string& vcd,
                                                      const std::string& block);

 private:
  struct Wave {
    Wave(std::string block, const std::string& path);

    std::string block, path;
    hw::AtomicFile file;
    std::string place;      ///< where the FST is written
    std::string hierarchy;  ///< a file of its writer, beside it until it is closed
    hw::RememberedFile remembered_hierarchy;
  };
  std::deque<Wave> waves_;
};

}  // namespace systole::testbench
