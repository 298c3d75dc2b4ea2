#include "mapper/relocation.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "hw/program/program_image.h"

namespace systole::mapper {
namespace {

/// Whether a group reads or writes a tensor in memory.
bool touches(const Group& group, model::TensorId tensor) {
  const auto is = [&](const model::View& view) { return view.tensor == tensor; };
  if (is(group.a) || is(group.out) || is(group.sections.rest)) return true;
  if (const MatmulAnchor* const matmul = group.matmul(); matmul != nullptr && is(matmul->b)) {
    return true;
  }
  if (const AttentionGroup* const attention = group.attention()) {
    if (is(attention->query) || is(attention->key) || is(attention->value) || is(attention->out)) {
      return true;
    }
  }
  return std::any_of(group.tensors.begin(), group.tensors.end(), is) ||
         (group.pre && std::any_of(group.pre->tensors.begin(), group.pre->tensors.end(), is));
}

class Mover {
 public:
  Mover(const Mapping& mapping, const Relocation& relocation, hw::Program& program)
      : mapping_(mapping), relocation_(relocation), program_(program) {
    moved_tiles_.resize(program.operand_tiles.size());
    for (const Relocation::Moved& moved : relocation.moved) {
      std::vector<bool>& groups = touched_.emplace_back();
      for (const Group& group : mapping.groups) groups.push_back(touches(group, moved.tensor));
    }
  }

  void move(hw::Command& command) {
    op_ = command.op;
    std::visit([this](auto& work) { visit(work); }, command.work);
  }

  /// The address of what resides at `address`, as operator `op` sees it.
  [[nodiscard]] std::uint64_t address(std::uint64_t address, std::uint32_t op) const {
    for (std::size_t i = 0; i < relocation_.moved.size(); ++i) {
      const Relocation::Moved& moved = relocation_.moved[i];
      const Location& from = mapping_.tensors[moved.tensor];
      if (!touched_[i][op] || address < from.address) continue;
      const std::uint64_t offset = address - from.address;
      if (offset < std::uint64_t{from.pitch} * moved.rows) return moved.address + offset;
    }
    return address +
           (address < mapping_.constants_begin ? relocation_.tensors : relocation_.constants);
  }

 private:
  void visit(hw::cmd::End& /*end*/) {}
  void visit(hw::cmd::Load& load) {
    tile(load.from);
    if (load.pre) chain(*load.pre);
  }
  void visit(hw::cmd::Matmul& /*matmul*/) {}
  void visit(hw::cmd::Store& store) {
    tile(store.to);
    chain(store.chain);
  }
  void visit(hw::cmd::Move& move) { chain(move.chain); }
  void visit(hw::cmd::Attention& attention) {
    for (hw::DramTile* each :
         {&attention.query, &attention.key, &attention.value, &attention.out}) {
      tile(*each);
    }
  }
  void visit(hw::cmd::HostCall& call) {
    tile(call.in);
    tile(call.out);
    if (hw::operands_of(program_.host_functions[call.function].op) > 1) tile(call.operand);
  }
  void visit(hw::cmd::Loop& loop) {
    tile(loop.a);
    tile(loop.b);
    if (loop.d.address != 0) tile(loop.d);
    if (loop.c.address != 0) tile(loop.c);
  }

  void tile(hw::DramTile& tile) const { tile.address = address(tile.address, op_); }

  void chain(hw::ChainUse& use) {
    const std::size_t count = hw::tensor_operands(hw::chain_of(use, program_));
    if (count != 0) tile(use.tensor);
    for (std::size_t i = 1; i < count; ++i) {
      const std::size_t index = use.operands + i - 1;
      hw::DramTile to = mapping_.program.operand_tiles[index];
      tile(to);
      if (moved_tiles_[index] && !(program_.operand_tiles[index] == to)) {
        throw std::logic_error("relocated: operators share an operand that moves apart");
      }
      moved_tiles_[index] = true;
      program_.operand_tiles[index] = to;
    }
  }

  const Mapping& mapping_;
  const Relocation& relocation_;
  hw::Program& program_;
  std::vector<std::vector<bool>> touched_;  ///< by moved tensor and operator
  std::vector<bool> moved_tiles_;
  std::uint32_t op_ = 0;
};

}  // namespace

Mapping relocated(const Mapping& mapping, const Relocation& relocation, const hw::Machine& machine,
                  std::uint64_t memory_bytes) {
  Mapping result;
  result.program = mapping.program;
  result.program_address = relocation.program;
  result.constants_begin = mapping.constants_begin;
  result.tensors = mapping.tensors;
  result.groups = mapping.groups;
  result.tilings = mapping.tilings;
  result.shares = mapping.shares;
  result.expected_cycles = mapping.expected_cycles;
  Mover mover(mapping, relocation, result.program);
  for (hw::Command& command : result.program.commands) mover.move(command);
  for (std::size_t op = 0; op < result.program.operators.size(); ++op) {
    hw::Operator& each = result.program.operators[op];
    if (each.place != hw::Operator::Place::kDram) continue;
    each.address = mover.address(each.address, static_cast<std::uint32_t>(op));
  }
  for (hw::LayerMask& mask : result.program.masks) mask.address += relocation.constants;
  for (Location& location : result.tensors) {
    if (location.place == Location::Place::kDram) location.address += relocation.tensors;
  }
  for (const Relocation::Moved& moved : relocation.moved) {
    result.tensors[moved.tensor].address = moved.address;
  }
  for (const hw::MemoryPiece& piece : mapping.image) {
    if (piece.address == mapping.program_address) continue;
    const bool is_tensor = piece.address < mapping.constants_begin;
    if (!is_tensor && !relocation.with_constants) continue;
    std::uint64_t distance = is_tensor ? relocation.tensors : relocation.constants;
    for (const Relocation::Moved& moved : relocation.moved) {
      const Location& from = mapping.tensors[moved.tensor];
      const std::uint64_t offset = piece.address - from.address;
      if (moved.has_data && is_tensor && offset < std::uint64_t{from.pitch} * moved.rows) {
        distance = moved.address - from.address;
      }
    }
    result.image.push_back({piece.address + distance, piece.bytes, piece.is_program});
  }
  result.image.push_back({relocation.program, hw::encode_program(result.program), true});
  result.dram_bytes = relocation.program + result.image.back().bytes.size();
  if (result.dram_bytes > memory_bytes) {
    throw hw::InputError("dram.mib = " + std::to_string(machine.dram.mib) +
                         ": programs and tensors of all cores need " +
                         std::to_string((result.dram_bytes >> 20) + 1) + " MiB");
  }
  hw::check_program(result.program, machine, memory_bytes);
  return result;
}

}  // namespace systole::mapper
