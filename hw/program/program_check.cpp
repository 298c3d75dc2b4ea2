#include <string>
#include <string_view>
#include <unordered_set>

#include "base/error.h"
#include "hw/number/integer.h"
#include "hw/program/command_check.h"
#include "hw/program/program.h"

namespace systole::hw {
namespace {

void check_operator(const Operator& op, const Machine& machine, std::uint64_t dram_bytes) {
  if (static_cast<std::uint8_t>(op.place) > static_cast<std::uint8_t>(Operator::Place::kRing)) {
    throw InputError("place " + std::to_string(static_cast<int>(op.place)) + ", expected 0 to 2");
  }
  if (static_cast<std::uint8_t>(op.type) >= kDTypes) {
    throw InputError("type " + std::to_string(static_cast<int>(op.type)) + ", expected 0 to " +
                     std::to_string(kDTypes - 1));
  }
  const Space space = op.place == Operator::Place::kDram ? Space::kDram : Space::kScratchpad;
  const std::uint64_t size = size_of(space, machine, dram_bytes);
  if (op.rows == 0 || op.cols == 0) return;
  const std::uint32_t rows = op.place == Operator::Place::kRing ? 1 : op.rows;
  if (op.int4 && op.type != DType::kS8) {
    throw InputError("int4 of type " + std::string(name_of(op.type)) + ", expected s8");
  }
  if (op.section != 0 && (op.int4 || op.cols % op.section != 0)) {
    throw InputError("sections of " + std::to_string(op.section) + " columns, expected a part of " +
                     std::to_string(op.cols) + " without int4");
  }
  const std::uint32_t cols = op.int4 ? int4_pairs(op.cols) : op.section_cols();
  const std::uint32_t sections = op.cols / op.section_cols();
  const Int128 extent = (Int128{rows} * sections - 1) * op.pitch + Int128{cols} * bytes_of(op.type);
  if (extent + op.address > size) {
    throw InputError("result at " + std::to_string(op.address) + " exceeds the " +
                     std::to_string(size) + " " + name_of(space));
  }
}

/// Runs a check and prefixes its message with the place.
template <typename Check>
void at_place(const char* kind, std::size_t index, Check check) {
  try {
    check();
  } catch (const InputError& error) {
    throw InputError(std::string(kind) + " " + std::to_string(index) + ": " + error.what());
  }
}

}  // namespace

void check_program(const Program& program, const Machine& machine, std::uint64_t dram_bytes) {
  for (std::size_t i = 0; i < program.chains.size(); ++i) {
    at_place("chain", i, [&] { check_chain(program.chains[i], chain_limits(machine)); });
  }
  for (std::size_t i = 0; i < program.mixes.size(); ++i) {
    at_place("mix", i, [&] { check_head_mix(program.mixes[i]); });
  }
  for (std::size_t i = 0; i < program.host_functions.size(); ++i) {
    at_place("function", i, [&] { check_host_function(program.host_functions[i]); });
  }
  std::unordered_set<std::string_view> names;
  for (std::size_t i = 0; i < program.operators.size(); ++i) {
    at_place("operator", i, [&] {
      const Operator& op = program.operators[i];
      check_operator(op, machine, dram_bytes);
      if (!names.insert(op.name).second) {
        throw InputError("its name is that of an operator before");
      }
    });
  }
  if (program.commands.empty()) throw InputError("no commands, expected at least end");
  CommandCheck check(program, machine, dram_bytes);
  for (std::size_t i = 0; i < program.commands.size(); ++i) {
    const Command& command = program.commands[i];
    CommandCheck::check_end(command, i, program.commands.size());
    check.run(command, i);
    if (command.opcode() != Opcode::kEnd && command.op >= program.operators.size()) {
      throw InputError("command " + std::to_string(i) + " (" +
                       std::string(name_of(command.opcode())) + "): operator " +
                       std::to_string(command.op) + " of " +
                       std::to_string(program.operators.size()));
    }
  }
}

}  // namespace systole::hw
