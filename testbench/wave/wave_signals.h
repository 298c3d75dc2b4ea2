#pragma once

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
  kUnit,
  kHalf,
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
  std::string path;   ///< below the top module
  std::string label;  ///< in its group
  WaveShape shape;
  WaveText text;  ///< kNone: a number
  std::string meaning;
};

struct WaveGroup {
  std::string title;
  int colour;  ///< of GTKWave: 1 red, 2 orange, 3 yellow, 4 green, 5 blue, 6 indigo, 7 violet
  std::vector<WaveSignal> signals;
};

[[nodiscard]] const std::vector<WaveGroup>& wave_groups();

/// Every kind of text but kNone, and the end of the name of its table.
struct WaveTable {
  WaveText text;
  std::string suffix;  ///< ".host.txt"
};
[[nodiscard]] const std::vector<WaveTable>& wave_tables();

/// A table in the form of GTKWave's translate filter files: lines of a decimal value, a space, and
/// "?colour?text". Operators and commands are those of `program`.
[[nodiscard]] std::string wave_table(WaveText text, const hw::Program& program);

/// "matmul 16x64x48": opcode and shape, m x n x k or m x n.
[[nodiscard]] std::string describe(const hw::Command& command);

}  // namespace systole::testbench
