#pragma once

#include <cstdint>
#include <vector>

#include "hw/attention/sparse_head.h"
#include "hw/machine/machine.h"
#include "hw/program/program.h"

namespace systole::testbench {

struct AttentionShape {
  std::size_t heads = 0, queries = 0, keys = 0;
  std::size_t dim = 0;           ///< features of Q and K in a head
  std::size_t latent_heads = 0;  ///< that stand for all heads of Q and K in memory; 0: themselves
  std::size_t v_dim = 0;         ///< features of V and of the outputs in a head; 0: `dim`

  [[nodiscard]] std::size_t value_dim() const { return v_dim == 0 ? dim : v_dim; }
};

/// Masked attention of some layers with seeded int8 Q, K and V, one command a layer. A row of an
/// operand holds all heads of a token. With latent heads, seeded decoders of Q and of K belong to
/// each layer.
struct AttentionWorkload {
  AttentionShape shape;
  std::vector<std::vector<hw::SparseHead>> layers;
  struct Addresses {
    std::uint64_t query, key, value, out;
  };
  std::vector<Addresses> addresses;  ///< by layer
  hw::Program program;
  std::uint64_t program_address = 0;
  hw::MemoryImage operands;  ///< what memory holds of Q, K and V; nothing without values
};

/// `functional` off leaves the operands out. Throws InputError if the machine cannot run it.
[[nodiscard]] AttentionWorkload make_attention_workload(
    const AttentionShape& shape, std::vector<std::vector<hw::SparseHead>> layers,
    const hw::Machine& machine, bool functional);

/// All that memory holds before a run: operands, masks, program.
[[nodiscard]] hw::MemoryImage memory_image(const AttentionWorkload& workload);

/// The outputs of a layer as a dense product with a mask gives them: bytes
/// [queries][heads * value_dim()].
/// It knows nothing of columns or engines.
[[nodiscard]] std::vector<std::uint8_t> masked_reference(const AttentionWorkload& workload,
                                                         std::size_t layer);

}  // namespace systole::testbench
