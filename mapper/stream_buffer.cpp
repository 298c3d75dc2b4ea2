#include "mapper/stream_buffer.h"

#include <algorithm>

#include "mapper/round.h"

namespace systole::mapper {
namespace {

bool meet(const Span& a, const Span& b) { return a.begin < b.end && b.begin < a.end; }

}  // namespace

std::optional<Span> StreamBuffer::find(const TileKey& key) const {
  for (const Held& held : tiles_) {
    if (held.key == key) return held.span;
  }
  return std::nullopt;
}

std::optional<Span> StreamBuffer::place(std::uint64_t bytes,
                                        const std::vector<Span>& pinned) const {
  std::uint64_t at = next_;
  // Once around the ring: every step moves past a pinned tile or wraps, and it wraps once.
  for (bool wrapped = false;;) {
    if (at + bytes > end_) {
      if (wrapped) return std::nullopt;
      wrapped = true;
      at = begin_;
      continue;
    }
    const Span wanted{at, at + bytes};
    const auto blocker = std::find_if(pinned.begin(), pinned.end(),
                                      [&](const Span& span) { return meet(span, wanted); });
    if (blocker == pinned.end()) return wanted;
    at = round_up(blocker->end, alignment_);
  }
}

std::optional<Span> StreamBuffer::allocate(const TileKey& key, std::uint64_t bytes,
                                           const std::vector<Span>& pinned,
                                           const std::vector<Span>& busy,
                                           const std::vector<Span>& held) {
  std::vector<Span> alone = held;
  alone.insert(alone.end(), pinned.begin(), pinned.end());
  std::vector<Span> apart = busy, beside = busy;
  apart.insert(apart.end(), held.begin(), held.end());
  beside.insert(beside.end(), held.begin(), held.end());
  for (const Span& span : pinned) {
    apart.push_back({span.begin / bank_bytes_ * bank_bytes_, round_up(span.end, bank_bytes_)});
    beside.push_back(span);
  }
  std::optional<Span> found = place(bytes, apart);
  if (!found) found = place(bytes, beside);
  if (!found) found = place(bytes, alone);
  if (!found) return std::nullopt;
  tiles_.erase(std::remove_if(tiles_.begin(), tiles_.end(),
                              [&](const Held& tile) { return meet(tile.span, *found); }),
               tiles_.end());
  tiles_.push_back({key, *found});
  next_ = round_up(found->end, alignment_);
  return found;
}

void StreamBuffer::forget(const model::View& written) {
  const auto is_old = [&](const Held& held) {
    const TileKey& key = held.key;
    const bool of_tensor = key.kind == TileKey::Kind::kA || key.kind == TileKey::Kind::kB;
    return of_tensor && overlap({key.owner, key.row, key.col, key.rows, key.cols}, written);
  };
  tiles_.erase(std::remove_if(tiles_.begin(), tiles_.end(), is_old), tiles_.end());
}

}  // namespace systole::mapper
