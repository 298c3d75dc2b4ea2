#include "testbench/report/measurement.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace systole::testbench {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const std::vector<hw::Counter>& counters) {
  ordered_json object = ordered_json::object();
  for (const hw::Counter& counter : counters) object[counter.name] = counter.value;
  return object;
}

/// Of blocks that have no account of their own, with those of parts that have none.
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

ordered_json to_json(const hw::EnergyReport& energy) {
  return {{"mac", energy.mac},
          {"postop", energy.postop},
          {"scratchpad", energy.scratchpad},
          {"accumulator", energy.accumulator},
          {"bus", energy.bus},
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

}  // namespace

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
  return static_cast<double>(macs) / (mean_cycles() * elements);
}

double Measurement::bound() const {
  const double sum = std::accumulate(result.bounds.begin(), result.bounds.end(), 0.0);
  return sum / static_cast<double>(images());
}

hw::EnergyReport Measurement::energy() const {
  hw::EnergyReport report = hw::energy_of(result.events, machine.energy);
  const double share = 1.0 / static_cast<double>(images());
  for (double* cause : {&report.mac, &report.postop, &report.scratchpad, &report.accumulator,
                        &report.bus, &report.l2, &report.dram, &report.host, &report.leakage}) {
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

ordered_json to_json(const RtlReport& report) {
  ordered_json blocks = ordered_json::object();
  for (const auto& [block, counts] : report) {
    blocks[block] = {{"operations", counts.operations},
                     {"cycles", counts.cycles},
                     {"mismatches", counts.mismatches}};
  }
  return blocks;
}

ordered_json to_json(const NetworkSize& size) {
  return {{"layers", size.shape.layers},
          {"width", size.shape.width},
          {"heads", size.shape.heads},
          {"hidden", size.shape.hidden},
          {"post_norm", size.shape.post_norm},
          {"causal", size.shape.causal},
          {"length", size.length},
          {"batch", size.batch}};
}

ordered_json to_json(const Measurement& measurement) {
  const SimulationResult& result = measurement.result;
  const hw::EnergyReport energy = measurement.energy();
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
                        {"wall_seconds", result.wall_seconds},
                        {"cycles_per_second", measurement.cycles_per_second()},
                        {"kernel_events", result.kernel_events},
                        {"blocks", accounts_json(result.blocks)},
                        {"counters", counters_json(result.blocks)},
                        {"rtl", to_json(measurement.rtl)}};
  if (measurement.bound() > 0) {
    document["over_bound"] = measurement.mean_cycles() / measurement.bound();
  }
  if (measurement.size) document["seeded"] = to_json(*measurement.size);
  if (measurement.past) document["decode"] = {{"past", *measurement.past}};
  if (measurement.accuracy) document["accuracy"] = *measurement.accuracy;
  if (!result.check.first.empty()) document["first_mismatch"] = result.check.first;
  return document;
}

}  // namespace systole::testbench
