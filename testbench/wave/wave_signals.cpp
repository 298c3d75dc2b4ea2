#include "testbench/wave/wave_signals.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string_view>
#include <utility>

#include "hw/ring/instruction.h"

namespace systole::testbench {
namespace {

WaveSignal boxes(std::string path, std::string label, std::string meaning,
                 WaveText text = WaveText::kNone) {
  return {std::move(path), std::move(label), WaveShape::kBoxes, text, std::move(meaning)};
}
WaveSignal level(std::string path, std::string label, std::string meaning) {
  return {std::move(path), std::move(label), WaveShape::kLevel, WaveText::kNone,
          std::move(meaning)};
}
WaveSignal growth(std::string path, std::string label, std::string meaning) {
  return {std::move(path), std::move(label), WaveShape::kGrowth, WaveText::kNone,
          std::move(meaning)};
}

std::vector<WaveSignal> unit_signals(const std::string& path, const std::string& shape,
                                     bool uses_accumulator) {
  std::vector<WaveSignal> signals{
      boxes(path + ".state", "state", "what it spends its time on, as its account has it",
            WaveText::kState),
      boxes(path + ".operator", "operator", "operator of the command in the unit",
            WaveText::kOperator),
      boxes(path + ".command", "command", "command in the unit: number, opcode, " + shape,
            WaveText::kCommand),
  };
  if (uses_accumulator) {
    signals.push_back(boxes(path + ".accumulator_half", "accumulator half",
                            "half of the accumulator that the command works on", WaveText::kHalf));
  }
  return signals;
}

/// `what` are the requests of a DMA port, `label` one word for them.
void add_port(std::vector<WaveSignal>& signals, const std::string& path, const std::string& label,
              const std::string& what) {
  signals.push_back(level(path + ".outstanding", label + " in flight", what + " in flight"));
  signals.push_back(growth(path + ".bytes", label + ": bytes", "bytes so far of " + what));
}

WaveGroup host_group() {
  return {"Host",
          4,
          {boxes("host.state", "state", "what the host CPU does", WaveText::kHost),
           boxes("host.inferences", "inferences", "inferences begun so far"),
           boxes("interrupt", "interrupt", "the core's interrupt line")}};
}

WaveGroup processor_group() {
  WaveGroup group{
      "Command processor",
      2,
      {boxes("core.processor.state", "state",
             "dispatching a command a cycle, or what it waits for; drain: all are dispatched",
             WaveText::kProcessor),
       growth("core.processor.dispatched", "dispatched", "commands dispatched so far"),
       level("core.processor.load_queue", "loads", "loads dispatched and not completed"),
       level("core.processor.compute_queue", "matmuls", "matmuls dispatched and not completed"),
       level("core.processor.store_queue", "stores",
             "stores and moves dispatched and not completed")}};
  add_port(group.signals, "core.processor.fetch", "fetches", "instruction fetches");
  return group;
}

WaveSignal state(std::string path, std::string label, std::string meaning) {
  return boxes(std::move(path), std::move(label), std::move(meaning), WaveText::kState);
}

WaveGroup functional_units() {
  WaveGroup group{"Functional units of the post-op lanes", 7, {}};
  for (const char* unit : {"gelu", "exponential", "norm", "rope", "transposer", "divider"}) {
    const std::string path = std::string("core.store.") + unit, label = unit;
    group.signals.push_back(state(path + ".state", label, "busy while a command needs it"));
    group.signals.push_back(boxes(path + ".operator", label + ": operator",
                                  "operator of that command", WaveText::kOperator));
    group.signals.push_back(
        boxes(path + ".command", label + ": command", "that command", WaveText::kCommand));
    group.signals.push_back(boxes(path + ".row", label + ": row", "row of the command in it"));
  }
  group.signals.push_back(
      state("core.store.encoder.state", "encoder", "its lines mix the heads of a row"));
  group.signals.push_back(
      boxes("core.store.encoder.row", "encoder: row", "the last row that has come to it"));
  return group;
}

WaveGroup banks(const std::string& memory, const std::string& title, int colour) {
  const std::string path = "core." + memory + ".bank*.";
  return {title,
          colour,
          {state(path + "state", "bank *",
                 "in use, or a unit waits for this bank, which served others (bank conflict)"),
           boxes(path + "clients", "bank *: clients", "who uses its ports", WaveText::kClients),
           growth(path + "words", "bank *: words", "accesses of a port so far")}};
}

WaveGroup attention_group() {
  return {"Attention engines",
          4,
          {state("core.attention.state", "state", "phase of the engines, or what holds them up"),
           boxes("core.attention.head", "head", "head of the tile"),
           boxes("core.attention.query", "query", "first query of the tile"),
           state("core.attention.denser.state", "denser", "its lines have work"),
           state("core.attention.sparser.state", "sparser", "its lines have work"),
           state("core.attention.softmax.state", "softmax", "makes the codes of a tile"),
           state("core.attention.decoder.state", "decoder", "decodes tokens of Q and K"),
           level("core.attention.*.outstanding", "*: in flight", "its requests in flight"),
           growth("core.attention.*.bytes", "*: bytes", "bytes so far of its requests")}};
}

WaveGroup bus_group() {
  return {
      "System bus",
      6,
      {boxes("bus.request", "request channel", "initiator whose request it takes",
             WaveText::kInitiator),
       boxes("bus.read_data", "read data", "initiator whose data it moves", WaveText::kInitiator),
       boxes("bus.write_data", "write data", "initiator whose data it moves", WaveText::kInitiator),
       state("bus.*.state", "*",
             "a request waits for the channel, is granted, or waits for its answer"),
       growth("bus.read_bytes", "read bytes", "bytes read so far, all initiators"),
       growth("bus.written_bytes", "written bytes", "bytes written so far, all initiators")}};
}

WaveGroup transactions_group() {
  const std::string path = "bus.*.";
  return {"System bus: transactions",
          6,
          {boxes(path + "address", "* address", "of the last transaction in flight"),
           boxes(path + "bytes", "* bytes", "of the last transaction in flight"),
           state(path + "direction", "* direction", "read or write, of those in flight"),
           level(path + "waiting", "* waiting", "requests that wait for the request channel"),
           level(path + "in_flight", "* in flight", "transactions granted and not answered"),
           growth(path + "transactions", "* transactions", "transactions granted so far")},
          true};
}

WaveGroup mesh_group() {
  return {"Mesh",
          6,
          {state("noc.link_*.state", "link *", "a packet is on the link between two routers"),
           state("noc.from_*.state", "from *", "a packet is on the link to its router"),
           state("noc.to_*.state", "to *", "a packet is on the link from its router")}};
}

WaveGroup dram_banks() {
  const std::string path = "dram.channel*.bank*.";
  return {"DRAM: banks",
          1,
          {state(path + "state", "channel * bank *",
                 "commands and data; a refresh shows with the next request of its channel"),
           boxes(path + "row", "channel * bank *: row", "the open row")},
          true};
}

/// Of a core in a ring of FP16 cores.
WaveGroup ring_core_group() {
  WaveGroup group{
      "Units", 5, {boxes("core.phase", "phase", "what the core works on", WaveText::kPhase)}};
  for (std::size_t i = 0; i < hw::dfx::kUnits; ++i) {
    const std::string unit(hw::dfx::name_of(static_cast<hw::dfx::Unit>(i)));
    group.signals.push_back(state("core." + unit + ".state", unit,
                                  "what the unit spends its time on, as its account has it"));
    group.signals.push_back(boxes("core." + unit + ".instruction", unit + ": instruction",
                                  "instruction in the unit", WaveText::kInstruction));
  }
  return group;
}

WaveGroup ring_memory_group() {
  std::vector<WaveSignal> signals;
  for (const std::string memory : {"hbm", "ddr"}) {
    const std::string path = "core." + memory + ".channel*.", label = memory + " channel *";
    signals.push_back(state(path + "state", label, "what its data bus spends its time on"));
    signals.push_back(state(path + "direction", label + ": direction", "of the data on it"));
    signals.push_back(boxes(path + "bank", label + ": bank", "bank of the data on it"));
    signals.push_back(state(path + "bank*.state", label + " bank *", "commands and data"));
    signals.push_back(boxes(path + "bank*.row", label + " bank *: row", "the open row"));
  }
  return {"Memories", 1, std::move(signals), true};
}

WaveGroup ring_links_group() {
  return {"Links of the ring",
          6,
          {state("to_right*.state", "right of core *", "a packet is on the line"),
           growth("to_right*.bytes", "right of core *: bytes", "bytes of packets so far"),
           state("to_left*.state", "left of core *", "a packet is on the line"),
           growth("to_left*.bytes", "left of core *: bytes", "bytes of packets so far"),
           state("pcie.state", "PCIe", "bytes of the host are on the line")}};
}

WaveGroup in_overview(WaveGroup group) {
  group.overview = true;
  return group;
}

std::vector<WaveGroup> make_groups() {
  WaveGroup load{"Load", 4, unit_signals("core.load", "rows x elements", false)};
  load.signals.push_back(growth("core.load.rows", "rows", "rows that have arrived so far"));
  add_port(load.signals, "core.load.dma", "reads", "reads from memory");
  WaveGroup array{"Systolic array", 5, unit_signals("core.array", "m x n x k", true)};
  array.signals.push_back(boxes("core.array.fold", "fold", "fold of the command"));
  const WaveGroup loops{
      "Loop unroller", 5, {state("core.loops.state", "state", "what it spends its time on")}};
  WaveGroup store{"Post-op and store", 7, unit_signals("core.store", "rows x elements", true)};
  store.signals.push_back(boxes("core.store.row", "row", "row of the command in the chain"));
  add_port(store.signals, "core.store.write_dma", "writes", "writes of results to memory");
  add_port(store.signals, "core.store.read_dma", "operands", "reads of tensor operands");
  const WaveGroup tlb{
      "TLB",
      2,
      {state("core.tlb.state", "state", "hit, or miss until the address is known"),
       boxes("core.tlb.page", "page", "the page that is asked for"),
       growth("core.tlb.misses", "misses", "misses so far"),
       level("core.*_walker.outstanding", "* walker: in flight", "its reads in flight"),
       growth("core.*_walker.bytes", "* walker: bytes", "bytes so far of its reads")}};
  const WaveGroup l2{"L2 cache",
                     3,
                     {state("l2.bank*.state", "bank *", "what it serves"),
                      boxes("l2.bank*.address", "bank *: line", "address of the line"),
                      growth("l2.hits", "hits", "accesses so far that found their line"),
                      growth("l2.misses", "misses", "accesses so far that did not")}};
  const WaveGroup dram{
      "DRAM",
      1,
      {state("dram.channel*.state", "channel *", "what its data bus spends its time on"),
       state("dram.channel*.direction", "channel *: direction", "of the data on it"),
       boxes("dram.channel*.bank", "channel *: bank", "bank of the data on it"),
       state("dram.answers", "answers", "of a memory of fixed latency"),
       growth("dram.row_hits", "row hits", "bursts so far that found their row open"),
       growth("dram.row_misses", "row misses", "bursts so far that found their bank closed"),
       growth("dram.row_conflicts", "row conflicts", "bursts so far that found another row open")}};
  return {in_overview(host_group()),
          in_overview(processor_group()),
          in_overview(load),
          in_overview(array),
          in_overview(loops),
          in_overview(store),
          functional_units(),
          attention_group(),
          banks("scratchpad", "Scratchpad", 3),
          banks("accumulator", "Accumulator", 3),
          tlb,
          bus_group(),
          mesh_group(),
          l2,
          dram,
          transactions_group(),
          dram_banks(),
          in_overview(ring_core_group()),
          ring_memory_group(),
          ring_links_group()};
}

}  // namespace

const std::vector<WaveGroup>& wave_groups() {
  static const std::vector<WaveGroup> groups = make_groups();
  return groups;
}

const WaveSignal* find_wave_signal(const std::string& path) {
  for (const WaveGroup& group : wave_groups()) {
    for (const WaveSignal& signal : group.signals) {
      if (label_of(signal, path)) return &signal;
    }
  }
  return nullptr;
}

std::optional<std::string> label_of(const WaveSignal& signal, const std::string& path) {
  std::vector<std::string> parts;  // of the path, for each star
  std::string_view pattern = signal.path, rest = path;
  for (std::size_t star = pattern.find('*'); star != pattern.npos; star = pattern.find('*')) {
    const bool is_number = star > 0 && std::isalpha(pattern[star - 1]) != 0;
    if (rest.substr(0, star) != pattern.substr(0, star)) return {};
    rest.remove_prefix(star);
    pattern.remove_prefix(star + 1);
    // Up to what comes after it; the last star takes what the end of the pattern leaves.
    const std::size_t next = pattern.find('*');
    const std::size_t end = next == pattern.npos
                                ? rest.size() - std::min(pattern.size(), rest.size())
                                : rest.find(pattern.substr(0, next));
    if (end == 0 || end == rest.npos) return {};
    parts.emplace_back(rest.substr(0, end));
    if (is_number && parts.back().find_first_not_of("0123456789") != std::string::npos) return {};
    rest.remove_prefix(end);
  }
  if (rest != pattern) return {};
  std::string label;
  std::size_t part = 0;
  for (const char c : signal.label) {
    if (c == '*') {
      label += parts.at(part++);
    } else {
      label += c;
    }
  }
  return label;
}

}  // namespace systole::testbench
