#include "hw/description/machine_rules.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "base/error.h"
#include "base/units.h"
#include "hw/description/machine_keys.h"
#include "hw/description/machine_text.h"
#include "hw/memory/dram_timing.h"
#include "hw/noc/mesh_nodes.h"
#include "hw/ring/hbm.h"

namespace systole::hw {
namespace {

/// Bytes that the array reads from the scratchpad, or the accumulator from the array, in one cycle:
/// the row that a bank delivers as a whole.
std::uint64_t scratchpad_row(const Machine& m) { return std::max(m.array.rows, m.array.cols); }
std::uint64_t accumulator_row(const Machine& m) {
  return std::uint64_t{m.array.cols} * sizeof(std::int32_t);
}

bool whole_rows(const Machine::Sram& memory, std::uint64_t row_bytes) {
  return memory.kib * kKib % (memory.banks * row_bytes) == 0;
}

bool scratchpad_holds_tiles(const Machine& m) {
  return m.scratchpad.kib * kKib >= 4 * scratchpad_row(m) * m.array.rows;
}
bool accumulator_holds_tiles(const Machine& m) {
  return m.accumulator.kib * kKib >= 2 * accumulator_row(m) * m.array.rows;
}
bool attention_uses_the_macs(const Machine& m) {
  return m.attention.lines == 0 ||
         m.attention.lines * m.attention.macs_per_line == m.array.rows * m.array.cols;
}
bool attention_has_a_line_for_each_engine(const Machine& m) { return m.attention.lines != 1; }
bool attention_buffers_fit(const Machine& m) {
  const Machine::Attention& a = m.attention;
  return a.lines == 0 ||
         std::uint64_t{a.query_kib} + a.key_kib + a.value_kib + a.index_kib <= m.scratchpad.kib;
}
bool protection_is_timed(const Machine& m) {
  const bool none =
      m.scratchpad.protection == Protection::kNone && m.accumulator.protection == Protection::kNone;
  return none || (m.attention.lines == 0 && m.unroller.loops == 0 && m.stream.units == 0 &&
                  m.dfx.cores == 0);
}
bool scratchpad_rows_are_whole(const Machine& m) {
  return whole_rows(m.scratchpad, scratchpad_row(m));
}
bool accumulator_rows_are_whole(const Machine& m) {
  return whole_rows(m.accumulator.sram(), m.accumulator.memories * accumulator_row(m));
}
bool split_is_of_tiles(const Machine& m) {
  return m.array.split == ArraySplit::kNone ||
         (m.attention.lines == 0 && m.unroller.loops == 0 && m.stream.units == 0 &&
          m.dfx.cores == 0 && m.dynamic.kind == DynamicKind::kNone);
}
bool unroller_is_double(const Machine& m) { return m.unroller.loops != 1; }
bool unroller_array_is_square(const Machine& m) {
  return m.unroller.loops == 0 || m.array.rows == m.array.cols;
}
bool unroller_array_is_weight_stationary(const Machine& m) {
  return m.unroller.loops == 0 || m.array.dataflow == Dataflow::kWeightStationary;
}
bool unroller_requests_are_blocks(const Machine& m) {
  return m.unroller.loops == 0 ||
         (m.dma.request_bytes >= m.array.rows && m.dma.request_bytes >= m.bus.width_bytes);
}
bool unroller_station_is_small(const Machine& m) {
  return m.unroller.loops == 0 ||
         std::max({m.core.load_queue, m.core.compute_queue, m.core.store_queue}) <= 32;
}
bool unroller_requests_are_few(const Machine& m) {
  return m.unroller.loops == 0 || std::max(m.dma.outstanding_reads, m.dma.outstanding_writes) <= 64;
}
bool unroller_banks_are_few(const Machine& m) {
  return m.unroller.loops == 0 || (m.accumulator.banks <= 8 && m.scratchpad.banks <= 32);
}

bool stream_tiles_are_whole(const Machine& m) {
  const Machine::Stream& stream = m.stream;
  return stream.units == 0 || (stream.length % stream.units == 0 && stream.length >= stream.units);
}
bool stream_buffers_are_whole(const Machine& m) {
  const Machine::Stream& stream = m.stream;
  return stream.units == 0 || std::uint64_t{stream.units} * stream.length >= stream.weight_bytes;
}
bool stream_is_alone(const Machine& m) {
  return m.stream.units == 0 ||
         (m.dfx.cores == 0 && m.attention.lines == 0 && m.unroller.loops == 0);
}
bool dynamic_is_alone(const Machine& m) {
  return m.dynamic.kind == DynamicKind::kNone || (m.dfx.cores == 0 && m.attention.lines == 0 &&
                                                  m.unroller.loops == 0 && m.stream.units == 0);
}
bool pipeline_gathers(const Machine& m) {
  return m.ring.collective == dfx::Collective::kAllGather ||
         m.dfx.parallelism == dfx::Parallelism::kIntraLayer;
}
bool ring_has_dram(const Machine& m) {
  return m.memory.model == MemoryModel::kDram || m.dfx.cores == 0;
}

bool node_is_on_the_mesh(const Machine& m) {
  return m.noc.columns == 0 || m.noc.node < mesh_nodes(m.noc);
}
bool mesh_has_dram(const Machine& m) {
  return m.noc.columns == 0 || m.memory.model == MemoryModel::kDram;
}
bool mesh_has_tiles(const Machine& m) {
  return m.noc.columns == 0 ||
         (m.dfx.cores == 0 && m.stream.units == 0 && m.dynamic.kind == DynamicKind::kNone);
}

bool request_fits_row(const Machine& m) { return m.dma.request_bytes <= m.dram.row_bytes; }
bool l2_sets_are_whole(const Machine& m) {
  return m.l2.kib * kKib % (std::uint64_t{m.l2.ways} * m.l2.line_bytes) == 0;
}
bool l2_line_fits_row(const Machine& m) {
  return m.l2.kib == 0 || m.l2.line_bytes <= m.dram.row_bytes;
}
bool burst_fits_row(const Machine& m) {
  return std::uint64_t{m.dram.bus_bytes} * m.dram.burst_length <= m.dram.row_bytes;
}
bool dram_rows_are_whole(const Machine& m) {
  return m.dram.mib * kMib % (std::uint64_t{m.dram.channels} * m.dram.banks * m.dram.row_bytes) ==
         0;
}
bool groups_have_banks(const Machine& m) { return m.dram.bank_groups <= m.dram.banks; }
bool row_opens_before_it_closes(const Machine& m) { return m.dram.t_ras_ns >= m.dram.t_rcd_ns; }
bool write_queue_empties(const Machine& m) {
  return m.dram.write_low_percent < m.dram.write_high_percent;
}
bool same_group_is_slower(const Machine& m) { return m.dram.t_rrd_l_ns >= m.dram.t_rrd_s_ns; }

/// The DRAM model itself knows how much time it needs between two refreshes.
bool leaves_time(const Machine::Dram& dram) {
  try {
    static_cast<void>(DramTimes(dram));
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}
bool refresh_leaves_time(const Machine& m) { return leaves_time(m.dram); }
bool hbm_refresh_leaves_time(const Machine& m) { return leaves_time(dfx::lock_step(m.hbm)); }
bool hbm_burst_fits_row(const Machine& m) {
  return dfx::kHbmBurst * m.hbm.bus_bytes <= m.hbm.row_bytes;
}
bool hbm_rows_are_whole(const Machine& m) {
  return m.hbm.mib * kMib % (std::uint64_t{m.hbm.channels} * m.hbm.banks * m.hbm.row_bytes) == 0;
}

bool names(const std::vector<std::string_view>& paths, std::string_view path) {
  return std::find(paths.begin(), paths.end(), path) != paths.end();
}

/// Whether a key belongs to the model of main memory that the machine does not have. The capacity,
/// dram.mib, is that of either.
bool of_other_memory(const Machine& machine, std::string_view path) {
  const auto begins = [path](std::string_view section) {
    return path.substr(0, section.size()) == section;
  };
  if (machine.memory.model == MemoryModel::kFixed) return begins("dram.") && path != "dram.mib";
  return begins("memory.") && path != "memory.model";
}

MachineProblem broken(const MachineRule& rule, const Machine& machine) {
  const auto value = [&](std::string_view path) {
    return value_text(*find_machine_key(path), machine);
  };
  std::string text =
      "found " + value(rule.paths.front()) + ", expected " + std::string(rule.expected) + " (";
  for (std::size_t i = 1; i < rule.paths.size(); ++i) {
    if (i > 1) text += ", ";
    text += std::string(rule.paths[i]) + " = " + value(rule.paths[i]);
  }
  return {rule.paths, text + ")"};
}

}  // namespace

const std::vector<MachineRule>& machine_rules() {
  static const std::vector<MachineRule> rules = {
      {{"scratchpad.kib", "array.rows", "array.cols"},
       "room for four tiles of array.rows x max(array.rows, array.cols) bytes",
       scratchpad_holds_tiles},
      {{"scratchpad.banks", "scratchpad.kib", "array.rows", "array.cols"},
       "equal banks of whole rows of max(array.rows, array.cols) bytes",
       scratchpad_rows_are_whole},
      {{"accumulator.kib", "array.rows", "array.cols"},
       "room for two tiles of array.rows x array.cols int32",
       accumulator_holds_tiles},
      {{"accumulator.banks", "accumulator.memories", "accumulator.kib", "array.cols"},
       "equal memories of whole rows of array.cols int32",
       accumulator_rows_are_whole},
      {{"attention.lines", "attention.macs_per_line", "array.rows", "array.cols"},
       "0, or as many lines as make array.rows x array.cols MACs",
       attention_uses_the_macs},
      {{"attention.lines", "attention.macs_per_line"},
       "0, or a line for each of the two engines",
       attention_has_a_line_for_each_engine},
      {{"scratchpad.kib", "attention.query_kib", "attention.key_kib", "attention.value_kib",
        "attention.index_kib"},
       "room for the attention buffers",
       attention_buffers_fit},
      {{"scratchpad.protection", "accumulator.protection", "attention.lines", "unroller.loops",
        "stream.units", "dfx.cores"},
       "\"none\" with attention engines, a loop unroller or another core",
       protection_is_timed},
      {{"array.split", "attention.lines", "unroller.loops", "stream.units", "dfx.cores",
        "dynamic.kind"},
       "\"none\" with attention engines, a loop unroller or another core",
       split_is_of_tiles},
      {{"dma.request_bytes", "dram.row_bytes"}, "at most one DRAM row", request_fits_row},
      {{"noc.node", "noc.columns", "noc.rows"},
       "a node of the mesh, from 0, row by row",
       node_is_on_the_mesh},
      {{"noc.columns", "memory.model"}, "0 with a memory of fixed latency", mesh_has_dram},
      {{"noc.columns", "dfx.cores", "stream.units", "dynamic.kind"},
       "0, or a tile machine",
       mesh_has_tiles},
      {{"memory.model", "dfx.cores"}, "\"dram\" for cores of text generation", ring_has_dram},
      {{"ring.collective", "dfx.parallelism"}, "\"all-gather\" in a pipeline", pipeline_gathers},
      {{"stream.units", "stream.length"},
       "0, or a divisor of the length of a dot product",
       stream_tiles_are_whole},
      {{"stream.weight_bytes", "stream.units", "stream.length"},
       "at most the weights of all dot products",
       stream_buffers_are_whole},
      {{"stream.units", "dfx.cores", "attention.lines", "unroller.loops"},
       "0, or no other core",
       stream_is_alone},
      {{"dynamic.kind", "dfx.cores", "attention.lines", "unroller.loops", "stream.units"},
       "\"none\", or no other core",
       dynamic_is_alone},
      {{"unroller.loops"}, "0 or 2", unroller_is_double},
      {{"unroller.loops", "array.rows", "array.cols"},
       "0, or a square array",
       unroller_array_is_square},
      {{"unroller.loops", "array.dataflow"},
       "0, or a weight-stationary array",
       unroller_array_is_weight_stationary},
      {{"unroller.loops", "dma.request_bytes", "array.rows", "bus.width_bytes"},
       "0, or requests of at least a block's row and a beat",
       unroller_requests_are_blocks},
      {{"unroller.loops", "core.load_queue", "core.compute_queue", "core.store_queue"},
       "0, or at most 32 entries of each class",
       unroller_station_is_small},
      {{"unroller.loops", "dma.outstanding_reads", "dma.outstanding_writes"},
       "0, or at most 64 requests in flight",
       unroller_requests_are_few},
      {{"unroller.loops", "accumulator.banks", "scratchpad.banks"},
       "0, or at most 8 banks of the accumulator and 32 of the scratchpad",
       unroller_banks_are_few},
      {{"l2.kib", "l2.ways", "l2.line_bytes"},
       "0, or whole sets of l2.ways lines of l2.line_bytes",
       l2_sets_are_whole},
      {{"l2.line_bytes", "l2.kib", "dram.row_bytes"}, "at most one DRAM row", l2_line_fits_row},
      {{"dram.bank_groups", "dram.banks"}, "at least one bank in each group", groups_have_banks},
      {{"dram.row_bytes", "dram.bus_bytes", "dram.burst_length"},
       "room for one burst of dram.bus_bytes x dram.burst_length",
       burst_fits_row},
      {{"dram.mib", "dram.channels", "dram.banks", "dram.row_bytes"},
       "whole rows in every bank of every channel",
       dram_rows_are_whole},
      {{"dram.t_ras_ns", "dram.t_rcd_ns"}, "at least dram.t_rcd_ns", row_opens_before_it_closes},
      {{"dram.t_rrd_l_ns", "dram.t_rrd_s_ns"}, "at least dram.t_rrd_s_ns", same_group_is_slower},
      {{"dram.t_refi_ns", "dram.t_rfc_ns", "dram.t_cl_ns", "dram.t_cwl_ns", "dram.t_rcd_ns",
        "dram.t_rp_ns", "dram.t_ras_ns", "dram.t_rtp_ns", "dram.t_wr_ns", "dram.t_wtr_ns",
        "dram.t_ccd_l_ns", "dram.t_rrd_s_ns", "dram.t_rrd_l_ns", "dram.t_faw_ns",
        "dram.burst_length", "dram.mega_transfers"},
       "0 (no refresh), or more than a refresh and one access of all DRAM times together",
       refresh_leaves_time},
      {{"dram.write_low_percent", "dram.write_high_percent"},
       "less than dram.write_high_percent",
       write_queue_empties},
      {{"hbm.row_bytes", "hbm.bus_bytes"},
       "room for a burst of four transfers",
       hbm_burst_fits_row},
      {{"hbm.mib", "hbm.channels", "hbm.banks", "hbm.row_bytes"},
       "whole rows in every bank of every channel",
       hbm_rows_are_whole},
      {{"hbm.t_refi_ns", "hbm.t_rfc_ns", "hbm.t_cl_ns", "hbm.t_rcd_ns", "hbm.t_rp_ns",
        "hbm.t_ras_ns", "hbm.mega_transfers"},
       "0 (no refresh), or more than a refresh and one access of all HBM times together",
       hbm_refresh_leaves_time},
  };
  return rules;
}

std::vector<MachineProblem> machine_problems(const Machine& machine,
                                             const std::vector<std::string_view>& ignored) {
  std::vector<MachineProblem> problems;
  std::vector<std::string_view> bad = ignored;
  for (const MachineKey& key : machine_keys()) {
    if (accepts(key, key.get(machine))) continue;
    bad.push_back(key.path);
    problems.push_back(
        {{key.path}, "found " + value_text(key, machine) + ", expected " + expected(key)});
  }
  for (const MachineRule& rule : machine_rules()) {
    const bool judged = std::none_of(rule.paths.begin(), rule.paths.end(),
                                     [&](std::string_view path) { return names(bad, path); });
    if (judged && !rule.holds(machine)) problems.push_back(broken(rule, machine));
  }
  const Machine standard;
  for (const MachineKey& key : machine_keys()) {
    if (!of_other_memory(machine, key.path) || names(bad, key.path)) continue;
    if (key.get(machine) == key.get(standard)) continue;
    const bool fixed = machine.memory.model == MemoryModel::kFixed;
    problems.push_back({{key.path, "memory.model"},
                        "found " + value_text(key, machine) + ", expected no " +
                            (fixed ? "key of a DRAM, memory.model is \"fixed\""
                                   : "key of a fixed memory, memory.model is \"dram\"")});
  }
  return problems;
}

void validate(const Machine& machine) {
  std::string lines;
  for (const MachineProblem& problem : machine_problems(machine)) {
    if (!lines.empty()) lines += '\n';
    lines += std::string(problem.paths.front()) + ": " + problem.text;
  }
  if (!lines.empty()) throw InputError(lines);
}

}  // namespace systole::hw
