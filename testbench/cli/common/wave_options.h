#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "testbench/cli/common/command.h"
#include "testbench/wave/wave.h"

/// Waveforms of commands.
namespace systole::testbench {

/// Adds --wave, --wave-from and --wave-to; returns the first.
CLI::Option* add_wave(CLI::App& command, WaveOptions& wave);

/// What write() of Wave makes.
void list_wave_files(const WaveOptions& wave, CommandFiles& files);

/// What the report says about a waveform that was cut short.
[[nodiscard]] std::pair<std::string, std::string> cut_wave_note(const WaveOptions& wave);

/// The same as a line.
[[nodiscard]] std::string cut_wave_text(const WaveOptions& wave);

}  // namespace systole::testbench
