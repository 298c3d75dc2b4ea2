#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// GTKWave views of the waveforms of blocks in RTL.
namespace systole::testbench {

struct FstSignal {
  std::string scope;  ///< "dut.systole_softmax_unit"
  std::string name;   ///< as in the file, "data_o [511:0]"
  std::uint32_t bits;
  bool is_port;
};

/// The signals of an FST file. Throws InputError if it cannot be read.
[[nodiscard]] std::vector<FstSignal> read_fst_signals(const std::string& path);

/// Path of the view of an FST file: the same with the ending .gtkw.
[[nodiscard]] std::string rtl_view_path(const std::string& wave);

/// The groups of a GTKWave view for a block with these signals, whose hierarchy is below the dotted
/// path `scope` of the waveform: ports of the RTL, outputs of RTL and model lane by lane side by
/// side, and what is inside the block. `block` is in their titles.
[[nodiscard]] std::string rtl_view_groups(const std::vector<FstSignal>& signals,
                                          const std::string& block, const std::string& scope);

/// Writes the view of a block's waveform beside it. Throws InputError if that fails.
void write_rtl_view(const std::string& wave, const std::string& block);

}  // namespace systole::testbench
