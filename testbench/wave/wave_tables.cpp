#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "base/printable.h"
#include "hw/ring/instruction.h"
#include "testbench/wave/wave_signals.h"
#include "tlm/common/wave_states.h"
#include "tlm/core/banked_sram.h"
#include "tlm/core/command_processor.h"
#include "tlm/host/host.h"

/// Texts for the values of signals.
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
}  // namespace

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
