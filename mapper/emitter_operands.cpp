#include <algorithm>
#include <stdexcept>

#include "mapper/emitter.h"
#include "mapper/round.h"

/// What the chains of a group work on: parameters, tensor operands, row statistics.
namespace systole::mapper {

hw::Command Emitter::parameter_load(const Tile& tile) {
  return parameter_load(*group_, false, group_->n(), tile.col, tile.cols);
}

hw::Command Emitter::parameter_load(const BoundChain& chain, bool pre, std::uint32_t width,
                                    std::uint32_t col, std::uint32_t cols) {
  const std::uint32_t words = hw::parameter_words(chain.chain);
  const auto [known, is_new] = known_parameters_.try_emplace({pre, col}, 0);
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

bool Emitter::stream_parameters(const BoundChain& chain, bool pre, std::uint32_t width,
                                std::uint32_t col, std::uint32_t cols, std::uint32_t& at) {
  const hw::Command load = parameter_load(chain, pre, width, col, cols);
  const TileKey key{TileKey::Kind::kParameters,       op_,  pre ? 1U : 0U, col,
                    hw::parameter_words(chain.chain), cols, load.a_pitch};
  Span span;
  if (!stream(key, load, load.n, span)) return false;
  at = narrow(span.begin);
  return true;
}

std::uint32_t Emitter::parameters(const Tile& tile) {
  if (hw::parameter_words(group_->chain) == 0) return 0;
  std::uint32_t at = 0;
  pinned_ = kept_;
  if (!stream_parameters(*group_, false, group_->n(), tile.col, tile.cols, at)) {
    empty_ring();
    if (!stream_parameters(*group_, false, group_->n(), tile.col, tile.cols, at)) {
      throw std::logic_error("mapper: parameters of " + group_->name +
                             " do not fit the scratchpad");
    }
  }
  return at;
}

void Emitter::bind_operands(const BoundChain& chain, const Tile& tile, hw::Command& command) {
  if (chain.kept != 0) command.k = std::min(chain.kept + tile.row, tile.cols);
  if (chain.statistics != model::kNoTensor) {
    command.statistics = narrow(placement_.tensors[chain.statistics].address +
                                std::uint64_t{tile.row} * hw::statistics_words(chain.chain));
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

bool Emitter::add_pre(const Tile& tile, hw::Command& load) {
  if (!group_->pre) return true;
  const BoundChain& pre = *group_->pre;
  if (hw::parameter_words(pre.chain) != 0) {
    if (!stream_parameters(pre, true, group_->a.cols, tile.col, tile.cols, load.parameters)) {
      return false;
    }
    held_.push_back(pinned_.back());
    pinned_.pop_back();
  }
  load.type = graph_.tensors[group_->a.tensor].type;
  load.mix = static_cast<std::uint16_t>(chain_ + 2);
  bind_operands(pre, tile, load);
  return true;
}

}  // namespace systole::mapper
