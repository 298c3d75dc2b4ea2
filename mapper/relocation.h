#pragma once

#include <cstdint>
#include <vector>

#include "mapper/mapping.h"
#include "model/graph/graph.h"

namespace systole::mapper {

/// Where a mapping goes in a memory that holds several.
struct Relocation {
  std::uint64_t constants = 0;  ///< added to the addresses of weights, parameters and masks
  std::uint64_t tensors = 0;    ///< added to the addresses of tensors
  std::uint64_t program = 0;    ///< address of its header
  bool with_constants = true;   ///< the image holds them; else they are in memory already
  /// Tensors that have an address of their own.
  struct Moved {
    model::TensorId tensor = model::kNoTensor;
    std::uint32_t rows = 0;
    std::uint64_t address = 0;
    bool has_data = false;  ///< some of its rows never change: they move with it
  };
  std::vector<Moved> moved;
};

/// The same program for other addresses: the same commands in the same order. Distances are
/// multiples of kRelocationAlignment. Throws InputError for what a command's four bytes of an
/// address cannot hold, or what is outside `memory_bytes`.
[[nodiscard]] Mapping relocated(const Mapping& mapping, const Relocation& relocation,
                                const hw::Machine& machine, std::uint64_t memory_bytes);

/// Pages: rows of DRAM and requests begin where they did.
inline constexpr std::uint64_t kRelocationAlignment = 4096;

}  // namespace systole::mapper
