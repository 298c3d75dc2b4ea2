#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "hw/engines.h"
#include "hw/postop.h"
#include "tests/hw/postop_oracle.h"

namespace systole::testbench {

/// Random operands of a chain, and what an engine makes of them.
struct ChainRun {
  ChainRun(const hw::Chain& which, std::size_t rows, std::size_t cols, std::mt19937_64& random)
      : chain(which),
        accumulator(rows * cols),
        parameters(hw::parameter_words(which) * cols),
        sums(rows) {
    const unsigned narrow = static_cast<unsigned>(random() % 24);
    for (std::int32_t& value : accumulator) value = static_cast<std::int32_t>(random()) >> narrow;
    for (std::int32_t& value : parameters) value = static_cast<std::int32_t>(random());
    for (std::uint32_t& sum : sums) sum = static_cast<std::uint32_t>(random() % 100'000);
    hw::DType type = hw::DType::kS8;
    for (const hw::Stage& stage : chain.stages) {
      if (stage.op == hw::StageOp::kAddTensor) type = stage.tensor;
    }
    tensor_pitch = cols * hw::bytes_of(type);
    tensor.resize(rows * tensor_pitch);
    for (unsigned char& byte : tensor) byte = static_cast<unsigned char>(random());
  }

  struct Result {
    std::vector<unsigned char> out;
    std::vector<std::uint32_t> sums;
    std::uint64_t cycles;
  };
  [[nodiscard]] Result on(hw::PostopEngine& engine) const {
    const std::size_t rows = sums.size();
    const std::size_t cols = accumulator.size() / rows;
    Result result{std::vector<unsigned char>(rows * cols * hw::bytes_of(chain.out)), sums,
                  engine.cycles(chain, rows, cols).total(rows)};
    hw::ChainOperands operands;
    operands.accumulator = accumulator.data();
    operands.accumulator_pitch = cols;
    operands.parameters = parameters.data();
    operands.tensor = tensor.data();
    operands.tensor_pitch = tensor_pitch;
    operands.row_statistics = result.sums.data();
    operands.out = result.out.data();
    operands.out_pitch = cols * hw::bytes_of(chain.out);
    operands.rows = rows;
    operands.cols = cols;
    engine.apply(chain, operands);
    return result;
  }

  hw::Chain chain;
  std::vector<std::int32_t> accumulator, parameters;
  std::vector<std::uint32_t> sums;
  std::vector<unsigned char> tensor;
  std::size_t tensor_pitch = 0;
};

/// All post-op blocks that have RTL.
inline hw::Machine::Backends postop_blocks() {
  hw::Machine::Backends backends;
  for (hw::Backend* backend :
       {&backends.requantizer, &backends.i_exp, &backends.i_gelu, &backends.softmax_unit,
        &backends.i_sqrt, &backends.layernorm_unit}) {
    *backend = hw::Backend::kRtl;
  }
  return backends;
}

}  // namespace systole::testbench
