#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/attention/sparse_head.h"
#include "hw/machine/machine.h"

/// How masks get through the index buffer.
///
/// If each head's mask of a layer fits the buffer, masks reside: each is loaded once, and stays
/// until the head is over. If one does not, all masks of the layer stream: the buffer is two
/// halves, and each phase (SDDMM or SpMM of a tile) walks its head's mask from the first byte to
/// the last, half a buffer at a time. A chunk is loaded while the one before it is walked, also the
/// first chunk of a phase while the last of the phase before is walked.
///
/// | what                      | contract                                                        |
/// |---------------------------|-----------------------------------------------------------------|
/// | bytes from memory         | the mask's, once for each phase of the head                     |
/// | chunk i of a phase        | bytes [i half, (i + 1) half) of the mask; the last may be less  |
/// | wanted at                 | floor(i half x cycles / bytes) of the phase: an even pace       |
/// | asked for at the earliest | when the chunk before it is begun: the one two before is over   |
/// | a chunk that is late      | holds up all lines until its last byte has arrived              |
///
/// The even pace is a simplification: lines of the sparser engine walk several columns at a time.
namespace systole::hw {

/// Whether a layer's masks stream. `heads`: passed check_sparse_head().
[[nodiscard]] bool masks_stream(const std::vector<SparseHead>& heads,
                                const Machine::Attention& attention);

/// A part of a mask that one half of the index buffer holds.
struct MaskChunk {
  std::uint64_t offset, bytes;  ///< in the head's mask
  std::uint64_t cycle;          ///< of the phase, before any stall, that begins to walk it
};

/// The chunks of a mask of `bytes` bytes in a phase of `cycles` cycles; both may be 0.
[[nodiscard]] std::vector<MaskChunk> mask_chunks(std::uint64_t bytes, std::uint64_t cycles,
                                                 const Machine::Attention& attention);

}  // namespace systole::hw
