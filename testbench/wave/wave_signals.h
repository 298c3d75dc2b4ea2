#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hw/program/program.h"

/// What a waveform of a system shows: every signal that the modules record, and how.
namespace systole::testbench {

/// Texts for the values of a signal.
enum class WaveText {
  kNone,
  kHost,
  kProcessor,
  kState,      ///< tlm_model::kWaveStates
  kClients,    ///< of a bank: sets of them
  kInitiator,  ///< of the bus
  kHalf,
  kInstruction,  ///< hw::dfx::Opcode
  kPhase,        ///< hw::dfx::Phase
  kOperator,
  kCommand,
};

/// How a viewer draws a signal.
enum class WaveShape {
  kBoxes,   ///< values one after another: texts if it has any, else numbers
  kLevel,   ///< a curve from 0 to its largest value
  kGrowth,  ///< a curve between the smallest and largest value in sight: the slope matters
};

struct WaveSignal {
  /// Below the top module. Each "*" stands for what differs among several such signals: after a
  /// letter for a number, else for any names.
  std::string path;
  std::string label;  ///< in its group; "*" stands for what it does in the path
  WaveShape shape;
  WaveText text;  ///< kNone: a number
  std::string meaning;
};

struct WaveGroup {
  std::string title;
  int colour;  ///< of GTKWave: 1 red, 2 orange, 3 yellow, 4 green, 5 blue, 6 indigo, 7 violet
  std::vector<WaveSignal> signals;
  bool folded = false;    ///< a view shows the title alone at first
  bool overview = false;  ///< states and operators are beside those of other cores, too
};

/// The label of a signal with this path below the top module; nothing: another one is meant.
[[nodiscard]] std::optional<std::string> label_of(const WaveSignal& signal,
                                                  const std::string& path);

/// Of all systems; a machine has a part of them.
[[nodiscard]] const std::vector<WaveGroup>& wave_groups();
/// How a signal with this path below the top module is shown, "core" being the name of a core;
/// null: it is not known.
[[nodiscard]] const WaveSignal* find_wave_signal(const std::string& path);

/// Every kind of text but kNone, and the end of the name of its table.
struct WaveTable {
  WaveText text;
  std::string suffix;         ///< ".host.txt"
  bool of_a_program = false;  ///< each core has its own
};
[[nodiscard]] const std::vector<WaveTable>& wave_tables();

/// A table in the form of GTKWave's translate filter files: lines of a decimal value, a space, and
/// "?colour?text". Operators and commands are those of `program`.
[[nodiscard]] std::string wave_table(WaveText text, const hw::Program& program,
                                     const std::vector<std::string>& initiators);

/// "matmul 16x64x48": opcode and shape, m x n x k or m x n.
[[nodiscard]] std::string describe(const hw::Command& command);

}  // namespace systole::testbench
