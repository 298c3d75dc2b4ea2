#include "testbench/rtl/core/core_limits.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

#include "base/round.h"
#include "hw/array/sum_ports.h"
#include "hw/description/machine_keys.h"
#include "hw/description/machine_text.h"
#include "hw/dma/store_schedule.h"
#include "testbench/rtl/postop/postop_pipeline_unit.h"

namespace systole::testbench {
namespace {

/// Keys that the gates have in one value, beside those of is_built().
constexpr std::string_view kBuiltKeys[] = {"array.rows",
                                           "array.cols",
                                           "array.dataflow",
                                           "array.split",
                                           "scratchpad.kib",
                                           "scratchpad.banks",
                                           "scratchpad.ports",
                                           "scratchpad.protection",
                                           "accumulator.kib",
                                           "accumulator.banks",
                                           "accumulator.ports",
                                           "accumulator.memories",
                                           "accumulator.protection",
                                           "postop.lanes",
                                           "postop.row_statistics",
                                           "preop.lanes",
                                           "dma.request_bytes",
                                           "dma.outstanding_reads",
                                           "dma.outstanding_writes",
                                           "dma.row_bytes",
                                           "bus.width_bytes",
                                           "l2.kib",
                                           "memory.model",
                                           "tlb.entries",
                                           "unroller.loops",
                                           "noc.columns"};

/// Whether the gates have that key in one value.
bool is_built(std::string_view path) {
  const std::string_view section = hw::section_of(path);
  if (section == "backend") return true;
  if (section == "core") return path != "core.clock_mhz";
  return std::find(std::begin(kBuiltKeys), std::end(kBuiltKeys), path) != std::end(kBuiltKeys);
}

/// Columns of a row that a row-wise unit takes: MaxCols of rtl/common/systole_pkg.sv.
constexpr std::uint32_t kRowColumns = 65'536;

/// Whether it is a stage for the end of a chain, behind the pipeline.
bool knows_rows(const hw::Stage& stage) {
  return hw::stage_info(stage.op).row_wise || stage.op == hw::StageOp::kLayerNormApply;
}

std::string stage_problem(const hw::Chain& chain, std::size_t index) {
  const hw::Stage& stage = chain.stages[index];
  const bool last = index + 1 == chain.stages.size();
  if (stage.side != hw::Reduction::kNone && (!last || knows_rows(stage))) {
    return last ? "a side output" : "a side output before the last stage";
  }
  if (knows_rows(stage)) return last ? "" : "expected it to be the last stage";
  if (stage.op == hw::StageOp::kDivideRowSum) return "";
  hw::Stage plain = stage;
  plain.side = hw::Reduction::kNone;
  if (!in_a_slot(plain)) return "the RTL has no such stage";
  if (stage.operand == hw::Operand::kSaved) return "a saved operand";
  if (stage.operand == hw::Operand::kRow) return "an operand from the row statistics";
  return "";
}

std::string chain_problem(const hw::Chain& chain, const CoreSize& size) {
  std::size_t divisions = 0;
  for (std::size_t i = 0; i < chain.stages.size(); ++i) {
    const hw::Stage& stage = chain.stages[i];
    const auto at = [&](const std::string& problem) {
      return "stage " + std::to_string(i + 1) + ", " + std::string(hw::stage_info(stage.op).name) +
             ": " + problem;
    };
    if (const std::string problem = stage_problem(chain, i); !problem.empty()) return at(problem);
    divisions += stage.op == hw::StageOp::kDivideRowSum ? 1 : 0;
    if (divisions > 1 || (divisions == 1 && knows_rows(stage)))
      return at("after a division by row sums");
  }
  const std::size_t ends = !chain.stages.empty() && knows_rows(chain.stages.back()) ? 1 : 0;
  if (chain.stages.size() > size.stages + ends) {
    return std::to_string(chain.stages.size() - ends) + " stages, expected up to " +
           std::to_string(size.stages) + " and perhaps one that knows rows";
  }
  if (hw::tensor_operands(chain) > hw::kStoreTensors) return "more than two tensor operands";
  return "";
}

/// Of a tile of m rows of n elements that is kept in a buffer; `what` it is.
std::string tile_problem(const char* what, std::uint32_t m, std::uint32_t n, hw::DType type,
                         const CoreSize& size) {
  const std::uint64_t lanes = round_up(n, size.lanes);
  const std::uint64_t bytes = m * lanes * hw::bytes_of(type);
  if (bytes <= size.operand_bytes) return "";
  return std::string(what) + " of " + std::to_string(bytes) + " bytes, expected up to " +
         std::to_string(size.operand_bytes);
}

/// Of a chain and the tiles of `m` rows of `n` elements that it works on.
std::string use_problem(const hw::Chain& chain, std::uint32_t m, std::uint32_t n,
                        const CoreSize& size) {
  if (const std::string problem = chain_problem(chain, size); !problem.empty()) return problem;
  if (hw::parameter_words(chain) != 0 && n > size.parameter_columns()) {
    return "parameters of " + std::to_string(n) + " columns, expected up to " +
           std::to_string(size.parameter_columns());
  }
  for (const hw::DType type : hw::tensor_types(chain)) {
    const std::string problem = tile_problem("a tensor operand", m, n, type, size);
    if (!problem.empty()) return problem;
  }
  return "";
}

std::string problem_of(const hw::cmd::Load& load, bool sums, const hw::Program& program,
                       const CoreSize& size) {
  if (load.window) return "a window";
  if (load.packed()) return "weights in groups";
  if (!load.pre) return "";
  if (size.preop == 0) return "stages before the anchor";
  if (sums) return "stages on the way to the accumulator";
  const hw::Chain& chain = hw::chain_of(*load.pre, program);
  if (const std::string problem = use_problem(chain, load.m, load.n, size); !problem.empty()) {
    return problem;
  }
  if (hw::tensor_operands(chain) > 1) return "more than one tensor operand before the anchor";
  return tile_problem("a tile for the stages", load.m, load.n, load.type, size);
}

std::string problem_of(const hw::cmd::Result& result, const hw::Program& program,
                       const CoreSize& size, const hw::Machine::Postop& postop) {
  const hw::Chain& chain = hw::chain_of(result.chain, program);
  if (const std::string problem = use_problem(chain, result.m, result.n, size); !problem.empty()) {
    return problem;
  }
  if (hw::is_row_wise(chain) && (result.n > kRowColumns || result.chain.valid_cols > kRowColumns)) {
    return "a row of more than " + std::to_string(kRowColumns) + " columns";
  }
  if (hw::tensor_operands(chain) == 0) return "";
  const std::uint64_t block = hw::operand_block(result, chain, postop);
  if (block == result.m) return "";
  return "tensor operands of " + std::to_string(result.m) + " rows in blocks of " +
         std::to_string(block) + " (postop.operand_kib = " + std::to_string(postop.operand_kib) +
         "), expected room for all of them, as the RTL has";
}

std::string problem_of(const hw::Command& command, const hw::Program& program, const CoreSize& size,
                       const hw::Machine::Postop& postop) {
  if (const auto* const load = command.as<hw::cmd::Load>())
    return problem_of(*load, command.as<hw::cmd::LoadAccumulator>() != nullptr, program, size);
  if (command.as<hw::cmd::Matmul>() != nullptr) return "";
  if (const auto* const result = command.as<hw::cmd::Result>()) {
    const auto* const store = command.as<hw::cmd::Store>();
    if (store != nullptr && store->encoder) return "an encoder";
    return problem_of(*result, program, size, postop);
  }
  const hw::Opcode opcode = command.opcode();
  const bool known = opcode == hw::Opcode::kHost || opcode == hw::Opcode::kEnd;
  return known ? "" : "the RTL has no unit for it";
}

}  // namespace

hw::Machine core_machine(const CoreSize& size) {
  hw::Machine machine;
  machine.core.load_queue = size.stations[0];
  machine.core.compute_queue = size.stations[1];
  machine.core.store_queue = size.stations[2];
  machine.core.fetch_commands = size.fetch_commands;
  machine.core.chain_slots = size.chain_slots;
  machine.array.rows = machine.array.cols = machine.postop.lanes = size.lanes;
  machine.bus.width_bytes = size.lanes;
  machine.scratchpad.kib = static_cast<std::uint32_t>(size.scratchpad_bytes() / 1024);
  machine.scratchpad.banks = size.banks;
  machine.scratchpad.ports = 1;
  machine.accumulator.kib = static_cast<std::uint32_t>(size.sums() * sizeof(std::int32_t) / 1024);
  machine.accumulator.banks = size.sum_banks;
  machine.accumulator.ports = 2;
  machine.accumulator.memories = hw::SumMemories::kInGates;
  machine.postop.row_statistics = size.statistics;
  machine.preop.lanes = size.preop == 0 ? 0 : size.lanes;
  machine.dma.request_bytes = size.request_bytes;
  machine.dma.outstanding_reads = machine.dma.outstanding_writes = size.outstanding;
  return machine;
}

std::string core_machine_problem(const hw::Machine& machine, const CoreSize& size,
                                 const std::string& source) {
  const hw::Machine built = core_machine(size);
  const std::string whose =
      ", that of the core's RTL, " +
      (source.empty() ? "which is built for preset tiny: systole rtl add makes others" : source);
  const auto differs = [&](const hw::MachineKey& key) {
    return std::string(key.path) + ": found " + hw::value_text(key, machine) + ", expected " +
           hw::value_text(key, built) + whose;
  };
  for (const hw::MachineKey& key : hw::machine_keys()) {
    // Stages before the anchor need not be used.
    if (key.path == "preop.lanes" && machine.preop.lanes == 0) continue;
    if (is_built(key.path) && key.get(machine) != key.get(built)) return differs(key);
  }
  if (machine.core.clock_mhz != machine.bus.clock_mhz) {
    return "core.clock_mhz: found " + std::to_string(machine.core.clock_mhz) + ", expected " +
           std::to_string(machine.bus.clock_mhz) + ", the clock of the bus, which the RTL has";
  }
  return "";
}

std::string core_program_problem(const hw::Program& program, const CoreSize& size,
                                 const hw::Machine::Postop& postop) {
  for (std::size_t i = 0; i < program.commands.size(); ++i) {
    const hw::Command& command = program.commands[i];
    const std::string problem = problem_of(command, program, size, postop);
    if (problem.empty()) continue;
    return "command " + std::to_string(i) + ", " + std::string(hw::name_of(command.opcode())) +
           ": " + problem;
  }
  return "";
}

}  // namespace systole::testbench
