#include "hw/attention/timing/attention_batches.h"

#include <algorithm>
#include <numeric>

#include "base/units.h"
#include "hw/attention/mask_codec.h"
#include "hw/attention/timing/mask_stream.h"

namespace systole::hw {
namespace {

/// What a batch needs of the buffers.
struct Room {
  std::uint64_t scores = 0, sums = 0, masks = 0;

  [[nodiscard]] bool is_there(const Machine& machine) const {
    return scores + sums <= machine.accumulator.kib * kKib &&
           masks <= machine.attention.index_kib * kKib;
  }
};

/// `resident_mask`: bytes of the next tile's head in the index buffer.
Room room_with(const Room& room, const std::vector<HeadTile>& batch, const HeadTile& next,
               std::uint64_t resident_mask) {
  const bool same_head = !batch.empty() && batch.back().head == next.head;
  return {room.scores + next.score_bytes, std::max(room.sums, next.sum_bytes),
          room.masks + (same_head ? 0 : resident_mask)};
}

}  // namespace

std::vector<std::size_t> head_order(const std::vector<SparseHead>& heads) {
  const auto cells = [&](std::size_t head) {
    return heads[head].dense_cells() + heads[head].sparse_kept();
  };
  std::vector<std::size_t> order(heads.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return cells(a) > cells(b); });
  return order;
}

std::vector<std::vector<HeadTile>> plan_batches(const std::vector<SparseHead>& heads,
                                                std::size_t value_dim, const Machine& machine) {
  std::vector<std::vector<HeadTile>> batches;
  Room room;
  const bool stream = masks_stream(heads, machine.attention);
  for (const std::size_t head : head_order(heads)) {
    const std::uint64_t mask = stream ? 0 : mask_bytes(heads[head]);
    for (const QueryTile tile :
         query_tiles(heads[head], value_dim, machine.accumulator.kib * kKib)) {
      const std::uint64_t sums = tile_sum_bytes(tile, value_dim);
      const HeadTile next{head, tile, tile_bytes(heads[head], tile, value_dim) - sums, sums};
      if (!batches.empty()) room = room_with(room, batches.back(), next, mask);
      if (batches.empty() || machine.attention.order == AttentionOrder::kHead ||
          !room.is_there(machine)) {
        batches.emplace_back();
        room = room_with({}, {}, next, mask);
      }
      batches.back().push_back(next);
    }
  }
  return batches;
}

}  // namespace systole::hw
