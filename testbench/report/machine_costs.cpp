#include "testbench/report/machine_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "hw/description/machine_keys.h"
#include "hw/energy.h"
#include "testbench/common/text.h"

namespace systole::testbench {

using nlohmann::ordered_json;

ordered_json to_json(const hw::AreaReport& area) {
  ordered_json object = ordered_json::object();
  for (const auto& [name, mm2] : area.parts()) object[name] = mm2;
  return object;
}

std::string area_text(const hw::Machine& machine) {
  const hw::AreaReport area = hw::area_of(machine);
  if (area.total() <= 0) return {};
  auto parts = area.parts();
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> texts;
  for (const auto& [name, mm2] : parts) {
    if (mm2 > 0) texts.push_back(fmt::format("{} {}", name, percent(mm2 / area.total())));
  }
  return fmt::format("{:.2f} mm2 at 45 nm ({})", area.total(), fmt::join(texts, ", "));
}

std::string costs_text(const hw::Machine& machine) {
  hw::Machine filled = machine;
  filled.energy = hw::energy_table(machine);
  Table events("event | >value | unit | source");
  for (const hw::MachineKey& key : hw::machine_keys()) {
    if (hw::section_of(key.path) != "energy") continue;
    if (machine.l2.kib == 0 && key.path == "energy.l2_byte_pj") continue;
    const double value = std::get<double>(key.get(filled));
    const bool given = std::get<double>(key.get(machine)) != std::get<double>(key.get({}));
    events.add({std::string(key.path), fmt::format("{:.4g}", value), std::string(key.unit),
                given ? "the machine's" : std::string(key.source)});
  }
  const hw::AreaReport area = hw::area_of(machine);
  if (area.total() <= 0) return events.text();
  Table blocks("block | >mm2 | >%");
  for (const auto& [name, mm2] : area.parts()) {
    if (mm2 <= 0) continue;
    blocks.add({name, fmt::format("{:.4g}", mm2), fmt::format("{:.1f}", 100 * mm2 / area.total())});
  }
  blocks.add({"total", fmt::format("{:.4g}", area.total()), "100.0"});
  return events.text() + "\n" + blocks.text();
}

ordered_json costs_json(const hw::Machine& machine) {
  hw::Machine filled = machine;
  filled.energy = hw::energy_table(machine);
  const hw::AreaReport area = hw::area_of(machine);
  ordered_json energy = ordered_json::object();
  for (const hw::MachineKey& key : hw::machine_keys()) {
    if (hw::section_of(key.path) != "energy") continue;
    energy[std::string(key.path.substr(key.path.find('.') + 1))] =
        std::get<double>(key.get(filled));
  }
  return {{"machine", machine.name},
          {"energy", std::move(energy)},
          {"area_mm2", area.total()},
          {"area", to_json(area)}};
}

}  // namespace systole::testbench
