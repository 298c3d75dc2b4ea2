#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/signal_cleanup.h"
#include "hw/machine/machine.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

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
