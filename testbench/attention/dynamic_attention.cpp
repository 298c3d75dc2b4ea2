#include "testbench/attention/dynamic_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/energy.h"
#include "testbench/attention/report_attention.h"
#include "testbench/common/text.h"

namespace systole::testbench {
namespace {

using hw::dynamic::SangerCycles;
using hw::dynamic::SpattenCycles;
using nlohmann::ordered_json;

double bytes_per_cycle(const hw::Machine& machine) {
  return machine.dynamic.gbyte_per_s * 1e3 / machine.core.clock_mhz;
}

SpattenCycles run_spatten_mask(const hw::Machine& machine, const model::AttentionMask& mask,
                               std::size_t dim) {
  const model::AttentionShape& shape = mask.shape();
  const Spatten spatten = spatten_of(machine);
  if (shape.queries != shape.keys) {
    throw hw::InputError(
        fmt::format("--mask: {} queries and {} keys, expected as many of both: {} "
                    "prunes tokens",
                    shape.queries, shape.keys, machine.name));
  }
  const std::uint32_t most = std::min(machine.dynamic.key_macs, machine.dynamic.value_macs);
  if (dim > most) {
    throw hw::InputError(fmt::format(
        "--dim: found {}, expected at most {}, the least of dynamic.key_macs and value_macs", dim,
        most));
  }
  const hw::dynamic::AttentionProbabilities network = uniform_attention(mask);
  const bool values = machine.dynamic.prunes == hw::DynamicPruning::kValues;
  return hw::dynamic::run_spatten(
      network, dim,
      values ? values_alone(network, mask.sparsity()) : tokens_alone(network, mask.sparsity()),
      spatten.array, spatten.stream);
}

/// Cycles in which each unit works, in the order of the work.
std::vector<std::pair<const char*, std::uint64_t>> units_of(const SangerCycles& run) {
  return {{"memory", run.memory},
          {"prediction", run.prediction},
          {"packing", run.packing},
          {"scores", run.scores},
          {"context", run.context}};
}
std::vector<std::pair<const char*, std::uint64_t>> units_of(const SpattenCycles& run) {
  return {{"memory", run.memory}, {"scores", run.scores}, {"softmax", run.softmax},
          {"top_k", run.top_k},   {"values", run.values}, {"selection", run.selection}};
}

std::string core_text(const hw::Machine& machine) {
  const hw::Machine::Dynamic& d = machine.dynamic;
  const std::string memory = fmt::format("{} MHz, {} GB/s", machine.core.clock_mhz, d.gbyte_per_s);
  if (d.kind == hw::DynamicKind::kSpatten) {
    return fmt::format("{} (SpAtten: {} + {} MACs, {})", machine.name, d.key_macs, d.value_macs,
                       memory);
  }
  return fmt::format("{} (Sanger: {} x {} elements, {}, {})", machine.name, d.rows, d.row_pes,
                     d.own_predictor ? "own predictor" : "predicts on the array", memory);
}

void add_cells(const SangerCycles& run, ordered_json& json) {
  json["load"] = run.load();
  json["passes"] = run.passes;
  json["moved_bytes"] = run.moved_bytes;
}
void add_cells(const SpattenCycles& run, ordered_json& json) {
  json["computed"] = run.cells;
  json["value_cells"] = run.value_cells;
}

std::string cells_text(const SangerCycles& run) {
  return fmt::format("{} of the elements of {} hold a kept cell", percent(run.load()),
                     counted(run.passes, "pass", "passes"));
}
std::string cells_text(const SpattenCycles& run) {
  return fmt::format("{} computed, {} of them in an output", counted(run.cells, "score"),
                     grouped(run.value_cells));
}

}  // namespace

Sanger sanger_of(const hw::Machine& machine) {
  const hw::Machine::Dynamic& d = machine.dynamic;
  return {{d.rows, d.row_pes, d.tile_keys, d.own_predictor, d.common_phases},
          {bytes_per_cycle(machine), d.element_bytes},
          static_cast<double>(machine.core.clock_mhz)};
}

Spatten spatten_of(const hw::Machine& machine) {
  const hw::Machine::Dynamic& d = machine.dynamic;
  return {{d.key_macs, d.value_macs, d.top_k_lanes},
          {bytes_per_cycle(machine), d.element_bytes},
          static_cast<double>(machine.core.clock_mhz)};
}

hw::dynamic::SangerCycles sanger_cycles(const model::AttentionMask& mask, std::size_t dim,
                                        const Sanger& sanger) {
  std::vector<hw::SparseHead> heads;
  for (std::size_t layer = 0; layer < mask.shape().layers; ++layer) {
    for (std::size_t head = 0; head < mask.shape().heads; ++head) {
      heads.push_back(mask.head(layer, head));
    }
  }
  return hw::dynamic::run_sanger(heads, dim, sanger.array, sanger.stream);
}

double sanger_joules(const hw::dynamic::SangerCycles& run, const hw::Machine& machine) {
  hw::EnergyEvents events;
  events.macs = run.products + run.predictions / 4;
  events.postop_elements = run.kept;
  events.scratchpad_bytes = static_cast<std::uint64_t>(run.buffer_bytes);
  events.bus_bytes = events.dram_bytes = static_cast<std::uint64_t>(run.moved_bytes);
  events.seconds = static_cast<double>(run.total) / (machine.core.clock_mhz * 1e6);
  return hw::energy_of(events, machine).total();
}

hw::dynamic::AttentionProbabilities uniform_attention(const model::AttentionMask& mask) {
  const model::AttentionShape& shape = mask.shape();
  hw::dynamic::AttentionProbabilities network{shape.layers, shape.heads, shape.keys, {}, {}};
  network.attention.resize(shape.cells());
  for (std::size_t row = 0; row < shape.cells(); row += shape.keys) {
    std::size_t kept = 0;
    for (std::size_t key = 0; key < shape.keys; ++key) kept += mask.kept(row + key) ? 1 : 0;
    for (std::size_t key = 0; key < shape.keys; ++key) {
      if (mask.kept(row + key)) network.attention[row + key] = 1.0 / static_cast<double>(kept);
    }
  }
  return network;
}

hw::dynamic::SpattenSchedule values_alone(const hw::dynamic::AttentionProbabilities& network,
                                          double sparsity) {
  return {std::vector<std::size_t>(network.layers, network.tokens),
          std::vector<std::size_t>(network.layers, network.heads),
          std::max(1.0 - sparsity, 0.5 / static_cast<double>(network.tokens))};
}

hw::dynamic::SpattenSchedule tokens_alone(const hw::dynamic::AttentionProbabilities& network,
                                          double sparsity) {
  hw::dynamic::SpattenSchedule schedule = values_alone(network, 0.0);
  const auto tokens = static_cast<double>(network.tokens);
  const double others = static_cast<double>(network.layers) - 1.0;
  if (others == 0.0) return schedule;
  const double left = (1.0 - sparsity) * (others + 1.0) - 1.0;  // of the cells of one layer
  const double share = std::sqrt(std::max(0.0, left / others));
  const double kept = std::max(1.0, std::round(share * tokens));
  std::fill(schedule.tokens.begin() + 1, schedule.tokens.end(), static_cast<std::size_t>(kept));
  return schedule;
}

std::uint64_t DynamicAttention::cycles() const {
  return std::visit([](const auto& one) { return one.total; }, run);
}

DynamicAttention run_dynamic_attention(const hw::Machine& machine, const model::AttentionMask& mask,
                                       const std::string& name, std::size_t dim) {
  DynamicAttention attention{machine, name, mask.shape(), dim, mask.kept_count(), {}};
  switch (machine.dynamic.kind) {
    case hw::DynamicKind::kSanger:
      attention.run = sanger_cycles(mask, dim, sanger_of(machine));
      return attention;
    case hw::DynamicKind::kSpatten:
      attention.run = run_spatten_mask(machine, mask, dim);
      return attention;
    case hw::DynamicKind::kNone:
      break;
  }
  throw hw::InputError("dynamic.kind: found \"none\", expected a machine such as sanger");
}

std::string dynamic_attention_text(const DynamicAttention& attention) {
  const auto cells = static_cast<double>(attention.shape.cells());
  const auto cycles = attention.cycles();
  FactList facts;
  facts.add("machine", core_text(attention.machine));
  facts.add("mask", attention.mask + ": " +
                        attention_shape_text(attention.shape, attention.dim, attention.dim));
  facts.add("sparsity", fmt::format("{} of {} kept ({} pruned)", grouped(attention.kept),
                                    counted(attention.shape.cells(), "cell"),
                                    percent(1.0 - static_cast<double>(attention.kept) / cells)));
  facts.add("cycles", fmt::format("{} ({:.2f} us), without latency of the memory", grouped(cycles),
                                  static_cast<double>(cycles) / attention.machine.core.clock_mhz));
  facts.add("cells", std::visit([](const auto& run) { return cells_text(run); }, attention.run));
  if (const auto* const sanger = std::get_if<SangerCycles>(&attention.run)) {
    facts.add("energy", with_prefix(sanger_joules(*sanger, attention.machine), "J"));
  }
  Table table("unit | >busy cycles | >share");
  std::visit(
      [&](const auto& run) {
        for (const auto& [unit, busy] : units_of(run)) {
          table.add({unit, grouped(busy),
                     percent(static_cast<double>(busy) / static_cast<double>(cycles))});
        }
      },
      attention.run);
  return facts.text() + "\n" + table.text();
}

ordered_json to_json(const DynamicAttention& attention) {
  ordered_json json;
  json["machine"] = attention.machine.name;
  json["mask"] = attention.mask;
  json["layer_count"] = attention.shape.layers;
  json["head_count"] = attention.shape.heads;
  json["queries"] = attention.shape.queries;
  json["keys"] = attention.shape.keys;
  json["dim"] = attention.dim;
  json["cells"] = attention.shape.cells();
  json["kept"] = attention.kept;
  json["cycles"] = attention.cycles();
  json["seconds"] =
      static_cast<double>(attention.cycles()) / attention.machine.core.clock_mhz / 1e6;
  std::visit(
      [&](const auto& run) {
        for (const auto& [unit, busy] : units_of(run)) json["units"][unit] = busy;
        add_cells(run, json);
      },
      attention.run);
  if (const auto* const sanger = std::get_if<SangerCycles>(&attention.run)) {
    json["energy_joules"] = sanger_joules(*sanger, attention.machine);
  }
  return json;
}

}  // namespace systole::testbench
