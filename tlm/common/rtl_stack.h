#pragma once

namespace systole::tlm_model {

/// Bytes of stack of a thread in which Verilated RTL may run: a function of 64 lanes, or of a
/// waveform's signals, has all of them in its frame. Memory is used as far as it is touched.
inline constexpr int kRtlStackBytes = 4 << 20;

}  // namespace systole::tlm_model
