#include "testbench/wave_signals.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "hw/printable.h"
#include "tlm/command_processor.h"
#include "tlm/execution_unit.h"
#include "tlm/host.h"

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
};
constexpr Label kProcessorLabels[] = {
    {CommandProcessor::kIdle, "gray20", "idle"},
    {CommandProcessor::kDispatch, "DarkGreen", "dispatch"},
    {CommandProcessor::kWaitFetch, "firebrick4", "wait for fetch"},
    {CommandProcessor::kWaitStation, "SaddleBrown", "station full"},
    {CommandProcessor::kDrain, "DarkSlateBlue", "drain"},
};
constexpr Label kUnitLabels[] = {
    {ExecutionUnit::kIdle, "gray20", "idle"},
    {ExecutionUnit::kBusy, "DarkGreen", "busy"},
    {ExecutionUnit::kWaitHazard, "firebrick4", "wait"},
};
constexpr Label kHalfLabels[] = {{0, "DarkSlateBlue", "first"}, {1, "SaddleBrown", "second"}};

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

std::vector<WaveSignal> unit_signals(const std::string& path, const std::string& what,
                                     bool uses_accumulator) {
  std::vector<WaveSignal> signals{
      {path + ".state", WaveText::kUnit, false,
       "idle, busy, or waiting until older commands have cleared its command's hazards"},
      {path + ".operator", WaveText::kOperator, false, "operator of the command in the unit"},
      {path + ".command", WaveText::kCommand, false, "command in the unit: " + what},
  };
  if (uses_accumulator) {
    signals.push_back({path + ".accumulator_half", WaveText::kHalf, false,
                       "half of the accumulator that the command works on"});
  }
  return signals;
}

void add_port(std::vector<WaveSignal>& signals, const std::string& path, const std::string& what) {
  signals.push_back({path + ".outstanding", WaveText::kNone, true, what + ": requests in flight"});
  signals.push_back({path + ".bytes", WaveText::kNone, true,
                     what + ": bytes moved so far; its slope is the rate"});
}

std::vector<WaveGroup> make_groups() {
  std::vector<WaveGroup> groups;
  groups.push_back({"Host",
                    3,
                    {{"host.state", WaveText::kHost, false, "what the host CPU does"},
                     {"host.inferences", WaveText::kNone, false, "inferences begun so far"},
                     {"interrupt", WaveText::kNone, false, "the core's interrupt line"}}});
  groups.push_back(
      {"Command processor",
       2,
       {{"core.processor.state", WaveText::kProcessor, false,
         "dispatching a command a cycle, or what it waits for; drain: all are dispatched"},
        {"core.processor.dispatched", WaveText::kNone, true, "commands dispatched so far"},
        {"core.processor.load_queue", WaveText::kNone, true,
         "load commands dispatched and not completed"},
        {"core.processor.compute_queue", WaveText::kNone, true,
         "matmul commands dispatched and not completed"},
        {"core.processor.store_queue", WaveText::kNone, true,
         "store and move commands dispatched and not completed"}}});
  add_port(groups.back().signals, "core.processor.fetch", "instruction fetch");
  groups.push_back({"Load", 4, unit_signals("core.load", "rows x elements", false)});
  add_port(groups.back().signals, "core.load.dma", "reads from memory");
  groups.push_back({"Systolic array", 5, unit_signals("core.array", "m x n x k", true)});
  groups.push_back({"Post-op and store", 7, unit_signals("core.store", "rows x elements", true)});
  add_port(groups.back().signals, "core.store.write_dma", "results written to memory");
  add_port(groups.back().signals, "core.store.read_dma", "tensor operands read from memory");
  groups.push_back(
      {"System bus",
       6,
       {{"bus.read_bytes", WaveText::kNone, true, "bytes read so far, all initiators"},
        {"bus.written_bytes", WaveText::kNone, true, "bytes written so far, all initiators"}}});
  groups.push_back(
      {"DRAM",
       1,
       {{"dram.row_hits", WaveText::kNone, true, "bursts so far that found their row open"},
        {"dram.row_misses", WaveText::kNone, true, "bursts so far that found their bank closed"},
        {"dram.row_conflicts", WaveText::kNone, true,
         "bursts so far that found another row open"}}});
  return groups;
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
  switch (command.opcode) {
    case hw::Opcode::kEnd:
      return "end";
    case hw::Opcode::kMatmul:
      return fmt::format("matmul {}x{}x{}", command.m, command.n, command.k);
    default:
      return fmt::format("{} {}x{}", hw::name_of(command.opcode), command.m, command.n);
  }
}

std::string wave_table(WaveText text, const hw::Program& program) {
  std::string table;
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
      return table_of(kHalfLabels);
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
