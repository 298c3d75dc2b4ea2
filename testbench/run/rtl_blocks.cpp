#include "testbench/run/rtl_blocks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "hw/description/machine_keys.h"
#include "testbench/rtl/drive/rtl_view.h"
#include "testbench/rtl/engine/engines.h"

namespace systole::testbench {
namespace {

constexpr const char* kSection = "backend";

const hw::MachineKey& backend_key(const std::string& block) {
  return *hw::find_machine_key(fmt::format("{}.{}", kSection, block));
}

void set_rtl(hw::Machine& machine, const std::string& block) {
  backend_key(block).set(machine, static_cast<std::int64_t>(hw::Backend::kRtl));
}

/// Whether RTL of this block is built in the machine's size.
bool is_built(hw::Machine machine, const std::string& block) {
  machine.backend = {};
  set_rtl(machine, block);
  RtlReport report;
  try {
    (void)make_engines(machine, {}, report);
    return true;
  } catch (const hw::InputError&) {
    return false;
  }
}

RtlOptions by_stem(const std::string& vcd) {
  RtlOptions options;
  options.wave = std::filesystem::path(vcd).replace_extension().string();
  return options;
}

}  // namespace

std::vector<std::string> rtl_blocks() {
  std::vector<std::string> blocks;
  for (const hw::MachineKey& key : hw::machine_keys()) {
    if (hw::section_of(key.path) == kSection) blocks.emplace_back(hw::key_of(key.path));
  }
  return blocks;
}

std::vector<std::string> attention_blocks() {
  return {"sparser_line", "denser_line", "attention_softmax", "head_mix_line"};
}

std::vector<std::string> generation_blocks() {
  return {"fp16_mul", "fp16_add", "mpu_tree", "ring_router"};
}

std::vector<std::string> rtl_blocks(const hw::Machine& machine) {
  if (machine.dfx.cores != 0) return generation_blocks();
  std::vector<std::string> others = generation_blocks();
  if (machine.attention.lines == 0) {
    for (std::string& block : attention_blocks()) others.push_back(std::move(block));
  }
  std::vector<std::string> blocks = rtl_blocks();
  for (const std::string& block : others) {
    blocks.erase(std::find(blocks.begin(), blocks.end(), block));
  }
  return blocks;
}

bool runs_as_rtl(const hw::Machine& machine, const std::string& block) {
  const hw::KeyValue value = backend_key(block).get(machine);
  return std::get<std::int64_t>(value) == static_cast<std::int64_t>(hw::Backend::kRtl);
}

void swap_for_rtl(hw::Machine& machine, const std::string& block) {
  const std::vector<std::string> blocks = rtl_blocks();
  if (block != "all" && std::find(blocks.begin(), blocks.end(), block) == blocks.end()) {
    throw hw::InputError(fmt::format("--rtl: {}: no such block, expected all or some of {}",
                                     hw::printable(block), fmt::join(blocks, ", ")));
  }
  if (block != "all") {
    set_rtl(machine, block);
    return;
  }
  for (const std::string& each : rtl_blocks(machine)) {
    if (machine.dfx.cores != 0 || machine.attention.lines == 0 || is_built(machine, each))
      set_rtl(machine, each);
  }
}

tlm_model::Engines make_engines(const hw::Machine& machine, const RtlOptions& options,
                                RtlReport& report) {
  const hw::Machine::Backends& backend = machine.backend;
  tlm_model::Engines engines = tlm_model::make_models(machine);
  const auto in_rtl = [](hw::Backend block) { return block == hw::Backend::kRtl; };
  if (in_rtl(backend.systolic_array)) {
    engines.array = make_array_engine(machine.array, options, report);
  }
  if (in_rtl(backend.accumulator_sram)) {
    engines.accumulator = make_accumulator_engine(machine, options, report);
  }
  if (auto postop = make_postop_engine(backend, machine.postop.lanes, options, report)) {
    engines.postop = std::move(postop);
  }
  if (in_rtl(backend.sparser_line) || in_rtl(backend.denser_line) ||
      in_rtl(backend.attention_softmax)) {
    engines.attention = make_attention_engine(machine.attention, backend, options, report);
  }
  if (in_rtl(backend.head_mix_line)) {
    engines.mix = make_mix_engine(machine.attention, options, report);
  }
  return engines;
}

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
