#include "mapper/emitter.h"

#include <algorithm>
#include <string>
#include <utility>

#include "hw/error.h"
#include "mapper/round.h"
#include "mapper/stream_plan.h"

namespace systole::mapper {
Emitter::Emitter(const model::Graph& graph, const hw::Machine& machine, const Placement& placement,
                 ConstantImage& constants, hw::Program& program)
    : graph_(graph),
      machine_(machine),
      placement_(placement),
      constants_(constants),
      program_(program) {}

hw::Command Emitter::command(hw::Opcode opcode) const {
  hw::Command result;
  result.opcode = opcode;
  result.op = op_;
  return result;
}

std::uint64_t Emitter::address(const model::View& view, std::uint32_t row,
                               std::uint32_t col) const {
  const Location& where = location(view);
  return where.address + std::uint64_t{view.row + row} * where.pitch +
         (view.col + col) * hw::bytes_of(graph_.tensors[view.tensor].type);
}

void Emitter::begin(const Group& group, std::uint64_t macs) {
  group_ = &group;
  op_ = narrow(program_.operators.size());
  chain_ = static_cast<std::uint16_t>(program_.chains.size());
  known_tiles_.clear();
  known_parameters_.clear();
  program_.chains.push_back(group.chain);
  if (group.pre) program_.chains.push_back(group.pre->chain);
  first_mix_ = next_mix();
  for (const MixLayer& encoder : group.sections.encoders) program_.mixes.push_back(encoder.mix);
  add_operator(group, macs);
}

void Emitter::add_operator(const Group& group, std::uint64_t macs) {
  const model::View& written = group.written();
  const Location& out = location(written);
  hw::Operator result;
  result.name = group.name;
  result.tensor = graph_.tensors[written.tensor].name;
  result.place = out.place == Location::Place::kScratchpad ? hw::Operator::Place::kScratchpad
                                                           : hw::Operator::Place::kDram;
  result.type = group.chain.out;
  result.address = address(written, 0, 0);
  result.pitch = out.pitch;
  result.rows = written.rows;
  result.cols = written.cols;
  result.macs = macs;
  program_.operators.push_back(result);
}

void Emitter::emit(const Group& mapped, const Tiling& tiling, const TilingProblem& problem) {
  const Group& group = tiling.unrolled ? without_bias(mapped) : mapped;
  begin(group, std::uint64_t{group.m()} * group.n() * group.k());
  tiling_ = &tiling;
  const std::uint64_t end = std::uint64_t{machine_.scratchpad.kib} * hw::kKib;
  rings_ = {};
  if (!tiling.unrolled) {
    rings_ = place_slots(stream_plan(machine_, problem, tiling), machine_,
                         end - problem.stream_bytes, end, busy_);
  }
  const std::size_t first = program_.commands.size();
  if (tiling.unrolled) {
    emit_loops(group);
  } else {
    emit_tiles(group, tiling);
  }
  const bool called = machine_.mapper.strategy == hw::MappingStrategy::kGemmini;
  if (called) program_.commands[first].issue = hw::Issue::kCall;
}

void Emitter::emit_tiles(const Group& group, const Tiling& tiling) {
  const auto tile = [&](std::uint32_t row, std::uint32_t col) {
    emit_tile(
        {row, col, std::min(tiling.m, group.m() - row), std::min(tiling.c_cols, group.n() - col)});
  };
  if (tiling.m_outer) {
    for (std::uint32_t row = 0; row < group.m(); row += tiling.m) {
      for (std::uint32_t col = 0; col < group.n(); col += tiling.c_cols) tile(row, col);
    }
  } else {
    for (std::uint32_t col = 0; col < group.n(); col += tiling.c_cols) {
      for (std::uint32_t row = 0; row < group.m(); row += tiling.m) tile(row, col);
    }
  }
}

std::uint32_t Emitter::accumulator_half() {
  const std::uint32_t half = machine_.accumulator.kib * 1024 / 4 / 2;
  if (!tiling_->two_results) return 0;
  second_half_ = !second_half_;
  return second_half_ ? 0 : half;
}

void Emitter::emit_tile(const Tile& tile) {
  const std::uint32_t c = accumulator_half();
  const std::uint32_t c_pitch = narrow(round_up(tile.cols, machine_.array.cols));
  if (group_->has_matmul) {
    emit_matmuls(tile, c, c_pitch);
  } else {
    emit_accumulator_load(tile, c, c_pitch);
  }
  emit_result(tile, c, c_pitch, parameters(tile));
}

void Emitter::emit_matmuls(const Tile& tile, std::uint32_t c, std::uint32_t c_pitch) {
  const auto multiply = [&](std::uint32_t col, std::uint32_t k0) {
    const Tile part{tile.row, tile.col + col, tile.rows, std::min(tiling_->n, tile.cols - col)};
    emit_matmul(part, k0, std::min(tiling_->k, group_->k() - k0), c + col, c_pitch);
  };
  if (tiling_->k_outer) {
    for (std::uint32_t k0 = 0; k0 < group_->k(); k0 += tiling_->k) {
      for (std::uint32_t col = 0; col < tile.cols; col += tiling_->n) multiply(col, k0);
    }
  } else {
    for (std::uint32_t col = 0; col < tile.cols; col += tiling_->n) {
      for (std::uint32_t k0 = 0; k0 < group_->k(); k0 += tiling_->k) multiply(col, k0);
    }
  }
}

void Emitter::emit_matmul(const Tile& part, std::uint32_t k0, std::uint32_t ks, std::uint32_t c,
                          std::uint32_t c_pitch) {
  Operand a, b;
  // A load with stages waits for the operator before; weights do not.
  if (group_->pre) operand_b(k0, ks, part.col, part.cols, b);
  operand_a(part.row, part.rows, k0, ks, a);
  if (!group_->pre) operand_b(k0, ks, part.col, part.cols, b);
  hw::Command matmul = command(hw::Opcode::kMatmul);
  matmul.accumulate = k0 > 0;
  matmul.a_unsigned = group_->a_unsigned;
  matmul.b_transposed = group_->b_transposed;
  matmul.m = part.rows;
  matmul.n = part.cols;
  matmul.k = ks;
  matmul.a = a.address;
  matmul.a_pitch = a.pitch;
  matmul.b = b.address;
  matmul.b_pitch = b.pitch;
  matmul.c = c;
  matmul.c_pitch = c_pitch;
  program_.commands.push_back(matmul);
  const std::uint64_t b_rows = group_->b_transposed ? part.cols : ks;
  busy_ = {{a.address, a.address + std::uint64_t{part.rows} * a.pitch},
           {b.address, b.address + b_rows * b.pitch}};
}

void Emitter::operand_a(std::uint32_t row, std::uint32_t rows, std::uint32_t k0, std::uint32_t ks,
                        Operand& operand) {
  const Location& where = location(group_->a);
  const std::uint64_t from = address(group_->a, row, k0);
  if (where.place == Location::Place::kScratchpad) {
    operand = {narrow(from), where.pitch};
    return;
  }
  operand.pitch = narrow(round_up(ks, machine_.array.rows));
  const TileRing::Place place = rings_.a.take({row, k0});
  operand.address = narrow(place.address);
  if (!place.is_new) return;
  hw::Command load = command(hw::Opcode::kLoad);
  load.dram = from;
  load.dram_pitch = where.pitch;
  load.m = rows;
  load.n = ks;
  load.a_pitch = operand.pitch;
  load.a = operand.address;
  add_pre({row, k0, rows, ks}, load);
  program_.commands.push_back(load);
}

std::uint64_t Emitter::weight_tile(std::uint32_t k0, std::uint32_t ks, std::uint32_t col,
                                   std::uint32_t cols, std::uint32_t pitch) {
  const auto [known, is_new] = known_tiles_.try_emplace({k0, col}, 0);
  if (is_new) {
    const model::Tensor& weight = graph_.tensors[group_->b.tensor];
    const std::size_t row_bytes = weight.cols;
    const bool transposed = group_->b_transposed;
    const std::uint32_t first_row = group_->b.row + (transposed ? col : k0);
    const std::uint32_t first_col = group_->b.col + (transposed ? k0 : col);
    const std::uint8_t* data =
        weight.data.empty() ? nullptr : &weight.data[first_row * row_bytes + first_col];
    known->second =
        constants_.add_tile(data, row_bytes, transposed ? cols : ks, transposed ? ks : cols, pitch);
  }
  return known->second;
}

void Emitter::operand_b(std::uint32_t k0, std::uint32_t ks, std::uint32_t col, std::uint32_t cols,
                        Operand& operand) {
  const bool transposed = group_->b_transposed;
  const std::uint32_t rows_stored = transposed ? cols : ks;
  const std::uint32_t cols_stored = transposed ? ks : cols;
  const std::uint32_t row = transposed ? col : k0;
  const std::uint32_t at = transposed ? k0 : col;
  operand.pitch =
      narrow(round_up(cols_stored, transposed ? machine_.array.rows : machine_.array.cols));
  const Location& where = location(group_->b);
  if (!is_weight(group_->b) && where.place == Location::Place::kScratchpad) {
    operand = {narrow(address(group_->b, row, at)), where.pitch};
    return;
  }
  const TileRing::Place place = rings_.b.take({k0, col});
  operand.address = narrow(place.address);
  if (!place.is_new) return;
  hw::Command load = command(hw::Opcode::kLoad);
  load.a = operand.address;
  load.a_pitch = operand.pitch;
  if (is_weight(group_->b)) {
    load.dram = weight_tile(k0, ks, col, cols, operand.pitch);
    load.m = 1;
    load.n = narrow(std::uint64_t{rows_stored} * operand.pitch);
    load.dram_pitch = load.a_pitch = load.n;
  } else {
    load.dram = address(group_->b, row, at);
    load.dram_pitch = where.pitch;
    load.m = rows_stored;
    load.n = cols_stored;
  }
  program_.commands.push_back(load);
}

void Emitter::emit_accumulator_load(const Tile& tile, std::uint32_t c, std::uint32_t c_pitch) {
  hw::Command load = command(hw::Opcode::kLoadAccumulator);
  load.type = graph_.tensors[group_->a.tensor].type;
  load.dram = address(group_->a, tile.row, tile.col);
  load.dram_pitch = location(group_->a).pitch;
  load.m = tile.rows;
  load.n = tile.cols;
  load.c = c;
  load.c_pitch = c_pitch;
  add_pre(tile, load);
  program_.commands.push_back(load);
}

bool Emitter::encode(const Tile& tile, hw::Command& store) const {
  const std::vector<MixLayer>& encoders = group_->sections.encoders;
  const auto encoder = std::find_if(encoders.begin(), encoders.end(), [&](const MixLayer& layer) {
    return layer.in.col == group_->out.col + tile.col;
  });
  if (encoder == encoders.end()) return false;
  const auto index = static_cast<std::uint16_t>(encoder - encoders.begin());
  store.opcode = hw::Opcode::kStore;
  store.op = op_ + 1 + index;
  store.mix = static_cast<std::uint16_t>(first_mix_ + index);
  store.dram = address(encoder->out, tile.row, 0);
  store.dram_pitch = location(encoder->out).pitch;
  return true;
}

void Emitter::emit_result(const Tile& tile, std::uint32_t c, std::uint32_t c_pitch,
                          std::uint32_t parameters) {
  const Location& out = location(group_->out);
  const bool on_chip = out.place == Location::Place::kScratchpad;
  hw::Command store = command(on_chip ? hw::Opcode::kMove : hw::Opcode::kStore);
  store.chain = chain_;
  store.m = tile.rows;
  store.n = tile.cols;
  store.c = c;
  store.c_pitch = c_pitch;
  store.parameters = parameters;
  const bool transposed = hw::transposes(group_->chain);
  const std::uint64_t to = transposed ? address(group_->out, tile.col, tile.row)
                                      : address(group_->out, tile.row, tile.col);
  const bool encoded = encode(tile, store);
  if (on_chip && !encoded) {
    store.b = narrow(to);
    store.b_pitch = out.pitch;
  } else if (!encoded) {
    store.dram = to;
    store.dram_pitch = out.pitch;
  }
  bind_operands(*group_, tile, store);
  // Tiles of the same rows come one after the other, from the first column on.
  store.accumulate = tile.col != 0 && hw::writes_row_statistics(group_->chain);
  program_.commands.push_back(store);
}

}  // namespace systole::mapper
