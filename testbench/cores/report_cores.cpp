#include "testbench/cores/report_cores.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

#include "base/printable.h"
#include "hw/noc/mesh_nodes.h"
#include "testbench/common/mesh_tables.h"
#include "testbench/common/text.h"
#include "testbench/report/machine_json.h"

namespace systole::testbench {
namespace {

using nlohmann::ordered_json;
using Align = Table::Align;

/// Rows of the table of lost cycles; the rest is one row.
constexpr std::size_t kShownCauses = 8;

std::string signed_text(std::int64_t value) {
  return (value < 0 ? "-" : "") + grouped(static_cast<std::uint64_t>(std::abs(value)));
}

std::string per(std::uint64_t part, std::uint64_t whole, int digits) {
  return whole == 0 ? "-"
                    : fmt::format("{:.{}f}", static_cast<double>(part) / static_cast<double>(whole),
                                  digits);
}

std::int64_t lost(const PathShare& part) {
  return static_cast<std::int64_t>(part.together) - static_cast<std::int64_t>(part.alone);
}

/// Where the time of each core went: the columns after "total" are all of it.
std::string time_table(const std::vector<CoreShare>& cores) {
  Table table({{"core"},
               {"runs", Align::kRight},
               {"total", Align::kRight},
               {"alone", Align::kRight},
               {"lost", Align::kRight},
               {"waits", Align::kRight},
               {"host", Align::kRight},
               {"done", Align::kRight},
               {"lost %", Align::kRight}});
  for (const CoreShare& core : cores) {
    table.add({core.name, grouped(core.tasks), grouped(core.total), grouped(core.alone),
               signed_text(core.lost()), grouped(core.wait), grouped(core.host), grouped(core.done),
               core.alone == 0 ? "-"
                               : fmt::format("{:.1f}", 100.0 * static_cast<double>(core.lost()) /
                                                           static_cast<double>(core.alone))});
  }
  return table.text();
}

/// The cycles lost by all cores, by what their critical paths spent them on.
std::string lost_table(const std::vector<CoreShare>& cores) {
  std::map<std::pair<std::string, std::string>, PathShare> sums;
  std::int64_t rest = 0;
  for (const CoreShare& core : cores) {
    rest += core.lost();
    for (const PathShare& part : core.path) {
      PathShare& sum = sums[{part.unit, part.cause}];
      sum.meaning = part.meaning;
      sum.together += part.together;
      sum.alone += part.alone;
    }
  }
  std::vector<std::pair<std::int64_t, std::string>> rows;
  for (const auto& [key, sum] : sums) rows.emplace_back(lost(sum), key.first + "." + key.second);
  std::stable_sort(rows.begin(), rows.end(), [](const auto& x, const auto& y) {
    return std::abs(x.first) > std::abs(y.first);
  });
  Table table({{"lost", Align::kRight}, {"cause"}, {"meaning"}});
  for (std::size_t i = 0; i < std::min(kShownCauses, rows.size()) && rows[i].first != 0; ++i) {
    const std::string& name = rows[i].second;
    const std::size_t dot = name.find('.');
    table.add({signed_text(rows[i].first), name,
               sums[{name.substr(0, dot), name.substr(dot + 1)}].meaning});
    rest -= rows[i].first;
  }
  if (rest != 0) table.add({signed_text(rest), "others", ""});
  return table.text();
}

/// Mean bus cycles of a request, alone and together.
std::string request_table(const std::vector<CoreShare>& cores, bool mesh) {
  Table table({{"core"},
               {"requests", Align::kRight},
               {mesh ? "wait for links there" : "wait for request channel", Align::kRight},
               {mesh ? "for links back" : "for data channel", Align::kRight},
               {"in memory", Align::kRight}});
  const auto both = [](std::uint64_t alone, const RequestTimes& of_alone, std::uint64_t together,
                       const RequestTimes& of_together) {
    return per(alone, of_alone.requests, 2) + " -> " + per(together, of_together.requests, 2);
  };
  for (const CoreShare& core : cores) {
    const RequestTimes &a = core.alone_requests, &t = core.together_requests;
    table.add({core.name, grouped(t.requests), both(a.request_wait, a, t.request_wait, t),
               both(a.data_wait, a, t.data_wait, t), both(a.target_time, a, t.target_time, t)});
  }
  return table.text();
}

ordered_json to_json(const RequestTimes& times) {
  return {{"requests", times.requests},         {"walks", times.walks},
          {"fetches", times.fetches},           {"bytes", times.bytes},
          {"request_wait", times.request_wait}, {"data_wait", times.data_wait},
          {"target_time", times.target_time}};
}

ordered_json to_json(const CoreShare& core, const hw::CoreSite& site) {
  ordered_json path = ordered_json::array();
  for (const PathShare& part : core.path) {
    path.push_back({{"unit", part.unit},
                    {"cause", part.cause},
                    {"together", part.together},
                    {"alone", part.alone}});
  }
  return {{"name", core.name},
          {"registers", site.registers},
          {"link_ns", site.link_ns},
          {"runs", core.tasks},
          {"cycles",
           {{"total", core.total},
            {"alone", core.alone},
            {"lost", core.lost()},
            {"waits", core.wait},
            {"host", core.host},
            {"done", core.done}}},
          {"macs", core.macs},
          {"read_bytes", core.traffic.read_bytes},
          {"written_bytes", core.traffic.written_bytes},
          {"requests_together", to_json(core.together_requests)},
          {"requests_alone", to_json(core.alone_requests)},
          {"path", std::move(path)},
          {"machine_keys", machine_json(site.machine)}};
}

std::string address_text(std::uint64_t address) { return fmt::format("0x{:011x}", address); }

std::string system_bus_text(const hw::Machine& machine) {
  const hw::Machine::Bus& bus = machine.bus;
  return fmt::format(
      "Bus of {} bytes at {} MHz. Four channels, each shared by all initiators: request (1 cycle\n"
      "per request), write data and read data (a cycle per {} bytes), write response (1 cycle per\n"
      "write). A request gets the first gap of its channel at or after its time; equal times are\n"
      "served in the order of the calls. There are no priorities.\n",
      bus.width_bytes, bus.clock_mhz, bus.width_bytes);
}

std::string ring_bus_text(const hw::Machine& machine) {
  return fmt::format(
      "A crossbar: every target has a port for every initiator, and requests take no time on\n"
      "the way. A core has one port to its HBM and one to its DDR. A memory serves requests in "
      "the\norder of the calls. The host is behind PCIe: {} GB/s, and {} ns for each transfer.\n",
      machine.pcie.gbyte_per_s, machine.pcie.latency_ns);
}

/// What a ring beside the cores generated.
void add_ring(const CoresMeasurement& run, FactList& facts) {
  if (!run.ring) return;
  const GenerationReport& ring = *run.ring;
  facts.add(
      run.cores.back().name,
      fmt::format("{} after {} of {}{}", counted(ring.generation.tokens.size(), "token"),
                  grouped(ring.input_tokens), ring.model, ring.functional ? "" : ", timing only"));
  facts.add("", fmt::format("in {:.3f} ms, {}; first token after {:.3f} ms", ring.milliseconds(),
                            with_prefix(ring.tokens_per_second(), "tokens/s"),
                            ring.first_token_milliseconds()));
  if (!run.measurement.checked) return;
  const CheckResult& check = run.ring_check;
  std::string text =
      fmt::format("{} of logits, those of the ring alone, {}", counted(check.operators, "row"),
                  counted(check.mismatches, "mismatch", "mismatches"));
  if (!check.first.empty()) text += "; first: " + check.first;
  facts.add("check", text);
}

}  // namespace

double CoresMeasurement::inferences_per_second() const {
  return seconds > 0.0 ? static_cast<double>(measurement.images()) / seconds : 0.0;
}

double CoresMeasurement::utilisation() const {
  double done = 0.0, room = 0.0;
  for (std::size_t i = 0; i < cores.size(); ++i) {
    if (hw::is_ring(system.cores[i])) continue;
    const hw::Machine::Array& array = system.cores[i].machine.array;
    done += static_cast<double>(cores[i].macs);
    room += static_cast<double>(cores[i].total) * array.rows * array.cols;
  }
  return room > 0.0 ? done / room : 0.0;
}

std::string report_text(const CoresMeasurement& run, const std::vector<std::string>& files) {
  const Measurement& measurement = run.measurement;
  const SimulationResult& result = measurement.result;
  FactList facts;
  facts.add("machine",
            fmt::format("{}, {}", measurement.machine.name, counted(run.cores.size(), "core")));
  facts.add("model",
            fmt::format("{} ({} MAC per inference)", measurement.model, grouped(measurement.macs)));
  facts.add("split", std::string(name_of(run.split)));
  facts.add("inferences", fmt::format("{}{}", grouped(measurement.images()),
                                      measurement.functional ? "" : ", timing only"));
  if (measurement.accuracy) {
    facts.add("accuracy", fmt::format("{:.2f}%", 100.0 * *measurement.accuracy));
  }
  if (measurement.checked) {
    facts.add("check", check_text(result.check));
  }
  add_ring(run, facts);
  facts.add("throughput",
            fmt::format("{}, all in {}", with_prefix(run.inferences_per_second(), "inferences/s"),
                        with_prefix(run.seconds, "s")));
  facts.add("latency",
            fmt::format("{} mean per inference, first start to last interrupt",
                        counted(static_cast<std::uint64_t>(std::llround(measurement.mean_cycles())),
                                "cycle")));
  facts.add("utilisation", percent(run.utilisation()) + " of all arrays' MACs in that time");
  const hw::EnergyReport energy = measurement.energy();
  facts.add("energy", fmt::format("{} per inference ({} DRAM)", with_prefix(energy.total(), "J"),
                                  percent(energy.dram / energy.total())));
  facts.add("simulation", fmt::format("{} in {}", counted(result.total_cycles, "cycle"),
                                      with_prefix(result.wall_seconds, "s")));
  for (const std::string& file : files) {
    if (!file.empty()) facts.add("written", hw::printable(file));
  }
  std::string text;
  if (run.ring && !run.ring->text.empty()) text = run.ring->prompt + run.ring->text + "\n\n";
  text += facts.text() +
          "\nCycles of each core (total = alone + lost + waits + host + "
          "done)\n" +
          time_table(run.cores);
  if (run.cores.size() > 1) {
    text += "\nCycles lost to other cores, by what the critical paths spend them on\n" +
            lost_table(run.cores) + "\nBus cycles of a request, alone -> together\n" +
            request_table(run.cores, hw::has_mesh(run.system.machine));
  }
  text += "\n" + block_table(result.blocks);
  if (!measurement.rtl.empty()) text += "\n" + rtl_table(measurement.rtl);
  return text;
}

ordered_json to_json(const CoresMeasurement& run) {
  ordered_json document = to_json(run.measurement);
  document["utilisation"] = run.utilisation();
  document["split"] = name_of(run.split);
  document["inferences_per_second"] = run.inferences_per_second();
  document["cores"] = ordered_json::array();
  for (std::size_t i = 0; i < run.cores.size(); ++i) {
    document["cores"].push_back(to_json(run.cores[i], run.system.cores[i]));
  }
  if (run.ring) {
    document["ring"] = to_json(*run.ring);
    document["ring"]["checked_rows"] = run.ring_check.operators;
    document["ring"]["mismatched_rows"] = run.ring_check.mismatches;
  }
  return document;
}

std::string core_table(const hw::CoreSystem& system) {
  Table table({{"core"}, {"registers"}, {"link", Align::kRight}, {"machine"}});
  for (const hw::CoreSite& core : system.cores) {
    table.add({core.name, address_text(core.registers), fmt::format("{} ns", core.link_ns),
               machine_summary(core.machine)});
  }
  return table.text();
}

std::string map_text(const hw::CoreSystem& system) {
  Table table({{"from"}, {"to"}, {"bytes", Align::kRight}, {"answers"}});
  for (const hw::AddressRange& range : hw::address_map(system)) {
    table.add({address_text(range.base), address_text(range.base + range.bytes - 1),
               grouped(range.bytes),
               range.target + (range.target == "l2" ? ", before the dram" : "") +
                   (range.part.empty() ? "" : ": " + range.part)});
  }
  return table.text() + "\n" +
         (system.machine.dfx.cores != 0  ? ring_bus_text(system.machine)
          : hw::has_mesh(system.machine) ? mesh_text(system)
                                         : system_bus_text(system.machine));
}

ordered_json map_json(const hw::CoreSystem& system) {
  ordered_json document = ordered_json::array();
  for (const hw::AddressRange& range : hw::address_map(system)) {
    ordered_json entry{{"base", range.base}, {"bytes", range.bytes}, {"target", range.target}};
    if (!range.part.empty()) entry["part"] = range.part;
    document.push_back(std::move(entry));
  }
  return document;
}

}  // namespace systole::testbench
