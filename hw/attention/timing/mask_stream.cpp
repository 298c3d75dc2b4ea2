#include "hw/attention/timing/mask_stream.h"

#include <algorithm>

#include "base/units.h"
#include "hw/attention/mask_codec.h"

namespace systole::hw {

bool masks_stream(const std::vector<SparseHead>& heads, const Machine::Attention& attention) {
  return std::any_of(heads.begin(), heads.end(), [&](const SparseHead& head) {
    return mask_bytes(head) > attention.index_kib * kKib;
  });
}

std::vector<MaskChunk> mask_chunks(std::uint64_t bytes, std::uint64_t cycles,
                                   const Machine::Attention& attention) {
  const std::uint64_t half = attention.index_kib * kKib / 2;
  std::vector<MaskChunk> chunks;
  for (std::uint64_t offset = 0; offset < bytes; offset += half) {
    chunks.push_back({offset, std::min(half, bytes - offset), offset * cycles / bytes});
  }
  return chunks;
}

}  // namespace systole::hw
