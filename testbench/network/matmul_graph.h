#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/number/int4.h"
#include "model/graph/graph.h"

namespace systole::testbench {

struct MatmulShape {
  std::uint32_t m = 0, n = 0, k = 0;
  [[nodiscard]] std::uint64_t macs() const { return std::uint64_t{m} * n * k; }
};

/// Largest sizes that parse_matmul_shape() accepts: of a side, and of each of the three matrices.
/// The second keeps what the host needs to check a result near 1 GiB.
inline constexpr std::uint32_t kMaxMatmulSide = 1U << 16;
inline constexpr std::uint64_t kMaxMatmulElements = 1U << 26;

/// Reads `MxNxK`, all decimal: C[m x n] = A[m x k] B[k x n]. Throws InputError if a side is
/// missing, zero or no number, or if the product is too large.
[[nodiscard]] MatmulShape parse_matmul_shape(std::string_view text);

/// Throws InputError if no program for the product fits the machine's DRAM, however it is tiled:
/// sooner than the mapper, which has to write the commands first.
void check_program_size(const MatmulShape& shape, const hw::Machine& machine);

/// What happens to the sums of a product.
struct MatmulResult {
  bool bias = true;            ///< a bias is added to every row
  bool requantised = true;     ///< to s8, using most of the codes; else the result is s32
  hw::Int4Operands int4 = {};  ///< of which "a" and "b" are -7 to 7
};

/// One matrix product: input "a" s8, constant "b" s8. Seeded values: the same shape and datapath
/// give the same bits. `shape_only` leaves the constants out, for runs without values.
[[nodiscard]] model::Graph make_matmul_graph(const MatmulShape& shape,
                                             const hw::Machine::Datapath& datapath, bool shape_only,
                                             const MatmulResult& result = {});

/// Bytes for the input "a"; `int4`: -7 to 7.
[[nodiscard]] std::vector<std::uint8_t> matmul_input(const MatmulShape& shape, bool int4 = false);

}  // namespace systole::testbench
