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

void execute_result(const hw::Command& command, const hw::Program& program, CoreState& state) {
  const auto& result = *command.as<hw::cmd::Result>();
  const hw::Chain& chain = hw::chain_of(result.chain, program);
  const std::size_t row_bytes = result.n * hw::bytes_of(chain.out);
  std::vector<std::int32_t> parameters(hw::parameter_words(chain) * result.n);
  std::memcpy(parameters.data(), state.scratchpad.data() + result.chain.parameters,
              parameters.size() * sizeof(std::int32_t));
  std::vector<std::uint8_t> rows(result.m * row_bytes);
  hw::ChainOperands operands;
  std::vector<std::vector<std::uint8_t>> tensors;
  hw::for_each_operand(result.chain, program, [&](const hw::DramTile& tile, hw::DType type) {
    const std::size_t pitch = result.n * hw::bytes_of(type);
    std::vector<std::uint8_t>& rows = tensors.emplace_back(result.m * pitch);
    copy_rows(state.memory.data() + tile.address, tile.pitch, rows.data(), pitch, result.m, pitch);
    operands.tensors.at(tensors.size() - 1) = {rows.data(), pitch};
  });
  operands.row_statistics = state.statistics.data() + result.chain.statistics;
  operands.accumulate_statistics = result.chain.continues;
  operands.valid_cols = result.chain.valid_cols;
  operands.accumulator = state.sums.data() + result.from.address;
  operands.accumulator_pitch = result.from.pitch;
  operands.parameters = parameters.data();
  operands.out = rows.data();
  operands.out_pitch = row_bytes;
  operands.rows = result.m;
  operands.cols = result.n;
  hw::apply_chain(chain, operands);
  if (const auto* const store = command.as<hw::cmd::Store>()) {
    copy_rows(rows.data(), row_bytes, state.memory.data() + store->to.address, store->to.pitch,
              result.m, row_bytes);
  } else {
    const hw::LocalTile& to = command.as<hw::cmd::Move>()->to;
    copy_rows(rows.data(), row_bytes, state.scratchpad.data() + to.address, to.pitch, result.m,
              row_bytes);
  }
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
    } else if (const auto* const load = command.as<hw::cmd::Load>()) {
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
