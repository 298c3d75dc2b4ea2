#include "hw/program/command_check.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/units.h"
#include "hw/function/layernorm.h"
#include "hw/program/command_fields.h"
#include "hw/program/program_ranges.h"

namespace systole::hw {
namespace {

/// A field of a command by its name, which its opcode must have.
std::uint64_t value_of(const Command& command, std::string_view name) {
  for (const CommandField& field : command_fields()) {
    if (field.name == name && field.used_by(command.opcode)) return field.get(command);
  }
  return 0;
}

}  // namespace

const char* name_of(Space space) {
  switch (space) {
    case Space::kDram:
      return "DRAM bytes";
    case Space::kScratchpad:
      return "scratchpad bytes";
    case Space::kAccumulator:
      return "accumulator elements";
    case Space::kStatistics:
      return "row statistics";
  }
  return "?";
}

std::uint64_t size_of(Space space, const Machine& machine, std::uint64_t dram_bytes) {
  switch (space) {
    case Space::kDram:
      return dram_bytes;
    case Space::kScratchpad:
      return std::uint64_t{machine.scratchpad.kib} * 1024;
    case Space::kAccumulator:
      return std::uint64_t{machine.accumulator.kib} * 1024 / sizeof(std::int32_t);
    case Space::kStatistics:
      return machine.postop.row_statistics;
  }
  return 0;
}

void CommandCheck::run(const Command& command, std::size_t index) {
  index_ = index;
  opcode_ = command.opcode;
  if (static_cast<std::uint8_t>(command.opcode) >= kOpcodes) {
    fail("opcode " + std::to_string(static_cast<int>(command.opcode)) + ", expected 0 to " +
         std::to_string(kOpcodes - 1));
  }
  if (const std::string_view field = misused_field(command); !field.empty()) {
    fail(std::string(field) + " is given, but this opcode does not use it");
  }
  if (command.opcode == Opcode::kEnd) return;
  if (static_cast<std::uint8_t>(command.issue) >= kIssues) {
    fail("issue " + std::to_string(static_cast<int>(command.issue)) + ", expected 0 to " +
         std::to_string(kIssues - 1));
  }
  check_shape(command);
  for_each_range(command, program_, [&](const Range& range) {
    // Attention claims the local memories as a whole, however large they are.
    const bool local = range.space != Space::kDram;
    if (command.opcode != Opcode::kAttention || !local) check_range(range);
  });
  if (command.opcode == Opcode::kAttention) masks_.run(command, failing());
}

void CommandCheck::check_end(const Command& command, std::size_t index, std::size_t commands) {
  const bool last = index + 1 == commands;
  if ((command.opcode == Opcode::kEnd) == last) return;
  throw InputError("command " + std::to_string(index) + " (" +
                   std::string(name_of(command.opcode)) +
                   "): " + (last ? "the last command is not end" : "end, but commands follow it"));
}

void CommandCheck::fail(const std::string& what) const {
  throw InputError("command " + std::to_string(index_) + " (" + std::string(name_of(opcode_)) +
                   "): " + what);
}

void CommandCheck::check_shape(const Command& command) const {
  const auto positive = [this](const char* name, std::uint32_t value) {
    if (value == 0) fail(std::string(name) + " is 0, expected at least 1");
  };
  positive("m", command.m);
  positive("n", command.n);
  if (command.opcode == Opcode::kMatmul) positive("k", command.k);
  if (command.opcode == Opcode::kHost) check_host_command(command);
  if (command.opcode == Opcode::kLoop) check_loop(command);
  if (command.opcode == Opcode::kAttention) {
    check_attention_command(command, program_, machine_, failing());
  }
  if (static_cast<std::uint8_t>(command.type) >= kDTypes) {
    fail("element type " + std::to_string(static_cast<int>(command.type)) + ", expected 0 to " +
         std::to_string(kDTypes - 1));
  }
  if (unit_of(command.opcode) == Unit::kLoad) check_load(command);
  if (command.opcode == Opcode::kStore || command.opcode == Opcode::kMove) {
    check_chain_index(command.chain);
    check_chain_of(command);
    check_encoder(command);
  }
  check_written_rows(command);
}

void CommandCheck::check_chain_index(std::size_t chain) const {
  if (chain < program_.chains.size()) return;
  fail("chain " + std::to_string(chain) + " of " + std::to_string(program_.chains.size()));
}

void CommandCheck::check_load(const Command& command) const {
  if (command.mix == 0) {
    if (command.opcode == Opcode::kLoad && bytes_of(command.type) != 1) {
      fail("type is " + std::string(name_of(command.type)) +
           ", expected elements of one byte: it has no stages");
    }
    if ((command.b | command.parameters | command.statistics | command.tensor |
         command.tensor_pitch | command.k) == 0) {
      return;
    }
    for (const char* const field :
         {"operands", "parameters", "statistics", "tensor", "tensor_pitch", "kept"}) {
      if (value_of(command, field) != 0) fail(std::string(field) + " is given, but no pre");
    }
    return;
  }
  if (machine_.preop.lanes == 0) {
    fail("the machine's loads have no stages (preop.lanes is 0)");
  }
  check_chain_index(command.mix - std::size_t{1});
  const Chain& chain = *chain_of(command, program_);
  try {
    check_pre_chain(chain);
  } catch (const InputError& error) {
    fail("its chain " + std::string(error.what()));
  }
  const bool sums = command.opcode == Opcode::kLoadAccumulator;
  if (sums ? chain.out != DType::kS32 : bytes_of(chain.out) != 1) {
    fail("its chain gives " + std::string(name_of(chain.out)) + ", expected " +
         (sums ? "s32" : "elements of one byte"));
  }
  check_chain_of(command);
}

void CommandCheck::check_chain_of(const Command& command) const {
  const Chain& chain = *chain_of(command, program_);
  if (is_row_wise(chain) && command.n > kLayerNormMaxLength) {
    fail("row of " + std::to_string(command.n) + " elements through a row-wise chain, expected " +
         "at most " + std::to_string(kLayerNormMaxLength));
  }
  if (command.k != 0 && (!uses_valid_cols(chain) || command.k > command.n)) {
    fail("kept is " + std::to_string(command.k) + ", expected 0" +
         (uses_valid_cols(chain) ? " to " + std::to_string(command.n)
                                 : " without a softmax or a causal mask"));
  }
  if (has_stage(chain, StageOp::kRope) && command.n % 2 != 0) {
    fail("n is " + std::to_string(command.n) + ", expected pairs of columns for rope");
  }
  const bool stores = unit_of(command.opcode) == Unit::kStore;
  const bool has_side = std::any_of(chain.stages.begin(), chain.stages.end(),
                                    [](const Stage& s) { return s.side != Reduction::kNone; });
  if (stores && command.accumulate && !has_side) fail("continues, but has no side output");
  if (parameter_words(chain) != 0 && command.parameters % kParameterAlignment != 0) {
    fail("parameters at " + std::to_string(command.parameters) + ", expected a multiple of " +
         std::to_string(kParameterAlignment));
  }
  check_operand_tiles(command, chain);
}

void CommandCheck::check_operand_tiles(const Command& command, const Chain& chain) const {
  const std::vector<DType> types = tensor_types(chain);
  const std::uint32_t first = first_operand_tile(command);
  const std::size_t further = types.empty() ? 0 : types.size() - 1;
  const std::size_t tiles = program_.operand_tiles.size();
  if (further == 0 ? first != 0 : first > tiles || further > tiles - first) {
    fail("operands is " + std::to_string(first) + ", expected " +
         (further == 0 ? "0: its chain has no more than one tensor operand"
                       : std::to_string(further) + " from there on, of " + std::to_string(tiles)));
  }
  std::uint64_t bytes = 0;
  for (const DType type : types) bytes += std::uint64_t{command.n} * bytes_of(type) * kOperandRows;
  if (bytes > machine_.postop.operand_kib * kKib) {
    fail("postop.operand_kib is " + std::to_string(machine_.postop.operand_kib) +
         ", expected room for " + std::to_string(kOperandRows) + " rows of its tensor operands, " +
         std::to_string(bytes) + " bytes");
  }
}

void CommandCheck::check_host_command(const Command& command) const {
  if (machine_.host.operators == HostOperators::kNone) {
    fail("the machine's host computes nothing (host.operators is \"none\")");
  }
  if (command.chain >= program_.host_functions.size()) {
    fail("function " + std::to_string(command.chain) + " of " +
         std::to_string(program_.host_functions.size()));
  }
  const HostFunction& function = program_.host_functions[command.chain];
  if (command.n > kHostMaxColumns) {
    fail("rows of " + std::to_string(command.n) + " elements, expected at most " +
         std::to_string(kHostMaxColumns));
  }
  if (!function.gamma.empty() && function.gamma.size() != command.n) {
    fail("n is " + std::to_string(command.n) + ", expected the " +
         std::to_string(function.gamma.size()) + " columns of its function");
  }
  const bool keeps = command.k == 0 || (function.op == HostOp::kSoftmax && command.k <= command.n);
  if (!keeps) {
    fail("kept is " + std::to_string(command.k) + ", expected 0, or of a softmax at most n");
  }
  if (operands_of(function.op) == 1 && (command.a != 0 || command.a_pitch != 0)) {
    fail("an operand is given, but " + std::string(name_of(function.op)) + " does not use it");
  }
}

void CommandCheck::check_loop(const Command& command) const {
  if (machine_.unroller.loops == 0) fail("the machine has no unroller (unroller.loops is 0)");
  if (command.k == 0) fail("k is 0, expected at least 1");
  check_chain_index(command.chain);
  if (!loop_takes(program_.chains[command.chain])) {
    fail("its chain has operands, works on whole rows or transposes");
  }
  const std::uint64_t side = machine_.array.rows;
  const auto blocks = [side](std::uint64_t elements) { return (elements + side - 1) / side; };
  const std::uint64_t m = blocks(command.m), n = blocks(command.n), k = blocks(command.k);
  const std::uint64_t scratchpad = machine_.scratchpad.kib * kKib / (side * side) / 2;
  const std::uint64_t accumulator = machine_.accumulator.kib * kKib / (4 * side * side) / 2;
  if ((m + n) * k > scratchpad || m * n > accumulator) {
    fail("A and B of " + std::to_string((m + n) * k) + " blocks and C of " + std::to_string(m * n) +
         ", expected at most half of the scratchpad, " + std::to_string(scratchpad) +
         ", and of the accumulator, " + std::to_string(accumulator));
  }
}

void CommandCheck::check_encoder(const Command& command) const {
  if (command.mix == 0) return;
  if (!machine_.attention.encodes()) {
    fail("the machine has no encoder (attention.lines is " +
         std::to_string(machine_.attention.lines) + ", attention.encoder_lines is " +
         std::to_string(machine_.attention.encoder_lines) + ")");
  }
  check_mix_index(command.mix, 1, program_, failing());
  const HeadMix& mix = program_.mixes[command.mix - std::size_t{1}];
  const Chain& chain = program_.chains[command.chain];
  if (chain.out != DType::kS8 || is_row_wise(chain) || transposes(chain)) {
    fail(
        "its encoder follows a chain that gives another type than s8, works on whole rows or "
        "transposes");
  }
  if (command.n % mix.in_heads != 0) {
    fail("n is " + std::to_string(command.n) + ", expected a multiple of the encoder's " +
         std::to_string(mix.in_heads) + " heads");
  }
}

void CommandCheck::check_written_rows(const Command& command) const {
  const bool stores = command.opcode == Opcode::kStore || command.opcode == Opcode::kMove;
  const std::uint64_t rows = stores ? stored_rows(command, program_) : command.m;
  const auto apart = [&](const char* name, std::uint64_t pitch, std::uint64_t width) {
    if (rows > 1 && pitch < width) {
      fail(std::string(name) + " " + std::to_string(pitch) + ", expected at least the " +
           std::to_string(width) + " of a written row");
    }
  };
  const std::uint64_t n = command.n;
  switch (command.opcode) {
    case Opcode::kEnd:
      break;
    case Opcode::kLoad:
      apart("a_pitch", command.a_pitch, n);
      break;
    case Opcode::kLoadAccumulator:
    case Opcode::kMatmul:
      apart("c_pitch", command.c_pitch, n);
      break;
    case Opcode::kStore:
      apart("dram_pitch", command.dram_pitch, stored_row_bytes(command, program_));
      break;
    case Opcode::kAttention:
      apart("out_pitch", command.tensor_pitch, n * command.statistics);
      break;
    case Opcode::kHost:
      apart("result_pitch", command.tensor_pitch,
            n * bytes_of(program_.host_functions[command.chain].out));
      break;
    case Opcode::kLoop:
      if (command.tensor != 0) {
        apart("result_pitch", command.tensor_pitch, stored_row_bytes(command, program_));
      }
      break;
    case Opcode::kMove:
      apart("b_pitch", command.b_pitch, stored_row_bytes(command, program_));
      break;
  }
}

void CommandCheck::check_range(const Range& range) const {
  const std::uint64_t size = size_of(range.space, machine_, dram_bytes_);
  if (range.end > size) {
    fail(std::string(range.write ? "writes " : "reads ") + name_of(range.space) + " " +
         std::to_string(range.begin) + " to " + std::to_string(range.end) + " of " +
         std::to_string(size));
  }
}

}  // namespace systole::hw
