#include "hw/program/command_check.h"

#include <algorithm>
#include <limits>
#include <variant>

#include "base/error.h"
#include "base/units.h"
#include "hw/function/layernorm.h"
#include "hw/number/weight_groups.h"
#include "hw/program/program_ranges.h"

namespace systole::hw {

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
  opcode_ = command.opcode();
  if (opcode_ == Opcode::kEnd) return;
  std::visit([&](const auto& work) { check(work); }, command.work);
  const auto* const attention = command.as<cmd::Attention>();
  for_each_range(command, program_, [&](const Range& range) {
    // Attention claims the local memories as a whole, however large they are.
    const bool local = range.space != Space::kDram;
    if (attention == nullptr || !local) check_range(range);
  });
  if (attention != nullptr) masks_.run(*attention, failing());
}

void CommandCheck::check_end(const Command& command, std::size_t index, std::size_t commands) {
  const bool last = index + 1 == commands;
  if ((command.opcode() == Opcode::kEnd) == last) return;
  throw InputError("command " + std::to_string(index) + " (" +
                   std::string(name_of(command.opcode())) +
                   "): " + (last ? "the last command is not end" : "end, but commands follow it"));
}

void CommandCheck::fail(const std::string& what) const {
  throw InputError("command " + std::to_string(index_) + " (" + std::string(name_of(opcode_)) +
                   "): " + what);
}

void CommandCheck::check_shape(std::uint32_t m, std::uint32_t n, std::uint32_t k) const {
  const auto positive = [this](const char* name, std::uint32_t value) {
    if (value == 0) fail(std::string(name) + " is 0, expected at least 1");
  };
  positive("m", m);
  positive("n", n);
  positive("k", k);
}

void CommandCheck::check_chain_index(std::size_t chain) const {
  if (chain < program_.chains.size()) return;
  fail("chain " + std::to_string(chain) + " of " + std::to_string(program_.chains.size()));
}

void CommandCheck::check_near(const char* name, const DramTile& tile) const {
  if (tile.address <= std::numeric_limits<std::uint32_t>::max()) return;
  fail(std::string(name) + " at " + std::to_string(tile.address) + ", expected below 4 GiB");
}

void CommandCheck::check_written_rows(const char* name, std::uint64_t pitch,
                                      const WrittenRows& rows) const {
  if (rows.rows > 1 && pitch < rows.bytes) {
    fail(std::string(name) + " " + std::to_string(pitch) + ", expected at least the " +
         std::to_string(rows.bytes) + " of a written row");
  }
}

void CommandCheck::check_pitch(const char* name, std::uint64_t pitch, std::uint64_t row) const {
  if (pitch >= row) return;
  fail(std::string(name) + " " + std::to_string(pitch) + ", expected at least the " +
       std::to_string(row) + " of a row");
}

void CommandCheck::check(const cmd::End& /*end*/) const {}

void CommandCheck::check(const cmd::Load& load) const {
  check_shape(load.m, load.n);
  if (load.window) check_window_tile(load, false);
  if (load.packed()) check_packed(load);
  if (load.pre) {
    check_pre(load, false);
  } else if (bytes_of(load.type) != 1) {
    fail("type is " + std::string(name_of(load.type)) +
         ", expected elements of one byte: it has no stages");
  }
  check_written_rows("a_pitch", load.to.pitch, {load.m, load.n});
}

void CommandCheck::check(const cmd::LoadAccumulator& load) const {
  check_shape(load.m, load.n);
  if (load.packed()) fail("packed weights, expected them in the scratchpad");
  if (load.window) check_window_tile(load, true);
  if (load.pre) check_pre(load, true);
  check_written_rows("c_pitch", load.to.pitch, {load.m, load.n});
}

void CommandCheck::check_window_tile(const cmd::Load& load, bool sums) const {
  const Window& window = load.window->window;
  try {
    check_window(window);
  } catch (const InputError& error) {
    fail("window: " + std::string(error.what()));
  }
  if (load.pre) fail("a window and stages, expected one of them");
  if (bytes_of(load.type) != 1) {
    fail("type is " + std::string(name_of(load.type)) +
         ", expected elements of one byte under a window");
  }
  if (sums == (window.gather == Gather::kPatches)) {
    fail("gather is " + std::string(name_of(window.gather)) + ", expected " +
         (sums ? "maximum or sum" : "patches"));
  }
  const auto inside = [this](const char* name, std::uint64_t first, std::uint64_t count,
                             std::uint64_t all) {
    if (first + count <= all) return;
    fail(std::string(name) + " " + std::to_string(first) + " to " + std::to_string(first + count) +
         " of the " + std::to_string(all) + " that the window gathers");
  };
  inside("rows", load.window->row, load.m, window.rows());
  inside("columns", load.window->col, load.n, window.cols());
}

void CommandCheck::check_packed(const cmd::Load& load) const {
  if (machine_.dma.expander_lanes == 0) {
    fail("the machine's loads expand no weights (dma.expander_lanes is 0)");
  }
  if (load.pre || load.window) fail("packed weights and stages or a window, expected one of them");
  if (load.type != DType::kS8) {
    fail("type is " + std::string(name_of(load.type)) + ", expected s8 of packed weights");
  }
  if (load.m % kGroupWeights != 0) {
    fail("m is " + std::to_string(load.m) + ", expected a multiple of " +
         std::to_string(kGroupWeights) + " rows of packed weights");
  }
}

void CommandCheck::check_pre(const cmd::Load& load, bool sums) const {
  if (machine_.preop.lanes == 0) {
    fail("the machine's loads have no stages (preop.lanes is 0)");
  }
  check_chain_index(load.pre->chain);
  const Chain& chain = chain_of(*load.pre, program_);
  try {
    check_pre_chain(chain);
  } catch (const InputError& error) {
    fail("its chain " + std::string(error.what()));
  }
  if (sums ? chain.out != DType::kS32 : bytes_of(chain.out) != 1) {
    fail("its chain gives " + std::string(name_of(chain.out)) + ", expected " +
         (sums ? "s32" : "elements of one byte"));
  }
  if (const std::uint64_t rows = staged_rows(load.n, load.type, chain, machine_.postop);
      load.m > rows) {
    fail("m is " + std::to_string(load.m) + ", expected at most " + std::to_string(rows) +
         " rows, for which the stages have room (postop.operand_kib = " +
         std::to_string(machine_.postop.operand_kib) + ")");
  }
  check_chain_use(*load.pre, load.n);
}

void CommandCheck::check_chain_use(const ChainUse& use, std::uint32_t n) const {
  const Chain& chain = chain_of(use, program_);
  if (is_row_wise(chain) && n > kLayerNormMaxLength) {
    fail("row of " + std::to_string(n) + " elements through a row-wise chain, expected " +
         "at most " + std::to_string(kLayerNormMaxLength));
  }
  if (use.valid_cols != 0 && (!uses_valid_cols(chain) || use.valid_cols > n)) {
    fail("kept is " + std::to_string(use.valid_cols) + ", expected 0" +
         (uses_valid_cols(chain) ? " to " + std::to_string(n)
                                 : " without a softmax or a causal mask"));
  }
  if (has_stage(chain, StageOp::kRope) && n % 2 != 0) {
    fail("n is " + std::to_string(n) + ", expected pairs of columns for rope");
  }
  const bool has_side = std::any_of(chain.stages.begin(), chain.stages.end(),
                                    [](const Stage& s) { return s.side != Reduction::kNone; });
  if (use.continues && !has_side) fail("continues, but has no side output");
  if (parameter_words(chain) != 0 && use.parameters % kParameterAlignment != 0) {
    fail("parameters at " + std::to_string(use.parameters) + ", expected a multiple of " +
         std::to_string(kParameterAlignment));
  }
  check_operand_tiles(use, chain, n);
}

void CommandCheck::check_operand_tiles(const ChainUse& use, const Chain& chain,
                                       std::uint32_t n) const {
  const std::vector<DType> types = tensor_types(chain);
  const std::size_t further = types.empty() ? 0 : types.size() - 1;
  const std::size_t tiles = program_.operand_tiles.size();
  if (further == 0 ? use.operands != 0 : use.operands > tiles || further > tiles - use.operands) {
    fail("operands is " + std::to_string(use.operands) + ", expected " +
         (further == 0 ? "0: its chain has no more than one tensor operand"
                       : std::to_string(further) + " from there on, of " + std::to_string(tiles)));
  }
  std::uint64_t bytes = 0;
  for (const DType type : types) bytes += std::uint64_t{n} * bytes_of(type) * kOperandRows;
  if (bytes > machine_.postop.operand_kib * kKib) {
    fail("postop.operand_kib is " + std::to_string(machine_.postop.operand_kib) +
         ", expected room for " + std::to_string(kOperandRows) + " rows of its tensor operands, " +
         std::to_string(bytes) + " bytes");
  }
}

void CommandCheck::check(const cmd::Matmul& matmul) const {
  check_shape(matmul.m, matmul.n, matmul.k);
  check_written_rows("c_pitch", matmul.c.pitch, {matmul.m, matmul.n});
  if (matmul.b_int4 && machine_.array.split == ArraySplit::kNone) {
    fail("int4 weights, but array.split is \"none\"");
  }
  if (matmul.a_int4) check_int4_activations(matmul);
  check_pitch("a_pitch", matmul.a.pitch, a_shape(matmul).cols);
  check_pitch("b_pitch", matmul.b.pitch, b_shape(matmul).cols);
  check_pitch("c_pitch", matmul.c.pitch, matmul.n);
}

void CommandCheck::check_int4_activations(const cmd::Matmul& matmul) const {
  if (machine_.array.split != ArraySplit::kBoth) {
    fail("int4 activations, but array.split is not \"both\"");
  }
  if (!matmul.b_int4) fail("int4 activations, expected int4 weights, too");
  if (matmul.a_unsigned) fail("int4 activations without a sign, expected signed ones");
}

void CommandCheck::check_result(const cmd::Result& result) const {
  check_shape(result.m, result.n);
  check_chain_index(result.chain.chain);
  check_chain_use(result.chain, result.n);
  if (result.int4) check_int4_result(result);
}

void CommandCheck::check_int4_result(const cmd::Result& result) const {
  if (machine_.array.split != ArraySplit::kBoth) {
    fail("int4 results, but array.split is not \"both\"");
  }
  const Chain& chain = chain_of(result.chain, program_);
  if (chain.out != DType::kS8 || transposes(chain)) {
    fail("int4 results of a chain that gives " + std::string(name_of(chain.out)) +
         (transposes(chain) ? ", transposed" : "") + ", expected s8, row by row");
  }
}

void CommandCheck::check(const cmd::Store& store) const {
  check_result(store);
  if (store.encoder) check_encoder(store);
  if (store.encoder && store.int4) fail("an encoder and int4 results, expected one of them");
  check_written_rows("dram_pitch", store.to.pitch, written_rows(store, program_));
}

void CommandCheck::check(const cmd::Move& move) const {
  check_result(move);
  check_written_rows("b_pitch", move.to.pitch, written_rows(move, program_));
}

void CommandCheck::check(const cmd::HostCall& call) const {
  check_shape(call.m, call.n);
  if (machine_.host.operators == HostOperators::kNone) {
    fail("the machine's host computes nothing (host.operators is \"none\")");
  }
  if (call.function >= program_.host_functions.size()) {
    fail("function " + std::to_string(call.function) + " of " +
         std::to_string(program_.host_functions.size()));
  }
  const HostFunction& function = program_.host_functions[call.function];
  if (call.n > kHostMaxColumns) {
    fail("rows of " + std::to_string(call.n) + " elements, expected at most " +
         std::to_string(kHostMaxColumns));
  }
  if (!function.gamma.empty() && function.gamma.size() != call.n) {
    fail("n is " + std::to_string(call.n) + ", expected the " +
         std::to_string(function.gamma.size()) + " columns of its function");
  }
  const bool keeps =
      call.valid_cols == 0 || (function.op == HostOp::kSoftmax && call.valid_cols <= call.n);
  if (!keeps) {
    fail("kept is " + std::to_string(call.valid_cols) + ", expected 0, or of a softmax at most n");
  }
  if (machine_.host.operators == HostOperators::kRouting && function.op != HostOp::kRoute) {
    fail("the machine's host does not compute " + std::string(name_of(function.op)) +
         " (host.operators is \"routing\")");
  }
  if (function.active > call.n) {
    fail("n is " + std::to_string(call.n) + ", expected at least the " +
         std::to_string(function.active) + " active columns of its function");
  }
  if (operands_of(function.op) == 1 && !(call.operand == DramTile{})) {
    fail("an operand is given, but " + std::string(name_of(function.op)) + " does not use it");
  }
  check_near("operand", call.operand);
  check_written_rows("result_pitch", call.out.pitch,
                     {call.m, std::uint64_t{call.n} * bytes_of(function.out)});
}

void CommandCheck::check(const cmd::Loop& loop) const {
  check_shape(loop.m, loop.n, loop.k);
  if (machine_.unroller.loops == 0) fail("the machine has no unroller (unroller.loops is 0)");
  check_chain_index(loop.chain);
  if (!loop_takes(program_.chains[loop.chain])) {
    fail("its chain has operands, works on whole rows or transposes");
  }
  const std::uint64_t side = machine_.array.rows;
  const auto blocks = [side](std::uint64_t elements) { return (elements + side - 1) / side; };
  const std::uint64_t m = blocks(loop.m), n = blocks(loop.n), k = blocks(loop.k);
  const std::uint64_t scratchpad = machine_.scratchpad.kib * kKib / (side * side) / 2;
  const std::uint64_t accumulator = machine_.accumulator.kib * kKib / (4 * side * side) / 2;
  if ((m + n) * k > scratchpad || m * n > accumulator) {
    fail("A and B of " + std::to_string((m + n) * k) + " blocks and C of " + std::to_string(m * n) +
         ", expected at most half of the scratchpad, " + std::to_string(scratchpad) +
         ", and of the accumulator, " + std::to_string(accumulator));
  }
  if (loop.c.address != 0) {
    check_written_rows("result_pitch", loop.c.pitch, written_rows(loop, program_));
  }
  check_near("right", loop.b);
  check_near("sums", loop.d);
}

void CommandCheck::check(const cmd::Attention& attention) const {
  check_shape(attention.queries, attention.n);
  check_attention_command(attention, program_, machine_, failing());
  check_near("key", attention.key);
  check_near("value", attention.value);
  check_written_rows("out_pitch", attention.out.pitch,
                     {attention.queries, std::uint64_t{attention.n} * attention.heads});
}

void CommandCheck::check_encoder(const cmd::Store& store) const {
  if (!machine_.attention.encodes()) {
    fail("the machine has no encoder (attention.lines is " +
         std::to_string(machine_.attention.lines) + ", attention.encoder_lines is " +
         std::to_string(machine_.attention.encoder_lines) + ")");
  }
  check_mix_index(*store.encoder, 1, program_, failing());
  const HeadMix& mix = program_.mixes[*store.encoder];
  const Chain& chain = chain_of(store.chain, program_);
  if (chain.out != DType::kS8 || is_row_wise(chain) || transposes(chain)) {
    fail(
        "its encoder follows a chain that gives another type than s8, works on whole rows or "
        "transposes");
  }
  if (store.n % mix.in_heads != 0) {
    fail("n is " + std::to_string(store.n) + ", expected a multiple of the encoder's " +
         std::to_string(mix.in_heads) + " heads");
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
