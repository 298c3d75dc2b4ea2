#pragma once

#include <cstdint>

#include "hw/machine/matrix_unit.h"

/// What a user may choose about cores for text generation in a ring (DFX, MICRO 2022). Sections of
/// a machine description beside those of hw/machine/machine.h; their keys are in
/// hw/description/ring_keys.cpp.
namespace systole::hw::dfx {

/// When an instruction may begin that reads what another one writes: once that has written all of
/// it, or vector by vector.
enum class Chaining { kVector, kInstruction };

/// Whether the heads' attention is one chain of instructions after the other, or each step is done
/// for all heads before the next.
enum class HeadOrder { kInterleaved, kSerial };

/// Order in which a layer computes query, key and value. V has to be transposed before it reaches
/// memory, which takes longest.
enum class ProjectionOrder { kValueFirst, kQueryFirst };

/// Prompt tokens one at a time, or as many together as the matrix unit has partial sums.
enum class Prefill { kSerial, kBatched };

/// Whether every core works on a part of each layer, or on layers of its own.
enum class Parallelism { kIntraLayer, kPipelined };

/// Several texts one after the other, or as rows of a product that share its weights.
enum class Batching { kSerial, kShared };

enum class Placement { kHbm, kDdr };

/// Whether a core waits for a whole exchange, or works on with the parts that have arrived.
enum class Sync { kOverlapped, kBlocking };

/// How the cores put vectors together: each computes columns of a product and gathers those of the
/// others, or computes a part of every sum and adds those of the others.
enum class Collective { kAllGather, kAllReduce };

/// Weights of the matrix unit: FP16, or 8-bit integers, with a scale for each column and for each
/// vector that they are multiplied with (hw/ring/int8_gemv.h). Attention's own products are FP16.
enum class Format { kFp16, kInt8 };

struct Cores {
  std::uint32_t cores = 0;         ///< 0: the machine has none
  std::uint32_t clusters = 1;      ///< rings of so many cores each, with one host
  std::uint32_t issue_cycles = 0;  ///< operands valid and unit free to the first operand
  Chaining chaining = Chaining::kVector;
  HeadOrder heads = HeadOrder::kInterleaved;
  ProjectionOrder projections = ProjectionOrder::kValueFirst;
  Prefill prefill = Prefill::kSerial;
  Parallelism parallelism = Parallelism::kIntraLayer;
  Batching batching = Batching::kSerial;
  Placement lm_head = Placement::kHbm;
  bool prompt_logits = false;  ///< the LM head runs for every token of the prompt
  bool last_pass = false;      ///< the last token that is generated runs through the network too
  double board_watts = 45.0;   ///< of a core with its memories, whatever it does
};

/// `depth` x `lanes` multipliers, a tree of adders per lane, and one adder after each tree that
/// accumulates (hw/machine/matrix_unit.h).
struct Matrix {
  std::uint32_t depth = 64;  ///< inputs of a tree: d
  std::uint32_t lanes = 16;  ///< output columns at a time: l
  std::uint32_t multiply_cycles = 6;
  std::uint32_t add_cycles = 11;
  std::uint32_t partial_sums = 16;    ///< of each lane
  std::uint32_t function_cycles = 8;  ///< mask, scale, GELU and the way to the registers
  std::uint32_t prefetch_tiles = 512;
  Format format = Format::kFp16;
  std::uint32_t int8_products = 2;  ///< 8-bit products that an FP16 multiplier's slices make

  /// Columns of a slice of weights.
  [[nodiscard]] constexpr std::uint32_t columns() const {
    return format == Format::kInt8 ? lanes * int8_products : lanes;
  }
  /// Its cycle contract. Integers are added in a cycle.
  [[nodiscard]] constexpr MatrixUnit unit(bool int8 = false) const {
    if (int8) return {depth, lanes * int8_products, multiply_cycles, 1, partial_sums};
    return {depth, lanes, multiply_cycles, add_cycles, partial_sums};
  }
};

struct Vector {
  std::uint32_t exp_cycles = 4;
  std::uint32_t recip_cycles = 16;
  std::uint32_t recip_sqrt_cycles = 16;
  std::uint32_t transpose_cycles = 64;  ///< of 64 elements of V before they go to memory
  std::uint32_t registers = 8192;       ///< of 64 elements
};

/// All channels of the HBM work in lock-step: a tile of weights is spread over all of them. Times
/// are those of 8 Gb HBM2 stacks.
struct Hbm {
  std::uint32_t mib = 8192;
  std::uint32_t channels = 32;
  std::uint32_t port_bytes = 64;  ///< of a channel, per core cycle
  std::uint32_t mega_transfers = 1800;
  std::uint32_t bus_bytes = 8;  ///< of a channel
  std::uint32_t banks = 16;
  std::uint32_t row_bytes = 1024;  ///< of a bank in a channel
  double t_rcd_ns = 14.0;
  double t_rp_ns = 14.0;
  double t_ras_ns = 33.0;
  double t_cl_ns = 14.0;
  double t_rfc_ns = 350.0;
  double t_refi_ns = 3900.0;
  double controller_ns = 100.0;
};

struct Ring {
  double gbit_per_s = 100.0;
  double coding = 64.0 / 66.0;  ///< bits that carry data
  double hop_ns = 300.0;        ///< first bit sent to first bit received
  std::uint32_t directions = 2;
  std::uint32_t router_cycles = 4;  ///< through a router
  Sync sync = Sync::kOverlapped;
  Collective collective = Collective::kAllGather;
};

struct Pcie {
  double gbyte_per_s = 16.0;
  double latency_ns = 1000.0;
};

}  // namespace systole::hw::dfx
