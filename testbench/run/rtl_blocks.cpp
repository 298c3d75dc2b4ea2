#include "testbench/run/rtl_blocks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "base/printable.h"
#include "hw/description/machine_keys.h"
#include "testbench/rtl/drive/rtl_view.h"
#include "testbench/rtl/drive/system_time.h"
#include "testbench/rtl/engine/engines.h"
#include "testbench/wave/fst_merge.h"
#include "testbench/wave/wave_file.h"

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
  if (machine.postop.divider == 0) others.emplace_back("divider");
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
  if (block == kCoreInRtl) {
    throw hw::InputError("--rtl core: runs whole programs, expected systole run with one core");
  }
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
  if (auto postop = make_postop_engine(backend, machine.result_lanes(), options, report)) {
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

RtlWaves::RtlWaves(const std::string& wave, const hw::Machine& machine, bool gates) : path_(wave) {
  const std::uint32_t cores = std::max(machine.dfx.cores, 1U);
  for (std::uint32_t core = 0; core < cores; ++core) {
    add(cores > 1 ? fmt::format("core{}", core) : "", machine);
  }
  if (gates && !path_.empty()) add_block("", kCoreInRtl);
}

RtlWaves::RtlWaves(const std::string& wave, const hw::CoreSystem& system) : path_(wave) {
  for (const hw::CoreSite& core : system.cores) {
    if (!hw::is_ring(core)) add(system.cores.size() > 1 ? core.name : "", core.machine);
    for (std::uint32_t i = 0; i < core.machine.dfx.cores; ++i) {
      add(fmt::format("{}.core{}", core.name, i), core.machine);
    }
  }
}

void RtlWaves::add(const std::string& name, const hw::Machine& machine) {
  times_.push_back(std::make_shared<SystemTime>(machine.core.clock_mhz));
  if (path_.empty()) return;
  for (const std::string& block : rtl_blocks(machine)) {
    if (runs_as_rtl(machine, block)) add_block(name, block);
  }
}

void RtlWaves::add_block(const std::string& name, const std::string& block) {
  const std::filesystem::path path(path_);
  if (path.extension() != kFstEnding) {
    throw hw::InputError(hw::printable(path_) + ": expected a file name that ends in " +
                         std::string(kFstEnding) + ", which waveforms of RTL need");
  }
  const std::string full = name.empty() ? block : name + "." + block;
  waves_.emplace_back(times_.size() - 1, block, full,
                      path.parent_path() / (path.stem().string() + "." + full + ".fst"));
}

RtlOptions RtlWaves::options(std::size_t core) const {
  RtlOptions options;
  if (waves_.empty()) return options;
  options.time = times_.at(core);
  for (const Wave& wave : waves_) {
    if (wave.core == core) options.places[wave.block] = wave.file.place();
  }
  return options;
}

void RtlWaves::write() {
  if (waves_.empty()) return;
  std::string groups;
  std::vector<FstPart> parts;
  for (const Wave& wave : waves_) {
    parts.push_back({wave.file.place(), "rtl." + wave.name});
    groups += rtl_view_groups(read_fst_signals(wave.file.place()), wave.name, parts.back().scope);
  }
  merge_fst(path_, parts);
  const std::string view = rtl_view_path(path_);
  const std::string before(hw::MappedFile(view).bytes());
  hw::write_file_atomically(view, before + groups);
}

}  // namespace systole::testbench
