#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "testbench/wave/wave_file.h"
#include "testbench/wave/wave_signals.h"

namespace systole::testbench {

/// What a GTKWave view says besides the signals.
struct GtkwView {
  std::string wave;                      ///< absolute path of the waveform
  std::string self;                      ///< absolute path of the view
  std::uint64_t from_ps = 0, to_ps = 0;  ///< the stretch that fills the window
  struct Core {
    std::string name;                        ///< empty: there is one, "core"
    std::map<WaveText, std::string> tables;  ///< absolute paths of the translate filter files
  };
  std::vector<Core> cores;  ///< at least one
};

/// The path of a signal below the top module.
[[nodiscard]] std::string path_below_top(const std::string& name);
/// What the signal of a core at this path would be called if the core were the only one; `path`
/// itself if it is not of that core.
[[nodiscard]] std::string path_of_only_core(const std::string& core, const std::string& path);

/// A save file for GTKWave: the groups of wave_groups() with those of `signals` that they name, of
/// a core and its host once for each core, and a group for the others. Signals are known by their
/// path below the top module.
[[nodiscard]] std::string gtkw_text(const GtkwView& view,
                                    const std::vector<RecordedSignal>& signals);

}  // namespace systole::testbench
