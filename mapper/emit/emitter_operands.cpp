#include <algorithm>

#include "base/round.h"
#include "mapper/emit/emitter.h"

/// What the chains of a group work on: parameters, tensor operands, row statistics.
namespace systole::mapper {

hw::Command Emitter::parameter_load(const Tile& tile) {
  return parameter_load(*work_->group, false, work_->group->n(), tile.col, tile.cols);
}

hw::Command Emitter::parameter_load(const BoundChain& chain, bool pre, std::uint32_t width,
                                    std::uint32_t col, std::uint32_t cols) {
  const std::uint32_t words = hw::parameter_words(chain.chain);
  const auto [known, is_new] = work_->known_parameters.try_emplace({pre, col}, 0);
  if (is_new) {
    const auto* data = reinterpret_cast<const std::uint8_t*>(chain.parameters.data());
    known->second = constants_.add_tile(chain.parameters.empty() ? nullptr : data + col * 4,
                                        std::size_t{width} * 4, words, cols * 4, cols * 4);
  }
  hw::Command load = command(hw::Opcode::kLoad);
  load.dram = known->second;
  load.m = 1;
  load.n = load.dram_pitch = load.a_pitch = words * cols * 4;
  return load;
}

std::uint32_t Emitter::stream_parameters(const BoundChain& chain, bool pre, std::uint32_t width,
                                         const Tile& tile) {
  TileRing& ring = pre ? work_->rings.pre : work_->rings.parameters;
  const TileRing::Place place = ring.take({0, tile.col});
  if (place.is_new) {
    program_.commands.push_back(parameter_load(chain, pre, width, tile.col, tile.cols));
    program_.commands.back().a = narrow(place.address);
  }
  return narrow(place.address);
}

std::uint32_t Emitter::parameters(const Tile& tile) {
  if (hw::parameter_words(work_->group->chain) == 0) return 0;
  return stream_parameters(*work_->group, false, work_->group->n(), tile);
}

void Emitter::bind_operands(const BoundChain& chain, const Tile& tile, hw::Command& command) {
  if (chain.valid_cols != 0) command.k = std::min(chain.valid_cols + tile.row, tile.cols);
  if (chain.statistics != model::kNoTensor) {
    command.statistics = narrow(
        placement_.tensors[chain.statistics].at_row(tile.row, hw::statistics_words(chain.chain)));
  }
  for (std::size_t i = 0; i < chain.tensors.size(); ++i) {
    const hw::OperandTile operand{address(chain.tensors[i], tile.row, tile.col),
                                  location(chain.tensors[i]).pitch};
    if (i == 0) {
      command.tensor = operand.address;
      command.tensor_pitch = operand.pitch;
      continue;
    }
    if (i == 1) {
      std::uint32_t& first = hw::unit_of(command.opcode) == hw::Unit::kLoad ? command.b : command.a;
      first = narrow(program_.operand_tiles.size());
    }
    program_.operand_tiles.push_back(operand);
  }
}

void Emitter::add_pre(const Tile& tile, hw::Command& load) {
  if (!work_->group->pre) return;
  const BoundChain& pre = *work_->group->pre;
  if (hw::parameter_words(pre.chain) != 0) {
    load.parameters = stream_parameters(pre, true, work_->group->a.cols, tile);
  }
  load.type = graph_.tensors[work_->group->a.tensor].type;
  load.mix = static_cast<std::uint16_t>(work_->chain + 2);
  bind_operands(pre, tile, load);
}

}  // namespace systole::mapper
