#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/attention/sparse_head.h"

/// The mask of one attention layer as it resides in memory: what the index buffer is filled with.
/// Little endian, head after head:
///
/// | part                    | bytes                                                             |
/// |-------------------------|-------------------------------------------------------------------|
/// | G, kept sparse cells    | u32 each                                                          |
/// | global columns          | u16 each, G of them                                               |
/// | other columns           | u16 each, in the order in which they are walked                   |
/// | column pointers         | u16 or, if the sparse cells exceed 65,535, u32; keys - G + 1      |
/// | row indices             | u8 up to 256 queries, else u16                                    |
/// | kept cells of the block | a bit each, column after column, the lowest bit first             |
///
/// Every part begins at a whole byte, every head at a multiple of 8.
namespace systole::hw {

/// The heads must pass check_sparse_head() and have the same number of queries and of keys.
[[nodiscard]] std::vector<std::uint8_t> encode_mask(const std::vector<SparseHead>& heads);

/// Bytes of one head in it.
[[nodiscard]] std::size_t mask_bytes(const SparseHead& head);

/// Reads exactly `heads` heads. Throws InputError (`byte N: what is wrong`) for bytes that
/// encode_mask() does not write.
[[nodiscard]] std::vector<SparseHead> decode_mask(const std::vector<std::uint8_t>& bytes,
                                                  std::size_t heads, std::size_t queries,
                                                  std::size_t keys);

}  // namespace systole::hw
