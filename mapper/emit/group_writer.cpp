#include "mapper/emit/group_writer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/round.h"
#include "hw/attention/mask_codec.h"

namespace systole::mapper {

std::uint64_t EmitTarget::address(const model::View& view, std::uint32_t row,
                                  std::uint32_t col) const {
  const Location& where = location(view);
  const std::uint32_t tensor_row = view.row + (view.folded ? 0 : row);
  const std::uint64_t tensor_col =
      view.col + col + std::uint64_t{view.folded ? row : 0} * view.cols;
  return where.at_row(tensor_row, where.pitch) +
         where.at_col(tensor_col, hw::bytes_of(graph.tensors[view.tensor].type));
}

std::uint32_t EmitTarget::pitch(const model::View& view) const {
  const std::size_t element = hw::bytes_of(graph.tensors[view.tensor].type);
  return view.folded ? narrow(view.cols * element) : location(view).pitch;
}

hw::DramTile EmitTarget::near(const model::View& view, const hw::DramTile& tile) const {
  if (tile.address > std::numeric_limits<std::uint32_t>::max()) {
    throw hw::InputError(graph.tensors[view.tensor].name +
                         ": an operand beyond 4 GiB, expected it below");
  }
  return tile;
}

std::uint32_t EmitTarget::add_operator(const Group& group, std::uint64_t macs) const {
  const model::View& written = group.written();
  const Location& out = location(written);
  hw::Operator result;
  result.name = group.name;
  result.tensor = graph.tensors[written.tensor].name;
  result.place = out.ring.slots != 0                         ? hw::Operator::Place::kRing
                 : out.place == Location::Place::kScratchpad ? hw::Operator::Place::kScratchpad
                                                             : hw::Operator::Place::kDram;
  result.type = group.chain.out;
  result.int4 = out.int4;
  result.section = out.section;
  result.address = address(written, 0, 0);
  result.pitch = pitch(written);
  result.rows = written.rows;
  result.cols = written.cols;
  result.macs = macs;
  program.operators.push_back(result);
  return narrow(program.operators.size() - 1);
}

namespace {

void emit_host(const EmitTarget& to, const Group& group) {
  const std::uint32_t op = to.add_operator(group, 0);
  hw::cmd::HostCall call;
  call.function = static_cast<std::uint16_t>(to.program.host_functions.size());
  call.m = group.m();
  call.n = group.n();
  call.valid_cols = group.valid_cols;
  call.in = to.dram_tile(group.a);
  if (hw::operands_of(group.host()->op) > 1) {
    call.operand = to.near(group.tensors.front(), to.dram_tile(group.tensors.front()));
  }
  call.out = to.dram_tile(group.out);
  to.program.host_functions.push_back(*group.host());
  to.program.commands.push_back({call, op});
}

void emit_attention(const EmitTarget& to, const Group& group, const AttentionGroup& attention) {
  std::uint64_t cells = 0;
  for (const hw::SparseHead& head : attention.heads) cells += head.kept();
  std::uint64_t macs = cells * (attention.dim + attention.value_dim);
  for (const HeadMixLayer& decoder : attention.decoders) macs += decoder.macs();
  const GroupWriter writer(to, group, macs);
  hw::Program& program = to.program;
  program.chains.push_back(attention.softmax);
  if (attention.stages_operands()) {
    program.chains.insert(program.chains.end(), attention.operand_chains.begin(),
                          attention.operand_chains.end());
  }

  hw::LayerMask mask;
  mask.bytes = hw::encode_mask(attention.heads);
  const std::uint32_t mask_bytes = narrow(mask.bytes.size());
  mask.address = to.constants.add_tile(nullptr, mask_bytes, 1, mask_bytes, mask_bytes);
  hw::cmd::Attention command;
  command.query = to.dram_tile(attention.query);
  command.key = to.near(attention.key, to.dram_tile(attention.key));
  command.value = to.near(attention.value, to.dram_tile(attention.value));
  command.out = to.dram_tile(attention.out);
  command.queries = attention.query.rows;
  command.keys = attention.key.rows;
  command.heads = narrow(attention.heads.size());
  command.k = narrow(attention.dim);
  command.n = narrow(attention.value_dim);
  command.chain = writer.chain();
  command.softmax = writer.chain() + 1U;
  command.operand_chains = attention.stages_operands();
  command.mask = narrow(program.masks.size());
  program.masks.push_back(std::move(mask));
  if (!attention.decoders.empty()) {
    command.decoders = static_cast<std::uint16_t>(program.mixes.size());
    for (const HeadMixLayer& decoder : attention.decoders) program.mixes.push_back(decoder.mix);
  }
  writer.add(command);
}

}  // namespace

void emit_whole(const EmitTarget& to, const Group& group) {
  if (const AttentionGroup* const attention = group.attention()) {
    emit_attention(to, group, *attention);
  } else if (group.host() != nullptr) {
    emit_host(to, group);
  } else {
    // The stores were those of the group that it encodes for: they name this operator.
    to.add_operator(group, group.encoder()->macs());
  }
}

namespace {

/// The number of a chain of the program. Heads of a layer take turns with two chains, whatever the
/// constants of other layers are: a core that still has the last one's does not load it again.
std::uint16_t number_of(hw::Program& program, const hw::Chain& chain) {
  constexpr std::size_t kLooked = 2;
  const std::size_t size = program.chains.size();
  for (std::size_t i = size; i-- > size - std::min(size, kLooked);) {
    if (program.chains[i] == chain) return static_cast<std::uint16_t>(i);
  }
  program.chains.push_back(chain);
  return static_cast<std::uint16_t>(size);
}

}  // namespace

GroupWriter::GroupWriter(const EmitTarget& to, const Group& group, std::uint64_t macs)
    : to_(&to), group_(&group) {
  hw::Program& program = to.program;
  if (group.attention() != nullptr) {
    // The chains of an engine follow each other.
    chain_ = static_cast<std::uint16_t>(program.chains.size());
    program.chains.push_back(group.chain);
  } else {
    chain_ = number_of(program, group.chain);
  }
  if (group.pre) pre_chain_ = number_of(program, group.pre->chain);
  first_mix_ = static_cast<std::uint16_t>(program.mixes.size());
  for (const HeadMixLayer& encoder : group.sections.encoders) program.mixes.push_back(encoder.mix);
  op_ = to.add_operator(group, macs);
}

hw::ChainUse GroupWriter::use(bool pre, const Tile& tile) {
  const BoundChain& chain = pre ? *group_->pre : *group_;
  std::vector<hw::DramTile>& further = to_->program.operand_tiles;
  hw::ChainUse use;
  use.chain = pre ? pre_chain_ : chain_;
  if (chain.valid_cols != 0) use.valid_cols = std::min(chain.valid_cols + tile.row, tile.cols);
  if (chain.statistics != model::kNoTensor) {
    use.statistics = narrow(to_->placement.tensors[chain.statistics].at_row(
        tile.row, hw::statistics_words(chain.chain)));
  }
  if (chain.tensors.size() > 1) use.operands = narrow(further.size());
  for (std::size_t i = 0; i < chain.tensors.size(); ++i) {
    const hw::DramTile operand = to_->dram_tile(chain.tensors[i], tile.row, tile.col);
    if (i == 0) {
      use.tensor = operand;
    } else {
      further.push_back(operand);
    }
  }
  return use;
}

void GroupWriter::read_tile(std::uint32_t row, std::uint32_t col, hw::cmd::Load& load) const {
  if (group_->window) {
    load.from = to_->dram_tile(group_->a);
    load.window = hw::WindowTile{*group_->window, row, col};
    if (to_->location(group_->a).int4) {
      // Pairs of channels are bytes.
      load.window->window.channels /= hw::kInt4Pair;
      load.window->col /= hw::kInt4Pair;
    }
  } else {
    load.from = to_->dram_tile(group_->a, row, col);
  }
}

hw::cmd::Load GroupWriter::parameter_load(bool pre, const Tile& tile, std::uint32_t cols) {
  const BoundChain& chain = pre ? *group_->pre : *group_;
  const std::uint32_t width = pre ? group_->a.cols : group_->n();
  const std::uint32_t words = hw::parameter_words(chain.chain);
  const auto [known, is_new] = known_parameters_.try_emplace({pre, tile.col}, 0);
  if (is_new) {
    const auto* data = reinterpret_cast<const std::uint8_t*>(chain.parameters.data());
    const std::uint32_t end = tile.col + tile.cols;
    for (std::uint32_t col = tile.col; col < end; col += cols) {
      const std::uint32_t bytes = std::min(cols, end - col) * 4;
      const std::uint64_t address = to_->constants.add_tile(
          chain.parameters.empty() ? nullptr : data + col * 4, std::size_t{width} * 4, words, bytes,
          bytes, col == tile.col ? kDramRowAlignment : hw::kParameterAlignment);
      if (col == tile.col) known->second = address;
    }
  }
  hw::cmd::Load load;
  load.from.address = known->second;
  load.m = 1;
  load.n = load.from.pitch = load.to.pitch = words * tile.cols * 4;
  return load;
}

void GroupWriter::add_result(const Tile& tile, const hw::LocalTile& sums,
                             std::uint32_t parameters) {
  const Group& group = *group_;
  hw::cmd::Result result;
  result.m = tile.rows;
  result.n = tile.cols;
  result.int4 = to_->location(group.out).int4;
  result.from = sums;
  result.chain = use(false, tile);
  result.chain.parameters = parameters;
  // Tiles of the same rows come one after the other, from the first column on.
  result.chain.continues = tile.col != 0 && hw::writes_row_statistics(group.chain);
  const hw::DramTile out = hw::transposes(group.chain)
                               ? to_->dram_tile(group.out, tile.col, tile.row)
                               : to_->dram_tile(group.out, tile.row, tile.col);
  const std::vector<HeadMixLayer>& encoders = group.sections.encoders;
  const auto encoder = std::find_if(
      encoders.begin(), encoders.end(),
      [&](const HeadMixLayer& layer) { return layer.in.col == group.out.col + tile.col; });
  if (encoder != encoders.end()) {
    // The store is of the encoder's operator, one of those after this one.
    const auto index = static_cast<std::uint16_t>(encoder - encoders.begin());
    const auto mix = static_cast<std::uint16_t>(first_mix_ + index);
    const hw::cmd::Store store{result, to_->dram_tile(encoder->out, tile.row, 0), mix};
    to_->program.commands.push_back({store, op_ + 1 + index});
  } else if (to_->location(group.out).place == Location::Place::kScratchpad) {
    add(hw::cmd::Move{result, {narrow(out.address), out.pitch}});
  } else {
    add(hw::cmd::Store{result, out, std::nullopt});
  }
}

}  // namespace systole::mapper
