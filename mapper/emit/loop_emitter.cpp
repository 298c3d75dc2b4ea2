#include "mapper/emit/loop_emitter.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "base/round.h"

namespace systole::mapper {
namespace {

/// Whether the first stage of a matmul's chain is a bias from which the sums may as well begin. The
/// stage saturates, the accumulator wraps around: no sum may come that far. The saved accumulator
/// is what the sums are without the bias. Without values (a mere shape) the bias counts as one that
/// fits, as those of trained layers do.
bool begins_with_bias(const Group& group) {
  const std::vector<hw::Stage>& stages = group.chain.stages;
  if (stages.empty() || !hw::is_bias(stages.front())) return false;
  const bool saved = std::any_of(stages.begin(), stages.end(), [](const hw::Stage& stage) {
    return stage.operand == hw::Operand::kSaved;
  });
  if (saved) return false;
  if (group.parameters.empty()) return true;
  const std::int64_t product = (group.matmul()->a_unsigned ? 255 : 128) * 128;
  const std::int64_t most = std::numeric_limits<std::int32_t>::max() - group.k() * product;
  return std::all_of(group.parameters.begin(), group.parameters.begin() + group.n(),
                     [&](std::int64_t bias) { return std::abs(bias) <= most; });
}

}  // namespace

std::uint32_t AccumulatorTurn::take(const Tiling& tiling, const Share& share,
                                    const hw::Machine& machine) {
  if (!tiling.two_results) return 0;
  second = !second;
  return (second ? 0 : narrow(whole_share(machine).sums_end)) + narrow(share.sums_begin);
}

Group LoopEmitter::without_bias(const Group& group) {
  Group rest = group;
  bias_.reset();
  if (!begins_with_bias(group)) return rest;
  rest.chain.stages.erase(rest.chain.stages.begin());
  hw::SharedVector<std::int32_t>& values = rest.parameters;
  const std::uint32_t bytes = group.n() * 4;
  const auto* const row =
      values.empty() ? nullptr : reinterpret_cast<const std::uint8_t*>(values.data());
  // The unroller loads a matrix of sums: here the same row again and again.
  const bool matrix = unrolls(rest);
  bias_ = to_.constants.add_tile(row, matrix ? 0 : bytes, matrix ? group.m() : 1, bytes, bytes,
                                 operand_alignment());
  if (!values.empty()) values = values.part(group.n(), values.size() - group.n());
  return rest;
}

void LoopEmitter::load_bias(const Loop& loop, const GroupWriter& writer) const {
  hw::cmd::LoadAccumulator load;
  load.type = hw::DType::kS32;
  // A pitch of 0: the same row again and again.
  load.from = {*bias_ + std::uint64_t{loop.tile.col} * 4, 0};
  load.m = loop.tile.rows;
  load.n = loop.tile.cols;
  load.to = loop.c;
  writer.add(load);
}

std::uint64_t LoopEmitter::operand_alignment() const {
  return to_.machine.unroller.loops != 0 ? to_.machine.tlb.page_bytes : kDramRowAlignment;
}

bool LoopEmitter::unrolls(const Group& group) const {
  if (to_.machine.unroller.loops == 0 || group.matmul()->b_transposed || group.matmul()->a_unsigned)
    return false;
  return hw::loop_takes(group.chain) && !group.pre && !group.window &&
         group.sections.encoders.empty();
}

void LoopEmitter::emit_unrolled(const Tiling& tiling, const GroupWriter& writer) {
  const Group& group = writer.group();
  const model::View& view_b = group.matmul()->b;
  const hw::DramTile b = row_major(view_b, 0, 0);
  for (std::uint32_t row = 0; row < group.m(); row += tiling.m) {
    for (std::uint32_t col = 0; col < group.n(); col += tiling.n) {
      for (std::uint32_t k0 = 0; k0 < group.k(); k0 += tiling.k) {
        hw::cmd::Loop loop;
        loop.chain = writer.chain();
        loop.m = std::min(tiling.m, group.m() - row);
        loop.n = std::min(tiling.n, group.n() - col);
        loop.k = std::min(tiling.k, group.k() - k0);
        loop.a = to_.dram_tile(group.a, row, k0);
        loop.b = to_.near(view_b, {b.address + std::uint64_t{k0} * b.pitch + col, b.pitch});
        if (bias_ && k0 == 0) {
          const std::uint32_t pitch = group.n() * 4;
          loop.d = to_.near(view_b,
                            {*bias_ + std::uint64_t{row} * pitch + std::uint64_t{col} * 4, pitch});
        }
        loop.accumulate = k0 > 0;
        if (k0 + loop.k == group.k()) loop.c = to_.dram_tile(group.out, row, col);
        writer.add(loop);
      }
    }
  }
}

void LoopEmitter::emit(const Group& with_bias, const Tiling& tiling, const Share& share,
                       AccumulatorTurn& turn) {
  const Group group = without_bias(with_bias);
  GroupWriter writer(to_, group, group.macs());
  if (unrolls(group)) return emit_unrolled(tiling, writer);
  const std::uint32_t half = to_.machine.scratchpad.kib * 1024 / 2;
  const std::uint32_t request =
      to_.machine.dma.row_bytes == 0 ? to_.machine.dma.request_bytes : to_.machine.dma.row_bytes;
  for (std::uint32_t row = 0; row < group.m(); row += tiling.m) {
    for (std::uint32_t col = 0; col < group.n(); col += tiling.n) {
      Loop loop{};
      loop.tile = {row, col, std::min(tiling.m, group.m() - row),
                   std::min(tiling.n, group.n() - col)};
      loop.c = {turn.take(tiling, share, to_.machine),
                narrow(round_up(loop.tile.cols, to_.machine.array.cols))};
      loop.chunk = narrow(round_up(request, to_.machine.array.rows));
      for (loop.k0 = 0; loop.k0 < group.k(); loop.k0 += tiling.k) {
        loop.ks = std::min(tiling.k, group.k() - loop.k0);
        loop.begin = second_scratchpad_ ? half : 0;
        loop.end = loop.begin + half;
        second_scratchpad_ = !second_scratchpad_;
        const std::size_t first = to_.program.commands.size();
        emit_loop(loop, writer);
        to_.program.commands[first].issue = hw::Issue::kLoop;
      }
    }
  }
}

hw::DramTile LoopEmitter::row_major(const model::View& view, std::uint32_t row, std::uint32_t col) {
  const model::Tensor& tensor = to_.graph.tensors[view.tensor];
  if (tensor.kind != model::Tensor::Kind::kConstant) return to_.dram_tile(view, row, col);
  const auto [known, is_new] = whole_weights_.try_emplace(view.tensor, 0);
  if (is_new) {
    known->second =
        to_.constants.add_tile(tensor.data.empty() ? nullptr : tensor.data.data(), tensor.cols,
                               tensor.rows, tensor.cols, tensor.cols, operand_alignment());
  }
  return {known->second + std::uint64_t{view.row + row} * tensor.cols + view.col + col,
          tensor.cols};
}

/// Loads the columns k .. k + chunk of `rows` rows, which the array reads a block of columns at a
/// time: a separate run in the scratchpad, so that no other chunk has to wait for its readers.
void LoopEmitter::load_chunk_of_rows(const Loop& loop, const model::View& view, std::uint32_t row,
                                     std::uint32_t rows, std::uint32_t k, std::uint32_t to,
                                     const GroupWriter& writer) {
  hw::cmd::Load load;
  load.m = rows;
  load.n = std::min(loop.chunk, loop.ks - k);
  load.to = {to, narrow(round_up(load.n, to_.machine.array.rows))};
  if (writer.group().window) {  // of A: B is not transposed then
    writer.read_tile(row, loop.k0 + k, load);
  } else {
    load.from = row_major(view, row, loop.k0 + k);
  }
  writer.add(load);
}

void LoopEmitter::emit_loop(const Loop& loop, GroupWriter& writer) {
  const Group& group = writer.group();
  const MatmulAnchor& product = *group.matmul();
  const Tile& tile = loop.tile;
  const std::uint32_t block = to_.machine.array.rows;
  const std::uint32_t deep = narrow(round_up(loop.ks, block));
  const std::uint32_t b_pitch = narrow(round_up(tile.cols, to_.machine.array.cols));
  const std::uint32_t a_end = loop.begin + tile.rows * deep;
  const std::uint32_t b =
      product.b_transposed ? loop.end - tile.cols * deep : loop.end - deep * b_pitch;
  const bool last_loop = loop.k0 + loop.ks == group.k();

  // Parameters reside between A and B or, without room there, on A's first chunk once it has been
  // read. That holds up the loads after it as the unroller does, which keeps two loops in flight.
  const std::uint32_t parameter_bytes =
      last_loop ? 4 * hw::parameter_words(group.chain) * tile.cols : 0;
  const std::uint32_t after_a = narrow(round_up(a_end, hw::kParameterAlignment));
  const bool fits = after_a + parameter_bytes <= b;
  const std::uint32_t last_chunk = (loop.ks - 1) / loop.chunk * loop.chunk;
  const bool late = !fits && tile.rows * last_chunk < parameter_bytes;
  std::optional<hw::cmd::Load> parameters;
  if (parameter_bytes != 0) {
    parameters = writer.parameter_load(false, tile, tile.cols);
    parameters->to.address = fits ? after_a : loop.begin;
  }

  if (bias_ && loop.k0 == 0) load_bias(loop, writer);
  hw::cmd::Matmul matmul;
  matmul.a_unsigned = product.a_unsigned;
  matmul.b_transposed = product.b_transposed;
  matmul.m = tile.rows;
  matmul.n = tile.cols;
  matmul.c = loop.c;
  for (std::uint32_t k = 0; k < loop.ks; k += block) {
    const std::uint32_t in_chunk = k % loop.chunk;
    const std::uint32_t chunk = k - in_chunk;
    const std::uint32_t pitch = std::min(loop.chunk, deep - chunk);
    if (in_chunk == 0) {
      load_chunk_of_rows(loop, group.a, tile.row, tile.rows, k, loop.begin + tile.rows * chunk,
                         writer);
    }
    matmul.k = std::min(block, loop.ks - k);
    matmul.a = {loop.begin + tile.rows * chunk + in_chunk, pitch};
    matmul.accumulate = bias_ || loop.k0 + k > 0;
    if (product.b_transposed) {
      matmul.b = {b + tile.cols * chunk + in_chunk, pitch};
      if (in_chunk == 0) {
        load_chunk_of_rows(loop, product.b, tile.col, tile.cols, k, b + tile.cols * chunk, writer);
      }
    } else {
      hw::cmd::Load load;
      load.m = matmul.k;
      load.n = tile.cols;
      load.to = matmul.b = {b + k * b_pitch, b_pitch};
      load.from = row_major(product.b, loop.k0 + k, tile.col);
      writer.add(load);
    }
    if (last_loop && k + block >= loop.ks) {
      emit_last_step(loop, matmul, parameters, late, writer);
    } else {
      writer.add(matmul);
    }
  }
}

/// Row block by row block: its last matmul, and its result. `parameters` are loaded before, or,
/// if `late`, after all matmuls.
void LoopEmitter::emit_last_step(const Loop& loop, hw::cmd::Matmul matmul,
                                 const std::optional<hw::cmd::Load>& parameters, bool late,
                                 GroupWriter& writer) const {
  const auto load_parameters = [&] {
    if (parameters) writer.add(*parameters);
  };
  const std::uint32_t a = matmul.a.address;
  const auto for_blocks = [&](auto visit) {
    for (std::uint32_t row = 0; row < loop.tile.rows; row += to_.machine.array.rows) {
      visit(row, std::min(to_.machine.array.rows, loop.tile.rows - row));
    }
  };
  const auto multiply = [&](std::uint32_t row, std::uint32_t rows) {
    matmul.m = rows;
    matmul.a.address = a + row * matmul.a.pitch;
    matmul.c.address = loop.c.address + row * loop.c.pitch;
    writer.add(matmul);
  };
  const auto deliver = [&](std::uint32_t row, std::uint32_t rows) {
    writer.add_result({loop.tile.row + row, loop.tile.col, rows, loop.tile.cols},
                      {loop.c.address + row * loop.c.pitch, loop.c.pitch},
                      parameters ? parameters->to.address : 0);
  };
  if (late) {
    for_blocks(multiply);
    load_parameters();
    for_blocks(deliver);
    return;
  }
  load_parameters();
  for_blocks([&](std::uint32_t row, std::uint32_t rows) {
    multiply(row, rows);
    deliver(row, rows);
  });
}

}  // namespace systole::mapper
