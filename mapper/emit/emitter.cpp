#include "mapper/emit/emitter.h"

#include <algorithm>
#include <utility>

#include "base/round.h"
#include "mapper/place/sharing.h"
#include "mapper/tile/stream_plan.h"

namespace systole::mapper {
std::uint64_t TiledGroup::commands() const {
  const std::uint64_t tiles = ceil_div(problem.m, tiling.m) * ceil_div(problem.n, tiling.c_cols);
  if (problem.k == 0) return 3 * tiles;
  return tiles * (2 + 3 * ceil_div(tiling.c_cols, tiling.n) * ceil_div(problem.k, tiling.k));
}

Emitter::Emitter(const model::Graph& graph, const hw::Machine& machine, const Placement& placement,
                 ConstantImage& constants, hw::Program& program)
    : graph_(graph),
      machine_(machine),
      placement_(placement),
      constants_(constants),
      program_(program) {}

Emitter::Emitter(const Emitter& other, ConstantImage& constants, hw::Program& program)
    : Emitter(other.graph_, other.machine_, other.placement_, constants, program) {
  busy_ = other.busy_;
  halves_ = other.halves_;
  second_scratchpad_ = other.second_scratchpad_;
}

std::uint64_t Emitter::address(const model::View& view, std::uint32_t row,
                               std::uint32_t col) const {
  const Location& where = location(view);
  return where.at_row(std::uint64_t{view.row} + row, where.pitch) +
         (view.col + col) * hw::bytes_of(graph_.tensors[view.tensor].type);
}

Emitter::Work Emitter::begin(const Group& group, std::uint64_t macs) {
  Work work;
  work.group = &group;
  work.op = narrow(program_.operators.size());
  work.chain = static_cast<std::uint16_t>(program_.chains.size());
  program_.chains.push_back(group.chain);
  if (group.pre) program_.chains.push_back(group.pre->chain);
  work.first_mix = static_cast<std::uint16_t>(program_.mixes.size());
  for (const HeadMixLayer& encoder : group.sections.encoders) program_.mixes.push_back(encoder.mix);
  add_operator(group, macs);
  return work;
}

void Emitter::add_operator(const Group& group, std::uint64_t macs) {
  const model::View& written = group.written();
  const Location& out = location(written);
  hw::Operator result;
  result.name = group.name;
  result.tensor = graph_.tensors[written.tensor].name;
  result.place = out.ring.slots != 0                         ? hw::Operator::Place::kRing
                 : out.place == Location::Place::kScratchpad ? hw::Operator::Place::kScratchpad
                                                             : hw::Operator::Place::kDram;
  result.type = group.chain.out;
  result.address = address(written, 0, 0);
  result.pitch = out.pitch;
  result.rows = written.rows;
  result.cols = written.cols;
  result.macs = macs;
  program_.operators.push_back(result);
}

void Emitter::emit(const Pipeline& pipeline, const std::vector<TiledGroup>& groups) {
  std::vector<Work> works;
  works.reserve(groups.size());
  std::vector<std::vector<Tile>> tiles;
  for (const TiledGroup& next : groups) {
    const Group& group = next.tiling.unrolled ? without_bias(*next.group) : *next.group;
    Work& work = works.emplace_back(begin(group, std::uint64_t{group.m()} * group.n() * group.k()));
    work.tiling = &next.tiling;
    work.share = next.share;
    work.level = pipeline.levels[works.size() - 1];
    if (next.tiling.unrolled) continue;
    place_slots(next, work);
    tiles.push_back(tiles_of(group, next.tiling));
  }
  halves_.assign(works.size(), halves_.empty() ? false : halves_.back());
  std::vector<std::size_t> last_of;  // the group that has the slots, by level
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (works[i].level == last_of.size()) last_of.push_back(i);
  }
  const std::size_t first = program_.commands.size();
  if (tiles.empty()) {
    work_ = &works.front();
    emit_loops(*work_->group);
  }
  for (const Turn& turn : tiles.empty() ? std::vector<Turn>{} : turns_of(pipeline, tiles)) {
    // Loads are in order, and the next ones wait for results of the groups before: what stays
    // should be there when these have come.
    for (std::size_t ahead = turn.group + 1; turn.group != 0 && ahead < works.size(); ++ahead) {
      work_ = &works[ahead];
      if (load_weights()) break;
    }
    work_ = &works[turn.group];
    // Groups of a level use the same slots: what another one has loaded there since is lost.
    if (std::exchange(last_of[work_->level], turn.group) != turn.group) {
      place_slots(groups[turn.group], *work_);
    }
    emit_tile(tiles[turn.group][turn.tile]);
  }
  halves_ = {halves_[work_->level]};
  work_ = nullptr;
  const bool called = machine_.mapper.strategy == hw::MappingStrategy::kGemmini;
  if (called) program_.commands[first].issue = hw::Issue::kCall;
}

void Emitter::place_slots(const TiledGroup& group, Work& work) const {
  work.rings = mapper::place_slots(stream_plan(machine_, group.problem, group.tiling), machine_,
                                   group.share.stream_begin, group.share.stream_end,
                                   group.tiling.spread, busy_);
  work.has_weights = false;
}

std::vector<Tile> Emitter::tiles_of(const Group& group, const Tiling& tiling) {
  std::vector<Tile> tiles;
  const auto add = [&](std::uint32_t row, std::uint32_t col) {
    tiles.push_back(
        {row, col, std::min(tiling.m, group.m() - row), std::min(tiling.c_cols, group.n() - col)});
  };
  if (tiling.m_outer) {
    for (std::uint32_t row = 0; row < group.m(); row += tiling.m) {
      for (std::uint32_t col = 0; col < group.n(); col += tiling.c_cols) add(row, col);
    }
  } else {
    for (std::uint32_t col = 0; col < group.n(); col += tiling.c_cols) {
      for (std::uint32_t row = 0; row < group.m(); row += tiling.m) add(row, col);
    }
  }
  return tiles;
}

std::uint32_t Emitter::accumulator_half() {
  const std::uint32_t half = narrow(whole_share(machine_).sums_end);
  if (!work_->tiling->two_results) return 0;
  halves_[work_->level].flip();
  return (halves_[work_->level] ? 0 : half) + narrow(work_->share.sums_begin);
}

void Emitter::emit_tile(const Tile& tile) {
  const std::uint32_t c = accumulator_half();
  const std::uint32_t c_pitch = narrow(round_up(tile.cols, machine_.array.cols));
  if (work_->group->has_matmul) {
    emit_matmuls(tile, c, c_pitch);
  } else {
    emit_accumulator_load(tile, c, c_pitch);
  }
  emit_result(tile, c, c_pitch, parameters(tile));
}

bool Emitter::load_weights() {
  const Group& group = *work_->group;
  const Tiling& t = *work_->tiling;
  if (!group.has_matmul || work_->has_weights || !t.b_stays || !is_weight(group.b)) return false;
  work_->has_weights = true;
  for (std::uint32_t col = 0; col < group.n(); col += t.c_cols) {
    const std::uint32_t end = std::min(col + t.c_cols, group.n());
    for (std::uint32_t part = col; part < end; part += t.n) {
      for (std::uint32_t k0 = 0; k0 < group.k(); k0 += t.k) {
        operand_b(k0, std::min(t.k, group.k() - k0), part, std::min(t.n, end - part));
      }
    }
  }
  return true;
}

void Emitter::emit_matmuls(const Tile& tile, std::uint32_t c, std::uint32_t c_pitch) {
  const auto multiply = [&](std::uint32_t col, std::uint32_t k0) {
    const Tile part{tile.row, tile.col + col, tile.rows,
                    std::min(work_->tiling->n, tile.cols - col)};
    emit_matmul(part, k0, std::min(work_->tiling->k, work_->group->k() - k0), c + col, c_pitch);
  };
  if (work_->tiling->k_outer) {
    for (std::uint32_t k0 = 0; k0 < work_->group->k(); k0 += work_->tiling->k) {
      for (std::uint32_t col = 0; col < tile.cols; col += work_->tiling->n) multiply(col, k0);
    }
  } else {
    for (std::uint32_t col = 0; col < tile.cols; col += work_->tiling->n) {
      for (std::uint32_t k0 = 0; k0 < work_->group->k(); k0 += work_->tiling->k) multiply(col, k0);
    }
  }
}

void Emitter::emit_matmul(const Tile& part, std::uint32_t k0, std::uint32_t ks, std::uint32_t c,
                          std::uint32_t c_pitch) {
  hw::cmd::Matmul matmul;
  // A load with stages waits for the operator before; weights do not.
  if (work_->group->pre) matmul.b = operand_b(k0, ks, part.col, part.cols);
  matmul.a = operand_a(part.row, part.rows, k0, ks);
  if (!work_->group->pre) matmul.b = operand_b(k0, ks, part.col, part.cols);
  matmul.accumulate = k0 > 0;
  matmul.a_unsigned = work_->group->a_unsigned;
  matmul.b_transposed = work_->group->b_transposed;
  matmul.m = part.rows;
  matmul.n = part.cols;
  matmul.k = ks;
  matmul.c = {c, c_pitch};
  add(matmul);
  const std::uint64_t b_rows = work_->group->b_transposed ? part.cols : ks;
  const hw::LocalTile &a = matmul.a, &b = matmul.b;
  busy_ = {{a.address, a.address + std::uint64_t{part.rows} * a.pitch},
           {b.address, b.address + b_rows * b.pitch}};
}

hw::LocalTile Emitter::operand_a(std::uint32_t row, std::uint32_t rows, std::uint32_t k0,
                                 std::uint32_t ks) {
  const Location& where = location(work_->group->a);
  const std::uint64_t from = address(work_->group->a, row, k0);
  if (where.place == Location::Place::kScratchpad) return {narrow(from), where.pitch};
  const TileRing::Place place = work_->rings.a.take({row, k0});
  const hw::LocalTile to{narrow(place.address), narrow(round_up(ks, machine_.array.rows))};
  if (!place.is_new) return to;
  hw::cmd::Load load;
  load.from = {from, where.pitch};
  load.to = to;
  load.m = rows;
  load.n = ks;
  add_pre({row, k0, rows, ks}, load);
  add(load);
  return to;
}

std::uint64_t Emitter::weight_tile(std::uint32_t k0, std::uint32_t ks, std::uint32_t col,
                                   std::uint32_t cols, std::uint32_t pitch) {
  const auto [known, is_new] = work_->known_tiles.try_emplace({k0, col}, 0);
  if (is_new) {
    const model::Tensor& weight = graph_.tensors[work_->group->b.tensor];
    const std::size_t row_bytes = weight.cols;
    const bool transposed = work_->group->b_transposed;
    const std::uint32_t first_row = work_->group->b.row + (transposed ? col : k0);
    const std::uint32_t first_col = work_->group->b.col + (transposed ? k0 : col);
    const std::uint8_t* data =
        weight.data.empty() ? nullptr : &weight.data[first_row * row_bytes + first_col];
    known->second =
        constants_.add_tile(data, row_bytes, transposed ? cols : ks, transposed ? ks : cols, pitch);
  }
  return known->second;
}

hw::LocalTile Emitter::operand_b(std::uint32_t k0, std::uint32_t ks, std::uint32_t col,
                                 std::uint32_t cols) {
  const bool transposed = work_->group->b_transposed;
  const std::uint32_t rows_stored = transposed ? cols : ks;
  const std::uint32_t cols_stored = transposed ? ks : cols;
  const std::uint32_t row = transposed ? col : k0;
  const std::uint32_t at = transposed ? k0 : col;
  const Location& where = location(work_->group->b);
  if (!is_weight(work_->group->b) && where.place == Location::Place::kScratchpad) {
    return {narrow(address(work_->group->b, row, at)), where.pitch};
  }
  const TileRing::Place place = work_->rings.b.take({k0, col});
  const hw::LocalTile to{
      narrow(place.address),
      narrow(round_up(cols_stored, transposed ? machine_.array.rows : machine_.array.cols))};
  if (!place.is_new) return to;
  hw::cmd::Load load;
  load.to = to;
  if (is_weight(work_->group->b)) {
    load.from.address = weight_tile(k0, ks, col, cols, to.pitch);
    load.m = 1;
    load.n = narrow(std::uint64_t{rows_stored} * to.pitch);
    load.from.pitch = load.to.pitch = load.n;
  } else {
    load.from = dram_tile(work_->group->b, row, at);
    load.m = rows_stored;
    load.n = cols_stored;
  }
  add(load);
  return to;
}

void Emitter::emit_accumulator_load(const Tile& tile, std::uint32_t c, std::uint32_t c_pitch) {
  hw::cmd::LoadAccumulator load;
  load.type = graph_.tensors[work_->group->a.tensor].type;
  load.from = dram_tile(work_->group->a, tile.row, tile.col);
  load.to = {c, c_pitch};
  load.m = tile.rows;
  load.n = tile.cols;
  add_pre(tile, load);
  add(load);
}

const HeadMixLayer* Emitter::encoder_of(const Tile& tile) const {
  const std::vector<HeadMixLayer>& encoders = work_->group->sections.encoders;
  const auto encoder = std::find_if(
      encoders.begin(), encoders.end(),
      [&](const HeadMixLayer& layer) { return layer.in.col == work_->group->out.col + tile.col; });
  return encoder == encoders.end() ? nullptr : &*encoder;
}

void Emitter::emit_result(const Tile& tile, std::uint32_t c, std::uint32_t c_pitch,
                          std::uint32_t parameters) {
  const Group& group = *work_->group;
  hw::cmd::Result result;
  result.m = tile.rows;
  result.n = tile.cols;
  result.from = {c, c_pitch};
  result.chain = use(group, work_->chain, tile);
  result.chain.parameters = parameters;
  // Tiles of the same rows come one after the other, from the first column on.
  result.chain.continues = tile.col != 0 && hw::writes_row_statistics(group.chain);
  const hw::DramTile out = hw::transposes(group.chain) ? dram_tile(group.out, tile.col, tile.row)
                                                       : dram_tile(group.out, tile.row, tile.col);
  if (const HeadMixLayer* const encoder = encoder_of(tile)) {
    const auto index = static_cast<std::uint16_t>(encoder - group.sections.encoders.data());
    const auto mix = static_cast<std::uint16_t>(work_->first_mix + index);
    const hw::cmd::Store store{result, dram_tile(encoder->out, tile.row, 0), mix};
    program_.commands.push_back({store, work_->op + 1 + index});
  } else if (location(group.out).place == Location::Place::kScratchpad) {
    add(hw::cmd::Move{result, {narrow(out.address), out.pitch}});
  } else {
    add(hw::cmd::Store{result, out, std::nullopt});
  }
}

}  // namespace systole::mapper
