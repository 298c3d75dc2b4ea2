#include "testbench/report/measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "base/printable.h"
#include "hw/number/int4.h"
#include "testbench/common/mesh_tables.h"
#include "testbench/common/text.h"
#include "testbench/report/machine_costs.h"
#include "testbench/report/machine_json.h"
#include "testbench/report/operator_sums.h"
#include "testbench/report/report_model.h"

namespace systole::testbench {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const std::vector<hw::Counter>& counters) {
  ordered_json object = ordered_json::object();
  for (const hw::Counter& counter : counters) object[counter.name] = counter.value;
  return object;
}

ordered_json to_json(const hw::EnergyReport& energy) {
  return {{"mac", energy.mac},
          {"postop", energy.postop},
          {"scratchpad", energy.scratchpad},
          {"accumulator", energy.accumulator},
          {"bus", energy.bus},
          {"noc", energy.noc},
          {"l2", energy.l2},
          {"dram", energy.dram},
          {"host", energy.host},
          {"leakage", energy.leakage}};
}

ordered_json to_json(const ClassCycles& classes) {
  constexpr std::array<const char*, kTimeClasses> kKeys = {
      "matmul", "gelu", "softmax", "layernorm", "residual_add", "convert", "host_waits"};
  ordered_json object = ordered_json::object();
  for (std::size_t i = 0; i < kTimeClasses; ++i) object[kKeys[i]] = classes.cycles[i];
  return object;
}

/// The commands of an operator, and the static power while it ends. The energy of a mesh is shared
/// by bytes on the bus, and with a cache its energy and that of DRAM: what hits and what misses,
/// and to which channels packets go, is not known by command.
hw::EnergyReport operator_energy(const Measurement& measurement, const OperatorSum& sum) {
  const hw::EnergyEvents& all = measurement.result.events;
  hw::EnergyEvents events = sum.events;
  events.seconds = static_cast<double>(sum.simulated) / (measurement.machine.core.clock_mhz * 1e6);
  hw::EnergyReport report = hw::energy_of(events, measurement.machine);
  if (all.bus_bytes == 0) return report;
  const hw::EnergyReport whole = hw::energy_of(all, measurement.machine);
  const double share = static_cast<double>(events.bus_bytes) / static_cast<double>(all.bus_bytes);
  report.noc = whole.noc * share;
  if (measurement.machine.l2.kib == 0) return report;
  report.l2 = whole.l2 * share;
  report.dram = whole.dram * share;
  return report;
}

/// Of the first inference, those of one general name together.
ordered_json operators_json(const Measurement& measurement) {
  ordered_json list = ordered_json::array();
  const auto& estimates = measurement.estimates;
  if (estimates.empty()) return list;
  std::vector<OperatorSum> sums =
      sum_operators(estimates, time_operators(measurement.result.traces, estimates));
  sums.pop_back();  // the total
  for (const OperatorSum& sum : sums) {
    ordered_json object = to_json(sum, true);
    const hw::EnergyReport energy = operator_energy(measurement, sum);
    object["energy_joules"] = energy.total();
    object["energy"] = to_json(energy);
    list.push_back(std::move(object));
  }
  return list;
}

/// Smaller shares show as 0.0 %.
constexpr double kVisibleShare = 0.0005;

std::string cycles_text(const Measurement& measurement) {
  const auto& cycles = measurement.result.cycles;
  const auto [least, most] = std::minmax_element(cycles.begin(), cycles.end());
  const double hertz = measurement.machine.core.clock_mhz * 1e6;
  const std::string time =
      fmt::format("({} at {} MHz)", with_prefix(measurement.mean_cycles() / hertz, "s"),
                  measurement.machine.core.clock_mhz);
  if (cycles.size() == 1) return grouped(*least) + " " + time;
  const auto mean = static_cast<std::uint64_t>(std::llround(measurement.mean_cycles()));
  return fmt::format("{} mean, {} min, {} max {}", grouped(mean), grouped(*least), grouped(*most),
                     time);
}

std::string generation_text(const Measurement& measurement) {
  const double cycles = measurement.mean_cycles() * static_cast<double>(measurement.images());
  const double seconds = cycles / (measurement.machine.core.clock_mhz * 1e6);
  return fmt::format("{} in {}, {}",
                     counted(static_cast<std::uint64_t>(std::llround(cycles)), "cycle"),
                     with_prefix(seconds, "s"),
                     with_prefix(static_cast<double>(measurement.images()) / seconds, "tokens/s"));
}

std::string energy_text(const Measurement& measurement) {
  const hw::EnergyReport energy = measurement.energy();
  const double total = energy.total();
  std::vector<std::pair<const char*, double>> causes{
      {"DRAM", energy.dram},      {"scratchpad", energy.scratchpad},
      {"array", energy.mac},      {"accumulator", energy.accumulator},
      {"post-op", energy.postop}, {"bus", energy.bus},
      {"mesh", energy.noc},       {"L2", energy.l2},
      {"host", energy.host},      {"leakage", energy.leakage}};
  std::stable_sort(causes.begin(), causes.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text = with_prefix(total, "J");
  const char* separator = " (";
  for (const auto& [name, joules] : causes) {
    if (joules <= 0.0) continue;
    text += fmt::format("{}{} {}", separator, name, percent(joules / total));
    separator = ", ";
  }
  return text + (total > 0.0 ? ")" : "");
}

/// By size.
std::string classes_text(const ClassCycles& classes) {
  std::vector<std::pair<std::string, double>> shares;
  for (std::size_t i = 0; i < kTimeClasses; ++i) {
    const auto kind = static_cast<TimeClass>(i);
    if (classes.share(kind) > 0.0) shares.emplace_back(name_of(kind), classes.share(kind));
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [name, share] : shares) {
    text += (text.empty() ? "" : ", ") + name + " " + percent(share);
  }
  return text;
}

std::string stall_text(const hw::TimeAccount& account) {
  auto causes = account.stalled;
  std::stable_sort(causes.begin(), causes.end(),
                   [](const auto& a, const auto& b) { return a.time > b.time; });
  std::string text;
  for (const auto& [cause, meaning, time] : causes) {
    const double share = static_cast<double>(time) / static_cast<double>(account.total);
    if (share < kVisibleShare) continue;
    text += fmt::format("{}{} {:.1f}", text.empty() ? "" : ", ", cause, 100.0 * share);
  }
  return text.empty() ? "-" : text;
}

}  // namespace

ordered_json counters_json(const std::vector<hw::BlockReport>& blocks) {
  std::map<std::string, ordered_json> objects;
  for (const hw::BlockReport& block : blocks) {
    if (block.time) continue;
    ordered_json& object = objects[block.name] = to_json(block.counters);
    for (const hw::BlockReport& part : block.parts) {
      if (part.time) continue;
      for (const hw::Counter& counter : part.counters) {
        object[part.name + "." + counter.name] = counter.value;
      }
    }
  }
  ordered_json document = ordered_json::object();
  for (auto& [name, object] : objects) document[name] = std::move(object);
  return document;
}

ordered_json accounts_json(const std::vector<hw::BlockReport>& blocks) {
  ordered_json document = ordered_json::object();
  for (const hw::BlockReport& block : hw::accounts_of(blocks)) {
    ordered_json stalled = ordered_json::object();
    for (const hw::TimeAccount::Stall& stall : block.time->stalled) {
      stalled[stall.cause] = stall.time;
    }
    document[block.name] = {{"unit", block.time->unit},      {"busy", block.time->busy},
                            {"stalled", std::move(stalled)}, {"idle", block.time->idle},
                            {"total", block.time->total},    {"counters", to_json(block.counters)}};
  }
  return document;
}

double Measurement::mean_cycles() const {
  const auto sum = std::accumulate(result.cycles.begin(), result.cycles.end(), std::uint64_t{0});
  return static_cast<double>(sum) / static_cast<double>(images());
}

double Measurement::utilisation() const {
  const double elements = static_cast<double>(machine.array.rows) * machine.array.cols;
  // A PE does two by int4 weights at once, and four of int4 activations.
  const auto share = [](bool a) { return 1.0 - 1.0 / hw::Int4Operands{a, true}.macs(); };
  const auto both = static_cast<double>(result.events.int4_int4_macs);
  const double saved =
      share(false) * (static_cast<double>(result.events.int4_macs) - both) + share(true) * both;
  return (static_cast<double>(macs) - saved / static_cast<double>(images())) /
         (mean_cycles() * elements);
}

double Measurement::bound() const {
  const double sum = std::accumulate(result.bounds.begin(), result.bounds.end(), 0.0);
  return sum / static_cast<double>(images());
}

hw::EnergyReport Measurement::energy() const {
  hw::EnergyReport report = hw::energy_of(result.events, machine);
  const double share = 1.0 / static_cast<double>(images());
  for (double* cause :
       {&report.mac, &report.postop, &report.scratchpad, &report.accumulator, &report.bus,
        &report.noc, &report.l2, &report.dram, &report.host, &report.leakage}) {
    *cause *= share;
  }
  return report;
}

double Measurement::cycles_per_second() const {
  return result.wall_seconds > 0.0 ? static_cast<double>(result.total_cycles) / result.wall_seconds
                                   : 0.0;
}

tlm_model::System::Traffic Measurement::traffic() const {
  return {result.traffic.read_bytes / images(), result.traffic.written_bytes / images()};
}

Measurement measure(hw::Machine machine, std::string model, std::uint64_t macs,
                    const SimulationOptions& options, SimulationResult result) {
  if (result.cycles.empty()) throw std::invalid_argument("measure: no inference has run");
  Measurement measurement;
  measurement.machine = std::move(machine);
  measurement.model = std::move(model);
  measurement.functional = options.functional;
  measurement.checked = options.functional && options.check;
  measurement.macs = macs;
  measurement.result = std::move(result);
  return measurement;
}

/// Distinct experts that a block's tokens go to, on average over the blocks; 0 without experts.
double experts_read(const Measurement& measurement) {
  if (!measurement.size || !measurement.size->llama) return 0;
  const auto count = std::count_if(
      measurement.estimates.begin(), measurement.estimates.end(), [](const auto& estimate) {
        const std::size_t expert = estimate.name.find(".mlp.expert");
        return expert != std::string::npos &&
               estimate.name.find(".down", expert) != std::string::npos;
      });
  return static_cast<double>(count) / measurement.size->llama->layers;
}

ordered_json to_json(const RtlReport& report) {
  ordered_json blocks = ordered_json::object();
  for (const auto& [block, counts] : report) {
    blocks[block] = {{"operations", counts.operations},
                     {"cycles", counts.cycles},
                     {"mismatches", counts.mismatches}};
    if (!counts.source.empty()) blocks[block]["source"] = counts.source;
  }
  return blocks;
}

ordered_json to_json(const NetworkSize& size) {
  if (size.resnet) {
    const model::ResNetShape& resnet = *size.resnet;
    return {{"blocks", resnet.blocks},     {"bottleneck", resnet.bottleneck},
            {"width", resnet.width},       {"image", resnet.image},
            {"channels", resnet.channels}, {"classes", resnet.classes}};
  }
  ordered_json document{{"layers", size.shape.layers},
                        {"width", size.shape.width},
                        {"heads", size.shape.heads},
                        {"hidden", size.shape.hidden},
                        {"post_norm", size.shape.post_norm},
                        {"causal", size.shape.causal},
                        {"length", size.length},
                        {"batch", size.batch}};
  if (size.llama) {
    document["kv_heads"] = size.llama->kv_heads;
    document["head_width"] = size.llama->head_width;
    document["vocabulary"] = size.llama->vocabulary;
    document["window"] = size.llama->window;
    if (size.llama->experts != 0) {
      const std::uint32_t tokens = size.tokens_at_once();
      document["experts"] = size.llama->experts;
      document["active_experts"] = size.llama->active_experts;
      document["expected_experts"] = model::expected_experts(*size.llama, tokens);
      document["most_experts"] = model::most_experts(*size.llama, tokens);
    }
  }
  if (size.llama || size.four_bits) document["weight_bits"] = size.four_bits ? 4 : 8;
  if (hw::is_mx(size.mx)) {
    document["weight_bits"] = hw::code_bits(size.mx);
    document["weight_format"] = name_of(size.mx);
  }
  return document;
}

ordered_json to_json(const Measurement& measurement) {
  const SimulationResult& result = measurement.result;
  const hw::EnergyReport energy = measurement.energy();
  const hw::AreaReport area = hw::area_of(measurement.machine);
  const tlm_model::System::Traffic traffic = measurement.traffic();
  const auto [least, most] = std::minmax_element(result.cycles.begin(), result.cycles.end());
  const double hertz = measurement.machine.core.clock_mhz * 1e6;
  ordered_json document{{"schema_version", kStatisticsVersion},
                        {"machine", measurement.machine.name},
                        {"model", measurement.model},
                        {"seeded", nullptr},
                        {"decode", nullptr},
                        {"functional", measurement.functional},
                        {"images", measurement.images()},
                        {"accuracy", nullptr},
                        {"checked_operators", result.check.operators},
                        {"checked_bytes", result.check.bytes},
                        {"mismatched_bytes", result.check.mismatches},
                        {"first_mismatch", nullptr},
                        {"cycles", measurement.mean_cycles()},
                        {"cycles_min", *least},
                        {"cycles_max", *most},
                        {"cycles_total", result.total_cycles},
                        {"cycles_by_class", to_json(result.classes)},
                        {"seconds", measurement.mean_cycles() / hertz},
                        {"macs", measurement.macs},
                        {"utilisation", measurement.utilisation()},
                        {"bound", measurement.bound()},
                        {"over_bound", nullptr},
                        {"commands", result.commands},
                        {"dram_read_bytes", traffic.read_bytes},
                        {"dram_write_bytes", traffic.written_bytes},
                        {"energy_joules", energy.total()},
                        {"energy", to_json(energy)},
                        {"energy_other_joules", nullptr},
                        {"area_mm2", area.total()},
                        {"area", to_json(area)},
                        {"wall_seconds", result.wall_seconds},
                        {"cycles_per_second", measurement.cycles_per_second()},
                        {"kernel_events", result.kernel_events},
                        {"blocks", accounts_json(result.blocks)},
                        {"counters", counters_json(result.blocks)},
                        {"rtl", to_json(measurement.rtl)},
                        {"operators", operators_json(measurement)},
                        {"roofline", roofline_json(analysis::roofline_of(measurement.machine))},
                        {"machine_keys", machine_json(measurement.machine)}};
  if (measurement.bound() > 0) {
    document["over_bound"] = measurement.mean_cycles() / measurement.bound();
  }
  if (!measurement.estimates.empty()) {
    double operators = 0;
    for (const ordered_json& op : document["operators"]) {
      operators += op["energy_joules"].get<double>();
    }
    document["energy_other_joules"] = energy.total() - operators;
  }
  if (measurement.size) document["seeded"] = to_json(*measurement.size);
  if (const double experts = experts_read(measurement); experts != 0) {
    document["seeded"]["read_experts"] = experts;
  }
  if (measurement.past) document["decode"] = {{"past", *measurement.past}};
  if (measurement.accuracy) document["accuracy"] = *measurement.accuracy;
  if (measurement.gates) document["gates"] = to_json(*measurement.gates);
  if (!result.check.first.empty()) document["first_mismatch"] = result.check.first;
  return document;
}

std::string rtl_table(const RtlReport& report) {
  Table table("block in RTL | >operations | >cycles | >mismatches");
  for (const auto& [block, counts] : report) {
    const std::string own = counts.source.empty() ? "" : " (" + hw::printable(counts.source) + ")";
    table.add({block + own, grouped(counts.operations), grouped(counts.cycles),
               grouped(counts.mismatches)});
  }
  return table.text();
}

std::string block_table(const std::vector<hw::BlockReport>& blocks) {
  Table table("block | >busy % | >idle % | >stalled % | stalled by cause (% of all time)");
  for (const hw::BlockReport& block : hw::accounts_of(with_busiest_links(blocks))) {
    const hw::TimeAccount& account = *block.time;
    const auto share = [&](std::uint64_t time) {
      return account.total == 0 ? std::string("-")
                                : fmt::format("{:.1f}", 100.0 * static_cast<double>(time) /
                                                            static_cast<double>(account.total));
    };
    table.add({block.name, share(account.busy), share(account.idle), share(account.stalled_total()),
               account.total == 0 ? "-" : stall_text(account)});
  }
  return table.text();
}

std::string machine_text(const hw::Machine& machine) {
  return fmt::format("{} ({} x {} array, {} MHz)", machine.name, machine.array.rows,
                     machine.array.cols, machine.core.clock_mhz);
}

std::string check_counts(const CheckResult& check) {
  return fmt::format("{} of {}, {}", counted(check.bytes, "byte"),
                     counted(check.operators, "operator"),
                     counted(check.mismatches, "mismatch", "mismatches"));
}

std::string check_text(const CheckResult& check) {
  return check_counts(check) + (check.first.empty() ? "" : "; first: " + check.first);
}

std::string report_text(const Measurement& measurement, const std::vector<std::string>& files,
                        const std::vector<std::pair<std::string, std::string>>& more) {
  const SimulationResult& result = measurement.result;
  FactList facts;
  facts.add("machine", machine_text(measurement.machine));
  facts.add("model",
            fmt::format("{} ({} MAC per inference)", measurement.model, grouped(measurement.macs)));
  if (measurement.size) {
    facts.add("shape", size_text(*measurement.size));
    if (const double experts = experts_read(measurement); experts != 0) {
      facts.add("experts", fmt::format("{:.2f} of the {} of a block, on average", experts,
                                       measurement.size->llama->experts));
    }
    facts.add("weights", "seeded: no accuracy");
  }
  facts.add("inferences", fmt::format("{}{}", grouped(measurement.images()),
                                      measurement.functional ? "" : ", timing only"));
  if (measurement.accuracy) {
    facts.add("accuracy", fmt::format("{:.2f}%", 100.0 * *measurement.accuracy));
  }
  if (measurement.functional) {
    facts.add("check",
              measurement.checked ? check_text(result.check) : "not checked against the reference");
  }
  facts.add("cycles", cycles_text(measurement));
  if (measurement.bound() > 0) {
    facts.add("bound", fmt::format("{} cycles for any mapping; this one takes {:.2f} times that",
                                   grouped_rounded(measurement.bound()),
                                   measurement.mean_cycles() / measurement.bound()));
  }
  if (measurement.past) {
    facts.add("all tokens", generation_text(measurement));
  }
  for (const auto& [label, value] : more) facts.add(label, value);
  if (const std::string classes = classes_text(result.classes); !classes.empty()) {
    facts.add("time", classes);
  }
  facts.add("utilisation", percent(measurement.utilisation()) + " of the array's MACs");
  const tlm_model::System::Traffic traffic = measurement.traffic();
  facts.add("traffic",
            fmt::format("{} read, {} written by the core per inference",
                        counted(traffic.read_bytes, "byte"), grouped(traffic.written_bytes)));
  facts.add("energy", energy_text(measurement));
  facts.add("area", area_text(measurement.machine));
  facts.add("simulation", fmt::format("{} in {}, {}", counted(result.total_cycles, "cycle"),
                                      with_prefix(result.wall_seconds, "s"),
                                      with_prefix(measurement.cycles_per_second(), "cycles/s")));
  for (const std::string& file : files) {
    if (!file.empty()) facts.add("written", hw::printable(file));
  }
  std::string text = facts.text() + "\n" + block_table(result.blocks);
  if (!measurement.rtl.empty()) text += "\n" + rtl_table(measurement.rtl);
  if (measurement.gates) text += "\n" + gates_text(*measurement.gates);
  return text;
}

}  // namespace systole::testbench
