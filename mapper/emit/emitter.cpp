#include "mapper/emit/emitter.h"

#include <algorithm>
#include <utility>

#include "base/round.h"
#include "hw/array/array.h"
#include "hw/number/int4.h"
#include "hw/number/weight_groups.h"
#include "mapper/place/sharing.h"
#include "mapper/tile/stream_plan.h"

namespace systole::mapper {
namespace {

/// Of an int32 word of parameters.
constexpr std::uint32_t kParameterBytes = 4;
/// Of a load of weights that come in ahead: loads of tiles do not wait long for it.
constexpr std::uint64_t kAheadBytes = 4096;

}  // namespace

std::uint64_t TiledGroup::commands() const {
  const std::uint64_t tiles = ceil_div(problem.m, tiling.m) * ceil_div(problem.n, tiling.c_cols);
  const std::uint64_t results = ceil_div(tiling.c_cols, problem.result_cols(tiling)) *
                                (share.strip_rows == 0 ? 1 : ceil_div(tiling.m, share.strip_rows));
  if (problem.k == 0) return (2 + results) * tiles;
  return tiles *
         (1 + results + 3 * ceil_div(tiling.c_cols, tiling.n) * ceil_div(problem.k, tiling.k));
}

Emitter::Emitter(const Emitter& other, ConstantImage& constants, hw::Program& program)
    : to_{other.to_.graph, other.to_.machine, other.to_.placement, constants, program},
      loops_(to_),
      busy_(other.busy_),
      turns_(other.turns_) {
  loops_.follow(other.loops_);
}

void Emitter::emit(const Pipeline& pipeline, const std::vector<TiledGroup>& groups,
                   std::size_t most) {
  turns_.assign(groups.size(), turns_.empty() ? AccumulatorTurn{} : turns_.back());
  const std::size_t first = to_.program.commands.size();
  if (groups.front().tiling.unrolled) {
    emit_loops(groups.front());
  } else {
    emit_tiles(pipeline, groups, most);
  }
  std::vector<hw::Command>& commands = to_.program.commands;
  if (commands.size() - first > most) commands.resize(first + most);
  const bool called = to_.machine.mapper.strategy == hw::MappingStrategy::kGemmini;
  if (called) to_.program.commands[first].issue = hw::Issue::kCall;
}

void Emitter::emit_loops(const TiledGroup& group) {
  loops_.emit(*group.group, group.tiling, group.share, turns_.front());
  turns_.resize(1);
}

void Emitter::emit_tiles(const Pipeline& pipeline, const std::vector<TiledGroup>& groups,
                         std::size_t most) {
  const std::size_t first = to_.program.commands.size();
  Works works{groups};
  works.groups.reserve(groups.size());
  std::vector<std::vector<Tile>> tiles;
  StripTiles strips;
  for (const TiledGroup& next : groups) {
    const Group& group = *next.group;
    const std::size_t number = works.groups.size();
    Work& work = works.groups.emplace_back(to_, group, group.macs());
    work.tiling = &next.tiling;
    work.share = next.share;
    work.level = pipeline.levels[number];
    work.result_cols = next.problem.result_cols(next.tiling);
    if (next.tiling.in_parts) {
      work.parts = narrow(next.problem.part_places(next.tiling, to_.machine.array.cols));
    }
    place_slots(next, work);
    if (work.level == works.last_of.size()) works.last_of.push_back(number);
    tiles.push_back(tiles_of(group, next.tiling));
    if (next.share.strip_rows == 0) continue;
    for (const Tile& tile : tiles.back()) strips.tiles.push_back({number, tile});
    tiles.back() = strips_of(tiles.back(), next.share.strip_rows);
  }
  std::uint32_t level = 0;
  const std::vector<Turn> order = turns_of(pipeline, tiles);
  AheadLoads ahead = ahead_loads(pipeline, order.size(), works.groups.front());
  for (const Turn& turn : order) {
    if (to_.program.commands.size() - first >= most) break;
    // Loads are in order, and the next ones wait for results of the groups before: what stays
    // should be there when these have come.
    for (std::size_t later = turn.group + 1; turn.group != 0 && later < groups.size(); ++later) {
      if (load_weights(works.groups[later])) break;
    }
    const Tile& tile = tiles[turn.group][turn.tile];
    level = works.groups[turn.group].level;
    if (groups[turn.group].share.strip_rows != 0) {
      emit_strip(tile, strips, works);
    } else {
      emit_tile(tile, with_slots(turn.group, works));
    }
    load_ahead(ahead);
  }
  turns_ = {turns_[level]};
}

Emitter::Work& Emitter::with_slots(std::size_t group, Works& works) const {
  Work& work = works.groups[group];
  if (std::exchange(works.last_of[work.level], group) != group) {
    place_slots(works.tiled[group], work);
  }
  return work;
}

Emitter::AheadLoads Emitter::ahead_loads(const Pipeline& pipeline, std::size_t turns,
                                         const Work& first) {
  AheadLoads ahead;
  const auto found = to_.placement.ahead.find(pipeline.first);
  if (found == to_.placement.ahead.end()) return ahead;
  for (const AheadWeights& weights : found->second.weights) {
    const model::Tensor& tensor = to_.graph.tensors[weights.tensor];
    const Location& to = to_.placement.tensors[weights.tensor];
    const StoredWeights stored{tensor.rows, tensor.cols, weights.transposed, weights.int4};
    const std::uint64_t from = add_weights(tensor, 0, stored, to.pitch);
    const std::uint64_t bytes = std::uint64_t{stored.shape().rows} * to.pitch;
    const auto op = narrow(first.op() + (weights.group - pipeline.first));
    for (std::uint64_t at = 0; at < bytes; at += kAheadBytes) {
      hw::cmd::Load load;
      load.from.address = from + at;
      load.to.address = narrow(to.address + at);
      load.m = 1;
      load.n = narrow(std::min(kAheadBytes, bytes - at));
      load.from.pitch = load.to.pitch = load.n;
      ahead.loads.push_back({load, op});
    }
  }
  // A part of a pipeline has its part of them.
  ahead.turns = turns * ceil_div(found->second.groups, pipeline.levels.size());
  return ahead;
}

void Emitter::load_ahead(AheadLoads& ahead) {
  if (ahead.turns == 0) return;
  const std::size_t due =
      std::min(ahead.loads.size(), ceil_div(ahead.loads.size() * ++ahead.done, ahead.turns));
  for (; ahead.next < due; ++ahead.next) to_.program.commands.push_back(ahead.loads[ahead.next]);
}

void Emitter::place_slots(const TiledGroup& group, Work& work) const {
  work.rings =
      mapper::place_slots(stream_plan(to_.machine, group.problem, group.tiling), to_.machine,
                          {group.share.stream_begin, group.share.stream_end}, group.tiling.spread,
                          to_.is_after(group.group->a, group.share), busy_);
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

std::vector<Tile> Emitter::strips_of(const std::vector<Tile>& tiles, std::uint32_t rows) {
  std::vector<Tile> strips;
  for (const Tile& tile : tiles) {
    for (std::uint32_t row = 0; row < tile.rows; row += rows) {
      strips.push_back({tile.row + row, tile.col, std::min(rows, tile.rows - row), tile.cols});
    }
  }
  return strips;
}

template <typename Visit>
void Emitter::for_products(const Tile& tile, Work& work, const Visit& visit) {
  const std::uint32_t n = work.tiling->n;
  // Those of some columns along k, in the order of the next sweep.
  const auto sweep = [&](std::uint32_t first_col, std::uint32_t end_col) {
    const std::uint32_t tiles = narrow(ceil_div(work.group().k(), work.tiling->k));
    for (std::uint32_t i = 0; i < tiles; ++i) {
      const std::uint32_t depth = work.backwards ? tiles - 1 - i : i;
      for (std::uint32_t col = first_col; col < end_col; col += n) {
        visit(Product{col, depth * work.tiling->k, i == 0, i + 1 == tiles});
      }
    }
    if (work.tiling->back_and_forth) work.backwards = !work.backwards;
  };
  if (work.tiling->k_outer) return sweep(0, tile.cols);
  for (std::uint32_t col = 0; col < tile.cols; col += n) sweep(col, col + n);
}

void Emitter::emit_tile(const Tile& tile, Work& work) {
  const std::vector<hw::LocalTile> c = take_sums(tile, work);
  if (work.group().matmul() != nullptr) {
    for_products(tile, work, [&](const Product& product) { multiply(tile, c, product, work); });
  } else {
    emit_accumulator_load(tile, c.front(), work);
  }
  if (work.parts == 0) emit_results(tile, c.front(), tile, work);
}

void Emitter::emit_strip(const Tile& strip, StripTiles& all, Works& works) {
  const auto advance = [&](StripTile& next, std::uint64_t rows, std::uint64_t of) {
    if (next.products.empty()) {
      Work& work = works.groups[next.group];
      next.c = take_sums(next.tile, work);
      for_products(next.tile, work,
                   [&](const Product& product) { next.products.push_back(product); });
    }
    const std::size_t due = ceil_div(next.products.size() * rows, of);
    while (next.done < due) {
      multiply(next.tile, next.c, next.products[next.done++], with_slots(next.group, works));
    }
  };
  StripTile& now = all.tiles[all.left];
  const std::uint32_t row = strip.row - now.tile.row, end = row + strip.rows;
  if (row == 0) advance(now, 1, 1);
  hw::LocalTile c = now.c.front();
  c.address += row * c.pitch;
  emit_results(strip, c, now.tile, works.groups[now.group]);
  if (all.left + 1 < all.tiles.size()) advance(all.tiles[all.left + 1], end, now.tile.rows);
  if (end == now.tile.rows) ++all.left;
}

std::vector<hw::LocalTile> Emitter::take_sums(const Tile& tile, Work& work) {
  const std::uint32_t n = work.tiling->n, unit = to_.machine.array.cols;
  std::vector<hw::LocalTile> places;
  places.reserve(ceil_div(tile.cols, n));
  if (work.parts == 0) {
    const std::uint32_t address = turns_[work.level].take(*work.tiling, work.share, to_.machine);
    const std::uint32_t pitch = narrow(round_up(tile.cols, unit));
    for (std::uint32_t col = 0; col < tile.cols; col += n) places.push_back({address + col, pitch});
    return places;
  }
  const std::uint32_t pitch = narrow(round_up(n, unit));
  for (std::uint32_t col = 0; col < tile.cols; col += n) {
    places.push_back({work.next_part * work.tiling->m * pitch, pitch});
    work.next_part = (work.next_part + 1) % work.parts;
  }
  return places;
}

void Emitter::emit_results(const Tile& part, const hw::LocalTile& c, const Tile& tile, Work& work) {
  const std::uint32_t words = hw::parameter_words(work.group().chain);
  const std::uint32_t parameters =
      words != 0 ? stream_parameters(false, tile, work.result_cols, work) : 0;
  for (std::uint32_t done = 0; done < part.cols; done += work.result_cols) {
    const std::uint32_t col = part.col + done;
    work.add_result({part.row, col, part.rows, std::min(work.result_cols, part.cols - done)},
                    {c.address + done, c.pitch},
                    parameters + kParameterBytes * words * (col - tile.col));
  }
}

bool Emitter::load_weights(Work& work) {
  const Group& group = work.group();
  const Tiling& t = *work.tiling;
  const MatmulAnchor* const product = group.matmul();
  if (product == nullptr || work.has_weights || !t.b_stays || !to_.is_weight(product->b) ||
      to_.location(product->b).place == Location::Place::kScratchpad) {
    return false;
  }
  work.has_weights = true;
  for (std::uint32_t col = 0; col < group.n(); col += t.c_cols) {
    const std::uint32_t end = std::min(col + t.c_cols, group.n());
    for (std::uint32_t part = col; part < end; part += t.n) {
      for (std::uint32_t k0 = 0; k0 < group.k(); k0 += t.k) {
        operand_b(k0, std::min(t.k, group.k() - k0), part, std::min(t.n, end - part), work);
      }
    }
  }
  return true;
}

void Emitter::multiply(const Tile& tile, const std::vector<hw::LocalTile>& c,
                       const Product& product, Work& work) {
  const Tile part{tile.row, tile.col + product.col, tile.rows,
                  std::min(work.tiling->n, tile.cols - product.col)};
  const hw::LocalTile& sums = c[product.col / work.tiling->n];
  emit_matmul(part, product.k0, !product.is_first, sums, work);
  if (work.parts != 0 && product.is_last) emit_results(part, sums, tile, work);
}

void Emitter::emit_matmul(const Tile& part, std::uint32_t k0, bool accumulate,
                          const hw::LocalTile& c, Work& work) {
  const Group& group = work.group();
  const MatmulAnchor& product = *group.matmul();
  const std::uint32_t ks = std::min(work.tiling->k, group.k() - k0);
  hw::cmd::Matmul matmul;
  // A load with stages waits for the operator before; weights do not.
  if (group.pre) matmul.b = operand_b(k0, ks, part.col, part.cols, work);
  matmul.a = operand_a({part.row, k0, part.rows, ks}, work);
  if (!group.pre) matmul.b = operand_b(k0, ks, part.col, part.cols, work);
  matmul.accumulate = accumulate;
  matmul.a_unsigned = product.a_unsigned;
  matmul.b_transposed = product.b_transposed;
  matmul.a_int4 = to_.location(group.a).int4;
  matmul.b_int4 = is_int4(to_.graph, product.b, to_.machine);
  matmul.m = part.rows;
  matmul.n = part.cols;
  matmul.k = ks;
  matmul.c = c;
  work.add(matmul);
  const hw::LocalTile &a = matmul.a, &b = matmul.b;
  busy_ = {{a.address, a.address + std::uint64_t{part.rows} * a.pitch},
           {b.address, b.address + std::uint64_t{hw::b_shape(matmul).rows} * b.pitch}};
}

hw::LocalTile Emitter::operand_a(const Tile& tile, Work& work) const {
  const model::View& view = work.group().a;
  if (to_.location(view).place == Location::Place::kScratchpad) {
    return {narrow(to_.address(view, tile.row, tile.col)), to_.pitch(view)};
  }
  const TileRing::Place place = work.rings.a.take({tile.row, tile.col});
  const hw::StoredShape stored =
      hw::stored_shape(tile.rows, tile.cols, true, to_.location(view).int4);
  const hw::LocalTile to{narrow(place.address),
                         narrow(operand_pitch(stored.cols, to_.machine.array.rows))};
  if (!place.is_new) return to;
  hw::cmd::Load load;
  work.read_tile(tile.row, tile.col, load);
  load.to = to;
  load.m = stored.rows;
  load.n = stored.cols;
  add_rows(tile, load, work);
  return to;
}

std::uint64_t Emitter::packed_tile(const model::Tensor& weight, std::uint32_t row,
                                   std::uint32_t rows, std::uint32_t col,
                                   std::uint32_t cols) const {
  const std::uint64_t bytes = hw::packed_bytes(weight.format, rows, cols);
  const auto pack = [format = weight.format, groups = weight.groups, width = weight.cols, bytes,
                     row, rows, col, cols](const std::uint8_t* data) {
    std::vector<std::uint8_t> tile(bytes);
    for (std::uint32_t i = 0; i < rows; i += hw::kGroupWeights) {
      const std::size_t group = (row + i) / hw::kGroupWeights;
      hw::pack_group(format, data + std::size_t{row + i} * width + col, width,
                     &groups[group * width + col], cols, &tile[hw::packed_bytes(format, i, cols)]);
    }
    return tile;
  };
  return to_.constants.add_tile(weight.data, bytes, pack);
}

std::uint64_t Emitter::add_weights(const model::Tensor& weight, std::size_t first,
                                   const StoredWeights& of, std::uint32_t pitch) const {
  const std::size_t bytes = std::size_t{of.shape().rows} * pitch;
  const auto store = [of, first, row_bytes = weight.cols, pitch, bytes](const std::uint8_t* data) {
    std::vector<std::uint8_t> tile(bytes, 0);
    const hw::StoredShape stored = of.shape();
    if (of.int4) {
      hw::pack_int4(data + first, row_bytes, of.rows, of.cols, of.transposed, tile.data(), pitch);
      return tile;
    }
    for (std::size_t row = 0; row < stored.rows; ++row) {
      std::copy_n(data + first + row * row_bytes, stored.cols, &tile[row * pitch]);
    }
    return tile;
  };
  return to_.constants.add_tile(weight.data, bytes, store);
}

std::uint64_t Emitter::weight_tile(std::uint32_t k0, std::uint32_t ks, std::uint32_t col,
                                   std::uint32_t cols, std::uint32_t pitch, Work& work) const {
  const MatmulAnchor& product = *work.group().matmul();
  const auto [known, is_new] = work.known_tiles.try_emplace({k0, col}, 0);
  if (is_new) {
    const model::Tensor& weight = to_.graph.tensors[product.b.tensor];
    const bool transposed = product.b_transposed;
    const std::uint32_t first_row = product.b.row + (transposed ? col : k0);
    const std::uint32_t first_col = product.b.col + (transposed ? k0 : col);
    const std::size_t first = std::size_t{first_row} * weight.cols + first_col;
    known->second = is_packed(to_.graph, product.b, to_.machine)
                        ? packed_tile(weight, k0 + product.b.row, ks, col + product.b.col, cols)
                        : add_weights(weight, first,
                                      {transposed ? cols : ks, transposed ? ks : cols, transposed,
                                       is_int4(to_.graph, product.b, to_.machine)},
                                      pitch);
  }
  return known->second;
}

hw::LocalTile Emitter::operand_b(std::uint32_t k0, std::uint32_t ks, std::uint32_t col,
                                 std::uint32_t cols, Work& work) const {
  const MatmulAnchor& product = *work.group().matmul();
  const bool transposed = product.b_transposed;
  const bool int4 = is_int4(to_.graph, product.b, to_.machine);
  const std::uint32_t depth = hw::stored_bytes(ks, int4);
  const std::uint32_t first = hw::stored_bytes(k0, int4);
  const std::uint32_t rows_stored = transposed ? cols : depth;
  const std::uint32_t cols_stored = transposed ? depth : cols;
  const std::uint32_t row = transposed ? col : first;
  const std::uint32_t at = transposed ? first : col;
  const Location& where = to_.location(product.b);
  if (where.place == Location::Place::kScratchpad) {
    return {narrow(to_.address(product.b, row, at)), to_.pitch(product.b)};
  }
  const TileRing::Place place = work.rings.b.take({k0, col});
  const hw::LocalTile to{narrow(place.address),
                         narrow(operand_pitch(cols_stored, transposed ? to_.machine.array.rows
                                                                      : to_.machine.array.cols))};
  if (!place.is_new) return to;
  hw::cmd::Load load;
  load.to = to;
  if (to_.is_weight(product.b)) {
    load.from.address = weight_tile(k0, ks, col, cols, to.pitch, work);
    if (is_packed(to_.graph, product.b, to_.machine)) {
      load.format = to_.graph.tensors[product.b.tensor].format;
      load.m = ks;
      load.n = cols;
      load.from.pitch = narrow(hw::packed_group_bytes(load.format, cols));
    } else {
      load.m = 1;
      load.n = narrow(std::uint64_t{rows_stored} * to.pitch);
      load.from.pitch = load.to.pitch = load.n;
    }
  } else {
    load.from = to_.dram_tile(product.b, row, at);
    load.m = rows_stored;
    load.n = cols_stored;
  }
  work.add(load);
  return to;
}

void Emitter::emit_accumulator_load(const Tile& tile, const hw::LocalTile& c, Work& work) const {
  const model::View& view = work.group().a;
  hw::cmd::LoadAccumulator load;
  load.type = to_.graph.tensors[view.tensor].type;
  work.read_tile(tile.row, tile.col, load);
  load.to = c;
  load.m = tile.rows;
  load.n = tile.cols;
  add_rows(tile, load, work);
}

std::uint32_t Emitter::stream_parameters(bool pre, const Tile& tile, std::uint32_t cols,
                                         Work& work) {
  TileRing& ring = pre ? work.rings.pre : work.rings.parameters;
  const TileRing::Place place = ring.take({0, tile.col});
  if (place.is_new) {
    hw::cmd::Load load = work.parameter_load(pre, tile, cols);
    load.to.address = narrow(place.address);
    work.add(load);
  }
  return narrow(place.address);
}

template <typename Load>
void Emitter::add_rows(const Tile& tile, Load load, Work& work) const {
  const Group& group = work.group();
  if (!group.pre) return work.add(load);
  const bool has_parameters = hw::parameter_words(group.pre->chain) != 0;
  const std::uint32_t parameters =
      has_parameters ? stream_parameters(true, tile, tile.cols, work) : 0;
  load.type = to_.graph.tensors[group.a.tensor].type;
  // As many rows at a time as the stages have room for.
  const std::uint32_t local_pitch = load.to.pitch;
  const auto most = narrow(std::min<std::uint64_t>(
      tile.rows, hw::staged_rows(tile.cols, load.type, group.pre->chain, to_.machine.postop)));
  for (std::uint32_t row = 0; row < tile.rows; row += most) {
    load.m = std::min(most, tile.rows - row);
    load.pre = work.use(true, {tile.row + row, tile.col, load.m, tile.cols});
    load.pre->parameters = parameters;
    work.add(load);
    load.from.address += std::uint64_t{most} * load.from.pitch;
    load.to.address += most * local_pitch;
  }
}

}  // namespace systole::mapper
