#include "testbench/wave/wave_signals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "hw/ring/instruction.h"
#include "tlm/common/wave_states.h"
#include "tlm/core/banked_sram.h"
#include "tlm/core/command_processor.h"
#include "tlm/host/host.h"

namespace systole::testbench {
namespace {

using tlm_model::BankedSram;
using tlm_model::CommandProcessor;
using tlm_model::Host;

struct Label {
  unsigned value;
  std::string_view colour, text;
};

constexpr Label kHostLabels[] = {
    {Host::kSetup, "gray30", "setup"},
    {Host::kWriteInputs, "DarkGreen", "write inputs"},
    {Host::kStart, "DarkSlateBlue", "start core"},
    {Host::kSleep, "gray20", "sleep"},
    {Host::kAnswer, "DarkSlateBlue", "answer interrupt"},
    {Host::kReadOutputs, "SaddleBrown", "read outputs"},
    {Host::kDone, "gray30", "done"},
    {Host::kReadOperands, "SteelBlue4", "read operands"},
    {Host::kCompute, "DarkMagenta", "compute"},
    {Host::kWriteResults, "DarkOliveGreen", "write results"},
};
constexpr Label kProcessorLabels[] = {
    {CommandProcessor::kIdle, "gray20", "idle"},
    {CommandProcessor::kDispatch, "DarkGreen", "dispatch"},
    {CommandProcessor::kWaitFetch, "firebrick4", "wait for fetch"},
    {CommandProcessor::kWaitStation, "SaddleBrown", "station full"},
    {CommandProcessor::kDrain, "DarkSlateBlue", "drain"},
    {CommandProcessor::kWaitHost, "SteelBlue4", "host prepares"},
    {CommandProcessor::kHostCall, "DarkMagenta", "host operator"},
};
/// By the number of the client.
constexpr std::string_view kClientNames[] = {"load", "array", "post-op"};
static_assert(std::size(kClientNames) == static_cast<std::size_t>(BankedSram::Client::kClients));
constexpr Label kHalfLabels[] = {{0, "DarkSlateBlue", "first"}, {1, "SaddleBrown", "second"}};

/// Whether there is a label for each of `states` values, in their order.
template <std::size_t N>
constexpr bool covers(const Label (&labels)[N], std::size_t states) {
  for (std::size_t i = 0; i < N; ++i) {
    if (labels[i].value != i || labels[i].text.empty()) return false;
  }
  return N == states;
}
static_assert(covers(kHostLabels, Host::kStates));
static_assert(covers(kProcessorLabels, CommandProcessor::kStates));
static_assert(covers(kHalfLabels, 2));

/// GTKWave's own text for a number in high impedance, which is how a VCD says that there is none.
constexpr char kNoValue[] = "XXX ?gray20?-\n";

/// Dark, so that white text is readable on them; neighbouring operators differ.
constexpr std::array<std::string_view, 8> kPalette = {
    "DarkSlateBlue", "DarkGreen", "SaddleBrown", "DarkMagenta",
    "DarkCyan",      "DarkRed",   "SteelBlue4",  "DarkOliveGreen"};

std::string_view colour_of(std::uint32_t op) { return kPalette[op % kPalette.size()]; }

/// Work is green, data on a bus or in a memory blue or brown, what costs time red; others differ.
std::string_view colour_of_state(std::string_view state) {
  constexpr std::string_view kColours[][2] = {
      {"idle", "gray20"},         {"busy", "DarkGreen"},         {"in_flight", "DarkSlateBlue"},
      {"waiting", "firebrick4"},  {"granted", "DarkGreen"},      {"in_use", "DarkGreen"},
      {"sddmm", "DarkGreen"},     {"spmm", "DarkCyan"},          {"weight_preload", "DarkMagenta"},
      {"drain", "DarkSlateBlue"}, {"fill", "DarkSlateBlue"},     {"read", "DarkGreen"},
      {"write", "SaddleBrown"},   {"activate", "DarkSlateBlue"}, {"precharge", "DarkMagenta"},
      {"latency", "SteelBlue4"},  {"interval", "SteelBlue4"},    {"refresh", "gray30"},
      {"hit", "DarkGreen"},       {"merged", "DarkCyan"},        {"write_back", "SaddleBrown"}};
  for (const auto& [name, colour] : kColours) {
    if (name == state) return colour;
  }
  return "firebrick4";
}

std::string spaced(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string state_table() {
  std::string table;
  for (std::size_t i = 0; i < tlm_model::kWaveStates.size(); ++i) {
    const std::string_view name = tlm_model::kWaveStates[i];
    table += fmt::format("{} ?{}?{}\n", i, colour_of_state(name), spaced(name));
  }
  return table;
}

/// Sets of clients by their bits.
std::string client_table() {
  std::string table = "0 ?gray20?-\n";
  for (unsigned set = 1; set < 1U << std::size(kClientNames); ++set) {
    std::string text;
    for (std::size_t i = 0; i < std::size(kClientNames); ++i) {
      if ((set >> i & 1U) == 0) continue;
      text += (text.empty() ? "" : " + ") + std::string(kClientNames[i]);
    }
    table += fmt::format("{} ?{}?{}\n", set, colour_of(set), text);
  }
  return table;
}

template <typename Enum>
std::string names_table(std::size_t count) {
  std::string table;
  for (std::size_t i = 0; i < count; ++i) {
    table += fmt::format("{} ?{}?{}\n", i, colour_of(static_cast<std::uint32_t>(i)),
                         name_of(static_cast<Enum>(i)));
  }
  return table;
}

template <std::size_t N>
std::string table_of(const Label (&labels)[N]) {
  std::string table;
  for (const Label& label : labels) {
    table += fmt::format("{} ?{}?{}\n", label.value, label.colour, label.text);
  }
  return table;
}

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
  for (const char* unit : {"gelu", "exponential", "norm", "rope", "transposer"}) {
    const std::string path = std::string("core.store.") + unit, label = unit;
    group.signals.push_back(state(path + ".state", label, "busy while a command needs it"));
    group.signals.push_back(boxes(path + ".operator", label + ": operator",
                                  "operator of that command", WaveText::kOperator));
    group.signals.push_back(
        boxes(path + ".command", label + ": command", "that command", WaveText::kCommand));
  }
  group.signals.push_back(
      state("core.store.encoder.state", "encoder", "its lines mix the heads of a row"));
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
  return {host_group(),
          processor_group(),
          load,
          array,
          loops,
          store,
          functional_units(),
          attention_group(),
          banks("scratchpad", "Scratchpad", 3),
          banks("accumulator", "Accumulator", 3),
          tlb,
          bus_group(),
          l2,
          dram,
          transactions_group(),
          dram_banks(),
          ring_core_group(),
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

const std::vector<WaveTable>& wave_tables() {
  static const std::vector<WaveTable> tables = {
      {WaveText::kHost, ".host.txt"},
      {WaveText::kProcessor, ".processor.txt"},
      {WaveText::kState, ".states.txt"},
      {WaveText::kClients, ".clients.txt"},
      {WaveText::kInitiator, ".initiators.txt"},
      {WaveText::kHalf, ".halves.txt"},
      {WaveText::kInstruction, ".instructions.txt"},
      {WaveText::kPhase, ".phases.txt"},
      {WaveText::kOperator, ".operators.txt", true},
      {WaveText::kCommand, ".commands.txt", true},
  };
  return tables;
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

std::string describe(const hw::Command& command) {
  const hw::CommandShape shape = hw::shape_of(command);
  switch (command.opcode()) {
    case hw::Opcode::kEnd:
      return "end";
    case hw::Opcode::kMatmul:
      return fmt::format("matmul {}x{}x{}", shape.m, shape.n, shape.k);
    default:
      return fmt::format("{} {}x{}", hw::name_of(command.opcode()), shape.m, shape.n);
  }
}

std::string wave_table(WaveText text, const hw::Program& program,
                       const std::vector<std::string>& initiators) {
  std::string table = kNoValue;
  switch (text) {
    case WaveText::kNone:
      break;
    case WaveText::kHost:
      return table_of(kHostLabels);
    case WaveText::kProcessor:
      return table_of(kProcessorLabels);
    case WaveText::kState:
      return state_table();
    case WaveText::kClients:
      return client_table();
    case WaveText::kInitiator:
      for (std::size_t i = 0; i < initiators.size(); ++i) {
        table += fmt::format("{} ?{}?{}\n", i, colour_of(static_cast<std::uint32_t>(i)),
                             hw::printable(initiators[i]));
      }
      break;
    case WaveText::kHalf:
      return table + table_of(kHalfLabels);
    case WaveText::kInstruction:
      return table + names_table<hw::dfx::Opcode>(hw::dfx::kOpcodes);
    case WaveText::kPhase:
      return table + names_table<hw::dfx::Phase>(hw::dfx::kPhases);
    case WaveText::kOperator:
      for (std::uint32_t op = 0; op < program.operators.size(); ++op) {
        table += fmt::format("{} ?{}?{}\n", op, colour_of(op),
                             hw::printable(program.operators[op].name));
      }
      break;
    case WaveText::kCommand:
      for (std::size_t i = 0; i < program.commands.size(); ++i) {
        const hw::Command& command = program.commands[i];
        table += fmt::format("{} ?{}?{} {}\n", i, colour_of(command.op), i, describe(command));
      }
      break;
  }
  return table;
}

}  // namespace systole::testbench
