/// What commands leave in the memories of a core.
#include <cstring>
#include <vector>

#include "hw/kernel/gemm.h"
#include "hw/kernel/row_kernels.h"
#include "hw/program/program_ranges.h"
#include "testbench/rtl/core/core_rtl.h"

namespace systole::testbench {
namespace {

void copy_rows(const std::uint8_t* from, std::size_t from_pitch, std::uint8_t* to,
               std::size_t to_pitch, std::size_t rows, std::size_t bytes) {
  for (std::size_t row = 0; row < rows; ++row) {
    std::memcpy(to + row * to_pitch, from + row * from_pitch, bytes);
  }
}

void execute_matmul(const hw::cmd::Matmul& matmul, CoreState& state) {
  hw::GemmArgs args;
  args.a = state.scratchpad.data() + matmul.a.address;
  args.lda = matmul.a.pitch;
  args.a_unsigned = matmul.a_unsigned;
  args.b = reinterpret_cast<const std::int8_t*>(state.scratchpad.data() + matmul.b.address);
  args.ldb = matmul.b.pitch;
  args.b_transposed = matmul.b_transposed;
  args.c = state.sums.data() + matmul.c.address;
  args.ldc = matmul.c.pitch;
  args.m = matmul.m;
  args.n = matmul.n;
  args.k = matmul.k;
  args.accumulate = matmul.accumulate;
  hw::gemm(args, hw::GemmBackend::kReference);
}

/// What goes through a chain: rows of sums.
struct ChainRows {
  std::size_t m, n;
  const std::int32_t* sums;
  std::size_t pitch;
};

/// The results, row after row.
std::vector<std::uint8_t> through_chain(const hw::ChainUse& use, const ChainRows& of,
                                        const hw::Program& program, CoreState& state) {
  const hw::Chain& chain = hw::chain_of(use, program);
  std::vector<std::int32_t> parameters(hw::parameter_words(chain) * of.n);
  std::memcpy(parameters.data(), state.scratchpad.data() + use.parameters,
              parameters.size() * sizeof(std::int32_t));
  hw::ChainOperands operands;
  std::vector<std::vector<std::uint8_t>> tensors;
  hw::for_each_operand(use, program, [&](const hw::DramTile& tile, hw::DType type) {
    const std::size_t pitch = of.n * hw::bytes_of(type);
    std::vector<std::uint8_t>& rows = tensors.emplace_back(of.m * pitch);
    copy_rows(state.memory.data() + tile.address, tile.pitch, rows.data(), pitch, of.m, pitch);
    operands.tensors.at(tensors.size() - 1) = {rows.data(), pitch};
  });
  std::vector<std::uint8_t> results(of.m * of.n * hw::bytes_of(chain.out));
  operands.row_statistics = state.statistics.data() + use.statistics;
  operands.accumulate_statistics = use.continues;
  operands.valid_cols = use.valid_cols;
  operands.accumulator = of.sums;
  operands.accumulator_pitch = of.pitch;
  operands.parameters = parameters.data();
  operands.out = results.data();
  operands.out_pitch = of.n * hw::bytes_of(chain.out);
  operands.rows = of.m;
  operands.cols = of.n;
  hw::apply_chain(chain, operands);
  return results;
}

void execute_result(const hw::Command& command, const hw::Program& program, CoreState& state) {
  const auto& result = *command.as<hw::cmd::Result>();
  const std::size_t row_bytes = result.n * hw::bytes_of(hw::chain_of(result.chain, program).out);
  const std::vector<std::uint8_t> rows = through_chain(
      result.chain,
      {result.m, result.n, state.sums.data() + result.from.address, result.from.pitch}, program,
      state);
  if (const auto* const store = command.as<hw::cmd::Store>()) {
    copy_rows(rows.data(), row_bytes, state.memory.data() + store->to.address, store->to.pitch,
              result.m, row_bytes);
  } else {
    const hw::LocalTile& to = command.as<hw::cmd::Move>()->to;
    copy_rows(rows.data(), row_bytes, state.scratchpad.data() + to.address, to.pitch, result.m,
              row_bytes);
  }
}

/// A load with stages.
void execute_stages(const hw::cmd::Load& load, const hw::Program& program, CoreState& state) {
  const hw::Chain& chain = hw::chain_of(*load.pre, program);
  std::vector<std::int32_t> values(std::size_t{load.m} * load.n);
  for (std::size_t row = 0; row < load.m; ++row) {
    hw::row::widen(state.memory.data() + load.from.address + row * load.from.pitch, load.type,
                   values.data() + row * load.n, load.n);
  }
  const std::vector<std::uint8_t> rows =
      through_chain(*load.pre, {load.m, load.n, values.data(), load.n}, program, state);
  copy_rows(rows.data(), load.n * hw::bytes_of(chain.out),
            state.scratchpad.data() + load.to.address, load.to.pitch, load.m,
            load.n * hw::bytes_of(chain.out));
}

}  // namespace

void execute(const hw::Program& program, CoreState& state) {
  for (const hw::Command& command : program.commands) {
    if (const auto* const sums = command.as<hw::cmd::LoadAccumulator>()) {
      for (std::size_t row = 0; row < sums->m; ++row) {
        hw::row::widen(state.memory.data() + sums->from.address + row * sums->from.pitch,
                       sums->type, state.sums.data() + sums->to.address + row * sums->to.pitch,
                       sums->n);
      }
    } else if (const auto* const load = command.as<hw::cmd::Load>(); load != nullptr && load->pre) {
      execute_stages(*load, program, state);
    } else if (load != nullptr) {
      copy_rows(state.memory.data() + load->from.address, load->from.pitch,
                state.scratchpad.data() + load->to.address, load->to.pitch, load->m, load->n);
    } else if (const auto* const matmul = command.as<hw::cmd::Matmul>()) {
      execute_matmul(*matmul, state);
    } else if (command.as<hw::cmd::Result>() != nullptr) {
      execute_result(command, program, state);
    }
  }
}

}  // namespace systole::testbench
