#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "hw/engines.h"
#include "hw/postop/postop.h"
#include "tests/hw/postop/random_chain.h"

namespace systole::testbench {

/// Random operands of a chain, and what an engine makes of them.
struct ChainRun {
  /// A rotation gets one column more where `some_cols` is odd.
  ChainRun(const hw::Chain& which, std::size_t some_rows, std::size_t some_cols,
           std::mt19937_64& random)
      : chain(which),
        rows(some_rows),
        cols(some_cols + (hw::has_stage(which, hw::StageOp::kRope) ? some_cols % 2 : 0)),
        accumulator(rows * cols),
        parameters(hw::parameter_words(which) * cols),
        statistics(rows * hw::statistics_words(which)) {
    const unsigned narrow = static_cast<unsigned>(random() % 24);
    for (std::int32_t& value : accumulator) value = static_cast<std::int32_t>(random()) >> narrow;
    for (std::int32_t& value : parameters) value = static_cast<std::int32_t>(random());
    for (std::uint32_t& word : statistics) word = static_cast<std::uint32_t>(random() % 100'000);
    for (const hw::DType type : hw::tensor_types(chain)) {
      tensors.emplace_back(rows * cols * hw::bytes_of(type));
      for (unsigned char& byte : tensors.back()) byte = static_cast<unsigned char>(random());
    }
  }

  struct Result {
    std::vector<unsigned char> out;
    std::vector<std::uint32_t> statistics;
    std::uint64_t cycles;
  };
  [[nodiscard]] Result on(hw::PostopEngine& engine) const {
    Result result{std::vector<unsigned char>(rows * cols * hw::bytes_of(chain.out)), statistics,
                  engine.cycles(chain, rows, cols).total(rows)};
    hw::ChainOperands operands;
    operands.accumulator = accumulator.data();
    operands.accumulator_pitch = cols;
    operands.parameters = parameters.data();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      operands.tensors.at(i) = {tensors[i].data(), tensors[i].size() / rows};
    }
    operands.row_statistics = result.statistics.data();
    operands.out = result.out.data();
    operands.out_pitch = (hw::transposes(chain) ? rows : cols) * hw::bytes_of(chain.out);
    operands.rows = rows;
    operands.cols = cols;
    engine.apply(chain, operands);
    return result;
  }

  hw::Chain chain;
  std::size_t rows, cols;
  std::vector<std::int32_t> accumulator, parameters;
  std::vector<std::uint32_t> statistics;
  std::vector<std::vector<unsigned char>> tensors;
};

/// All post-op blocks that have RTL.
inline hw::Machine::Backends postop_blocks() {
  hw::Machine::Backends backends;
  for (hw::Backend* backend : {&backends.requantizer, &backends.divider, &backends.i_exp,
                               &backends.i_gelu, &backends.softmax_unit, &backends.i_sqrt,
                               &backends.layernorm_unit, &backends.postop_pipeline}) {
    *backend = hw::Backend::kRtl;
  }
  return backends;
}

}  // namespace systole::testbench
