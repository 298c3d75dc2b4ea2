#include "testbench/run/rtl_waves.h"

#include <unistd.h>

#include <filesystem>
#include <utility>

#include "hw/description/machine_keys.h"
#include "testbench/rtl/drive/rtl_view.h"
#include "testbench/run/rtl_blocks.h"

namespace systole::testbench {
namespace {

RtlOptions by_stem(const std::string& vcd) {
  RtlOptions options;
  options.wave = std::filesystem::path(vcd).replace_extension().string();
  return options;
}

}  // namespace

RtlWaves::Wave::Wave(std::string name, const std::string& fst)
    : block(std::move(name)),
      path(fst),
      file(fst),
      place(file.place_to_write()),
      hierarchy(place + ".hier"),
      remembered_hierarchy(hierarchy) {}

RtlWaves::RtlWaves(const std::string& vcd, const hw::Machine& machine) {
  if (vcd.empty()) return;
  for (const std::string& block : rtl_blocks(machine)) {
    if (!runs_as_rtl(machine, block)) continue;
    waves_.emplace_back(block, by_stem(vcd).wave_of(block));
  }
}

RtlWaves::~RtlWaves() {
  for (const Wave& wave : waves_) ::unlink(wave.hierarchy.c_str());
}

RtlOptions RtlWaves::options() const {
  RtlOptions options;
  for (const Wave& wave : waves_) options.places[wave.block] = wave.place;
  return options;
}

void RtlWaves::write() {
  for (Wave& wave : waves_) {
    wave.file.commit();
    write_rtl_view(wave.path, wave.block);
  }
}

std::vector<std::string> RtlWaves::files(const std::string& vcd, const std::string& block) {
  const std::string wave = by_stem(vcd).wave_of(block);
  return {wave, rtl_view_path(wave)};
}

}  // namespace systole::testbench
