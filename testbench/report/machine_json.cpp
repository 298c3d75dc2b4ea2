#include "testbench/report/machine_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <variant>

#include "testbench/common/text.h"

namespace systole::testbench {

using nlohmann::ordered_json;

namespace {

/// What a machine for text generation has a use for: sections, and keys of others.
constexpr std::array<std::string_view, 12> kRingKeys = {"dram",
                                                        "dfx",
                                                        "matrix",
                                                        "vector",
                                                        "hbm",
                                                        "ring",
                                                        "pcie",
                                                        "core.clock_mhz",
                                                        "backend.fp16_mul",
                                                        "backend.fp16_add",
                                                        "backend.mpu_tree",
                                                        "backend.ring_router"};

/// Sections of an attention accelerator that finds its mask; of `core` the clock alone.
bool is_dynamic_key(const hw::MachineKey& key) {
  const std::string_view section = hw::section_of(key.path);
  return section.empty() || section == "dynamic" || section == "energy" ||
         key.path == "core.clock_mhz";
}

bool is_ring_key(const hw::MachineKey& key) {
  const std::string_view section = hw::section_of(key.path);
  return section.empty() ||
         std::any_of(kRingKeys.begin(), kRingKeys.end(),
                     [&](std::string_view known) { return known == section || known == key.path; });
}

std::string ring_summary(const hw::Machine& machine) {
  const hw::dfx::Hbm& hbm = machine.hbm;
  const double gbytes = 1e-3 * hbm.mega_transfers * hbm.bus_bytes * hbm.channels;
  return fmt::format(
      "ring of {}, {} x {} multipliers each, beside {} MiB of HBM ({:.0f} GB/s), {} MHz; {} cycles "
      "to issue, {:.0f} ns a hop",
      counted(machine.dfx.cores, "FP16 core"), machine.matrix.depth, machine.matrix.lanes, hbm.mib,
      gbytes, machine.core.clock_mhz, machine.dfx.issue_cycles, machine.ring.hop_ns);
}

std::string dynamic_summary(const hw::Machine& machine) {
  const hw::Machine::Dynamic& d = machine.dynamic;
  const std::string rest =
      fmt::format("{} MHz, {:.0f} GB/s; attention alone", machine.core.clock_mhz, d.gbyte_per_s);
  if (d.kind == hw::DynamicKind::kSanger) {
    return fmt::format("Sanger's array of {} x {} elements, {}, {}", d.rows, d.row_pes,
                       d.own_predictor ? "own predictor" : "no predictor beside it", rest);
  }
  return fmt::format("SpAtten's {} and {} MACs, top-k engine of {} lanes, {}", d.key_macs,
                     d.value_macs, d.top_k_lanes, rest);
}

}  // namespace

ordered_json machine_value(const hw::MachineKey& key, const hw::Machine& machine) {
  const hw::KeyValue value = key.get(machine);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    if (key.kind != hw::MachineKey::Kind::kWord) return *integer;
    return std::string(key.words.at(static_cast<std::size_t>(*integer)));
  }
  if (const auto* number = std::get_if<double>(&value)) return *number;
  return std::get<std::string>(value);
}

std::vector<const hw::MachineKey*> keys_that_matter(const hw::Machine& machine) {
  std::vector<const hw::MachineKey*> keys;
  for (const hw::MachineKey& key : hw::machine_keys()) {
    const bool matters = machine.dfx.cores != 0                           ? is_ring_key(key)
                         : machine.dynamic.kind != hw::DynamicKind::kNone ? is_dynamic_key(key)
                                                                          : true;
    if (matters) keys.push_back(&key);
  }
  return keys;
}

std::string machine_summary(const hw::Machine& machine) {
  if (machine.dfx.cores != 0) return ring_summary(machine);
  if (machine.dynamic.kind != hw::DynamicKind::kNone) return dynamic_summary(machine);
  const auto& words = hw::find_machine_key("array.dataflow")->words;
  return fmt::format("{} x {} {} array, {} KiB scratchpad, {} KiB accumulator, {} MHz",
                     machine.array.rows, machine.array.cols,
                     words.at(static_cast<std::size_t>(machine.array.dataflow)),
                     machine.scratchpad.kib, machine.accumulator.kib, machine.core.clock_mhz);
}

ordered_json machine_json(const hw::Machine& machine) {
  ordered_json document = ordered_json::object();
  for (const hw::MachineKey* key : keys_that_matter(machine)) {
    const std::string section(hw::section_of(key->path)), name(hw::key_of(key->path));
    ordered_json& place = section.empty() ? document : document[section];
    place[name] = machine_value(*key, machine);
    if (section.empty()) document["summary"] = machine_summary(machine);
  }
  return document;
}

ordered_json roofline_json(const analysis::Roofline& roofline) {
  ordered_json document = {{"macs_per_cycle", roofline.macs},
                           {"bus_bytes_per_cycle", roofline.bus_bytes},
                           {"dram_bytes_per_cycle", roofline.dram_bytes},
                           {"read_bytes_per_cycle", roofline.read_bytes},
                           {"write_bytes_per_cycle", roofline.write_bytes},
                           {"postop_elements_per_cycle", roofline.elements},
                           {"ridge", roofline.ridge()}};
  if (roofline.int4_macs != 0) document["int4_macs_per_cycle"] = roofline.int4_macs;
  if (roofline.int4_int4_macs != 0) {
    document["int4_int4_macs_per_cycle"] = roofline.int4_int4_macs;
  }
  return document;
}

}  // namespace systole::testbench
