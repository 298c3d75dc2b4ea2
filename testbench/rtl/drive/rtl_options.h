#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>

/// What the testbenches of the Verilated blocks have in common.
namespace systole::testbench {

class ModelView;
class SystemTime;
struct OwnBlock;

/// What a waveform of a long run records.
struct RtlWindow {
  std::uint64_t from_cycle = 0;  ///< of the system
  std::uint64_t to_cycle = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t max_bytes = std::numeric_limits<std::uint64_t>::max();  ///< of the file
};

struct RtlOptions {
  bool checked = false;    ///< assertions on, registers start at random
  std::string wave;        ///< FST file to write, "" for none; implies `checked`
  std::uint64_t seed = 1;  ///< of the random initial state
  std::shared_ptr<ModelView> view =
      nullptr;  ///< signals of the model beside those of the RTL, or null

  /// Of a system whose time the waveforms have, or null: theirs begins at 0, at 1 GHz.
  std::shared_ptr<SystemTime> time = nullptr;

  /// Of the core, whose operation is a whole program.
  RtlWindow window = {};

  /// Options of one of several blocks, with a view of `outputs` words if it writes a waveform.
  [[nodiscard]] RtlOptions for_block(const std::string& block, std::size_t outputs) const;
  /// Of several blocks: where the waveform of each is written, if not by the stem `wave`.
  std::map<std::string, std::string> places = {};

  /// Blocks that are users' own RTL: see OwnBlock.
  std::map<std::string, const OwnBlock*> own = {};

  /// Name of the waveform of one of several blocks: `wave` is then the stem. "" for none.
  [[nodiscard]] std::string wave_of(const std::string& block) const;
  [[nodiscard]] bool use_checked() const { return checked || !wave.empty(); }
};

/// How often, in 1/1000 of the cycles, the testbench withholds an input beat or refuses an output.
struct BackPressure {
  unsigned input_per_mille = 0;
  unsigned output_per_mille = 0;
  std::uint64_t seed = 1;
};

/// Length of one operation, from the first cycle with valid_i to the last output handshake.
struct RtlCycles {
  std::uint64_t cycles = 0;
  std::uint64_t stalled = 0;  ///< of these, cycles in which the testbench held the unit up
};

}  // namespace systole::testbench
