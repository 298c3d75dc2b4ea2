#include "testbench/cli/common/wave_options.h"

#include <fmt/format.h>

namespace systole::testbench {

CLI::Option* add_wave(CLI::App& command, WaveOptions& wave) {
  CLI::Option* const path =
      command.add_option("--wave", wave.path, "write a waveform (.fst, .vcd) and a GTKWave view");
  path->type_name("FILE.fst");
  command.add_option("--wave-from", wave.from_cycle, "first recorded core cycle")
      ->type_name("CYCLE")
      ->needs(path);
  command.add_option("--wave-to", wave.to_cycle, "end of the recording")
      ->type_name("CYCLE")
      ->needs(path);
  return path;
}

void list_wave_files(const WaveOptions& wave, CommandFiles& files) {
  if (wave.path.empty()) return;
  for (const std::string& path : Wave::files(wave.path)) files.writes("--wave", path);
}

std::pair<std::string, std::string> cut_wave_note(const WaveOptions& wave) {
  return {"waveform",
          fmt::format("ends at its limit of {} MiB, see --wave-from", wave.max_bytes >> 20)};
}

std::string cut_wave_text(const WaveOptions& wave) {
  const auto [name, text] = cut_wave_note(wave);
  return fmt::format("{:<12} {}\n", name, text);
}

}  // namespace systole::testbench
