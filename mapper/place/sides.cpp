#include "mapper/place/sides.h"

#include "base/round.h"
#include "hw/core/bank_words.h"

namespace systole::mapper {

Sides::Sides(const model::Graph& graph, const std::vector<Group>& groups,
             const hw::Machine& machine)
    : meetings_(graph.tensors.size()),
      at_end_(graph.tensors.size()),
      fixed_(graph.tensors.size(), false) {
  const auto meet = [&](model::TensorId a, model::TensorId b, std::uint64_t words) {
    if (a == b) return;
    meetings_[a].push_back({b, words});
    meetings_[b].push_back({a, words});
  };
  for (const Group& group : groups) {
    if (group.matmul() == nullptr) continue;
    const std::uint64_t columns = ceil_div(group.n(), machine.array.cols);
    meet(group.a.tensor, group.matmul()->b.tensor, columns * group.k());
    const std::uint64_t bytes = group.n() * hw::bytes_of(group.chain.out);
    meet(group.a.tensor, group.out.tensor,
         group.m() * ceil_div(bytes, std::uint64_t{hw::scratchpad_word_bytes(machine)}));
  }
}

// The words that meet get fewer with every move, so it ends.
void Sides::settle() {
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t id = 0; id < at_end_.size(); ++id) {
      if (!at_end_[id] || fixed_[id]) continue;
      const bool wanted = prefers_end(static_cast<model::TensorId>(id));
      moved |= wanted != *at_end_[id];
      at_end_[id] = wanted;
    }
  }
}

bool Sides::prefers_end(model::TensorId id) const {
  std::uint64_t at_begin = 0, at_end = 0;
  for (const Meeting& meeting : meetings_[id]) {
    if (!at_end_[meeting.other]) continue;
    (*at_end_[meeting.other] ? at_end : at_begin) += meeting.words;
  }
  if (at_end == at_begin) return *at_end_[id];
  return at_end < at_begin;
}

}  // namespace systole::mapper
