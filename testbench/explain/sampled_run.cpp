#include "testbench/explain/sampled_run.h"

#include <algorithm>
#include <utility>

#include "hw/program/program_image.h"
#include "testbench/run/rtl_blocks.h"
#include "testbench/run/simulation.h"

namespace systole::testbench {
namespace {

/// Of a network of equal layers the first ones, with the operators of the rest.
constexpr double kHeadShare = 0.25;
constexpr double kLeastCycles = 2e6;

/// Of the first inference, without values.
SimulationResult timing_of(const RunSubject& subject, const mapper::Mapping& mapping,
                           const hw::Machine& machine) {
  SimulationOptions options;
  options.functional = false;
  options.bounds = false;
  RtlReport rtl;
  return simulate(subject.graph(), mapping, machine, make_engines(machine, {}, rtl),
                  {subject.inputs().front()}, options);
}

}  // namespace

ProgramHead head_of(const mapper::Mapping& mapping, double cycles) {
  const std::vector<hw::Command>& commands = mapping.program.commands;
  const std::size_t all = commands.size() - 1;  // without kEnd
  // The first operator of the commands from each one on.
  std::vector<std::size_t> first_after(all + 1, mapping.tilings.size());
  for (std::size_t i = all; i-- > 0;) {
    first_after[i] = std::min<std::size_t>(first_after[i + 1], commands[i].op);
  }
  ProgramHead head;
  std::size_t operators = 0;  // that the commands so far belong to
  for (std::size_t i = 0; i < all; ++i) {
    operators = std::max<std::size_t>(operators, commands[i].op + std::size_t{1});
    if (first_after[i + 1] < operators) continue;
    while (head.operators < operators) head.expected += mapping.tilings[head.operators++].cycles;
    head.commands = i + 1;
    if (static_cast<double>(head.expected) >= cycles) return head;
  }
  return head;
}

mapper::Mapping only_head(const mapper::Mapping& mapping, const ProgramHead& head) {
  mapper::Mapping part = mapping;
  part.program.commands.erase(
      part.program.commands.begin() + static_cast<std::ptrdiff_t>(head.commands),
      part.program.commands.end() - 1);
  for (hw::MemoryPiece& piece : part.image) {
    if (piece.address == part.program_address) piece.bytes = hw::encode_program(part.program);
  }
  part.expected_cycles = head.expected;
  return part;
}

SampledRun simulate_run(const RunSubject& subject, const hw::Machine& machine) {
  const SimulationResult result = timing_of(subject, subject.mapping(), machine);
  return {static_cast<double>(result.cycles.front()),
          hw::energy_of(result.events, machine).total()};
}

SampledRun sample_run(const RunSubject& subject, const hw::Machine& machine) {
  const mapper::Mapping& mapping = subject.mapping();
  const auto expected = static_cast<double>(mapping.expected_cycles);
  const ProgramHead head = head_of(mapping, std::max(kLeastCycles, kHeadShare * expected));
  if (head.operators == mapping.tilings.size()) return simulate_run(subject, machine);
  const SimulationResult result = timing_of(subject, only_head(mapping, head), machine);
  return {
      expected * static_cast<double>(result.cycles.front()) / static_cast<double>(head.expected),
      {}};
}

}  // namespace systole::testbench
