#include <algorithm>

#include "base/round.h"
#include "mapper/emit/emitter.h"

/// What the chains of a group work on: parameters, tensor operands, row statistics.
namespace systole::mapper {

hw::cmd::Load Emitter::parameter_load(const Tile& tile) {
  return parameter_load(*work_->group, false, work_->group->n(), tile.col, tile.cols);
}

hw::cmd::Load Emitter::parameter_load(const BoundChain& chain, bool pre, std::uint32_t width,
                                      std::uint32_t col, std::uint32_t cols) {
  const std::uint32_t words = hw::parameter_words(chain.chain);
  const auto [known, is_new] = work_->known_parameters.try_emplace({pre, col}, 0);
  if (is_new) {
    const auto* data = reinterpret_cast<const std::uint8_t*>(chain.parameters.data());
    known->second = constants_.add_tile(chain.parameters.empty() ? nullptr : data + col * 4,
                                        std::size_t{width} * 4, words, cols * 4, cols * 4);
  }
  hw::cmd::Load load;
  load.from.address = known->second;
  load.m = 1;
  load.n = load.from.pitch = load.to.pitch = words * cols * 4;
  return load;
}

std::uint32_t Emitter::stream_parameters(const BoundChain& chain, bool pre, std::uint32_t width,
                                         const Tile& tile) {
  TileRing& ring = pre ? work_->rings.pre : work_->rings.parameters;
  const TileRing::Place place = ring.take({0, tile.col});
  if (place.is_new) {
    hw::cmd::Load load = parameter_load(chain, pre, width, tile.col, tile.cols);
    load.to.address = narrow(place.address);
    add(load);
  }
  return narrow(place.address);
}

std::uint32_t Emitter::parameters(const Tile& tile) {
  if (hw::parameter_words(work_->group->chain) == 0) return 0;
  return stream_parameters(*work_->group, false, work_->group->n(), tile);
}

hw::ChainUse Emitter::use(const BoundChain& chain, std::uint16_t index, const Tile& tile) {
  hw::ChainUse use;
  use.chain = index;
  if (chain.valid_cols != 0) use.valid_cols = std::min(chain.valid_cols + tile.row, tile.cols);
  if (chain.statistics != model::kNoTensor) {
    use.statistics = narrow(
        placement_.tensors[chain.statistics].at_row(tile.row, hw::statistics_words(chain.chain)));
  }
  if (chain.tensors.size() > 1) use.operands = narrow(program_.operand_tiles.size());
  for (std::size_t i = 0; i < chain.tensors.size(); ++i) {
    const hw::DramTile operand = dram_tile(chain.tensors[i], tile.row, tile.col);
    if (i == 0) {
      use.tensor = operand;
    } else {
      program_.operand_tiles.push_back(operand);
    }
  }
  return use;
}

void Emitter::add_pre(const Tile& tile, hw::cmd::Load& load) {
  if (!work_->group->pre) return;
  const BoundChain& pre = *work_->group->pre;
  std::uint32_t parameters = 0;
  if (hw::parameter_words(pre.chain) != 0) {
    parameters = stream_parameters(pre, true, work_->group->a.cols, tile);
  }
  load.type = graph_.tensors[work_->group->a.tensor].type;
  load.pre = use(pre, static_cast<std::uint16_t>(work_->chain + 1), tile);
  load.pre->parameters = parameters;
}

}  // namespace systole::mapper
