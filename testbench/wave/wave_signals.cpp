#include "testbench/wave/wave_signals.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "tlm/core/command_processor.h"
#include "tlm/core/execution_unit.h"
#include "tlm/host/host.h"

namespace systole::testbench {
namespace {

using tlm_model::CommandProcessor;
using tlm_model::ExecutionUnit;
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
constexpr Label kUnitLabels[] = {
    {ExecutionUnit::kIdle, "gray20", "idle"},
    {ExecutionUnit::kBusy, "DarkGreen", "busy"},
    {ExecutionUnit::kWaitHazard, "firebrick4", "wait"},
};
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
static_assert(covers(kUnitLabels, ExecutionUnit::kStates));
static_assert(covers(kHalfLabels, 2));

/// GTKWave's own text for a number in high impedance, which is how a VCD says that there is none.
constexpr char kNoValue[] = "XXX ?gray20?-\n";

template <std::size_t N>
std::string table_of(const Label (&labels)[N]) {
  std::string table;
  for (const Label& label : labels) {
    table += fmt::format("{} ?{}?{}\n", label.value, label.colour, label.text);
  }
  return table;
}

/// Dark, so that white text is readable on them; neighbouring operators differ.
constexpr std::array<std::string_view, 8> kPalette = {
    "DarkSlateBlue", "DarkGreen", "SaddleBrown", "DarkMagenta",
    "DarkCyan",      "DarkRed",   "SteelBlue4",  "DarkOliveGreen"};

std::string_view colour_of(std::uint32_t op) { return kPalette[op % kPalette.size()]; }

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
      boxes(path + ".state", "state",
            "idle, busy, or waiting until older commands have cleared its command's hazards",
            WaveText::kUnit),
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

std::vector<WaveGroup> make_groups() {
  WaveGroup load{"Load", 4, unit_signals("core.load", "rows x elements", false)};
  add_port(load.signals, "core.load.dma", "reads", "reads from memory");
  const WaveGroup array{"Systolic array", 5, unit_signals("core.array", "m x n x k", true)};
  WaveGroup store{"Post-op and store", 7, unit_signals("core.store", "rows x elements", true)};
  add_port(store.signals, "core.store.write_dma", "writes", "writes of results to memory");
  add_port(store.signals, "core.store.read_dma", "operands", "reads of tensor operands");
  const WaveGroup bus{
      "System bus",
      6,
      {growth("bus.read_bytes", "read bytes", "bytes read so far, all initiators"),
       growth("bus.written_bytes", "written bytes", "bytes written so far, all initiators")}};
  const WaveGroup dram{
      "DRAM",
      1,
      {growth("dram.row_hits", "row hits", "bursts so far that found their row open"),
       growth("dram.row_misses", "row misses", "bursts so far that found their bank closed"),
       growth("dram.row_conflicts", "row conflicts", "bursts so far that found another row open")}};
  return {host_group(), processor_group(), load, array, store, bus, dram};
}

}  // namespace

const std::vector<WaveGroup>& wave_groups() {
  static const std::vector<WaveGroup> groups = make_groups();
  return groups;
}

const std::vector<WaveTable>& wave_tables() {
  static const std::vector<WaveTable> tables = {
      {WaveText::kHost, ".host.txt"},          {WaveText::kProcessor, ".processor.txt"},
      {WaveText::kUnit, ".units.txt"},         {WaveText::kHalf, ".halves.txt"},
      {WaveText::kOperator, ".operators.txt"}, {WaveText::kCommand, ".commands.txt"},
  };
  return tables;
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

std::string wave_table(WaveText text, const hw::Program& program) {
  std::string table = kNoValue;
  switch (text) {
    case WaveText::kNone:
      break;
    case WaveText::kHost:
      return table_of(kHostLabels);
    case WaveText::kProcessor:
      return table_of(kProcessorLabels);
    case WaveText::kUnit:
      return table_of(kUnitLabels);
    case WaveText::kHalf:
      return table + table_of(kHalfLabels);
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
