#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "hw/attention/head_mix.h"
#include "hw/host/host_function.h"
#include "hw/machine/machine.h"
#include "hw/number/dtype.h"
#include "hw/postop/postop.h"

/// What a core executes: commands on whole tiles, and the chains that its post-op unit runs.
///
/// Local memories: the scratchpad is addressed in bytes, the accumulator in int32 elements, the row
/// statistics in rows. A tile is `rows` runs of consecutive elements, `pitch` apart. Tiles of any
/// shape are legal; the array pads them with zeros.
namespace systole::hw {

/// The values are part of the program file: append only.
enum class Opcode : std::uint8_t {
  kEnd = 0,
  kLoad = 1,             ///< DRAM -> scratchpad: m rows of n bytes
  kLoadAccumulator = 2,  ///< DRAM -> accumulator, widened to int32: m rows of n elements
  kMatmul = 3,           ///< C[m x n] (+)= A[m x k] B[k x n]
  kStore = 4,            ///< accumulator -> chain -> DRAM: m rows of n elements
  kMove = 5,             ///< accumulator -> chain -> scratchpad
  kAttention = 6,        ///< Q, K, V in DRAM -> masked attention of all heads -> DRAM
  kHost = 7,             ///< DRAM -> the host's function -> DRAM: m rows of n elements
  kLoop = 8,             ///< a loop of the unroller: DRAM -> A B (+ D) -> chain -> DRAM
};

inline constexpr std::uint8_t kOpcodes = 9;

[[nodiscard]] std::string_view name_of(Opcode opcode);

enum class Unit : std::uint8_t { kLoad = 0, kCompute = 1, kStore = 2, kHost = 3, kLoop = 4 };
inline constexpr std::size_t kUnits = 5;
/// The unit whose queue takes the command; kEnd waits in the store unit's. The host has no queue: a
/// command of its own begins when all before it have completed, and none after it is dispatched
/// before it has.
[[nodiscard]] Unit unit_of(Opcode opcode);

/// What the host does before it issues a command.
enum class Issue : std::uint8_t {
  kNone = 0,
  kLoop = 1,  ///< it configures a loop: core.loop_cycles
  kCall = 2,  ///< it begins a library call: waits for all commands before, then core.call_cycles
};
inline constexpr std::uint8_t kIssues = 3;

/// One 80-byte command. Fields that an opcode does not name are zero.
struct Command {
  Opcode opcode = Opcode::kEnd;
  DType type = DType::kS8;     ///< kLoadAccumulator, kLoad with a chain: of the elements in DRAM
  Issue issue = Issue::kNone;  ///< any but kEnd
  bool accumulate = false;     ///< kMatmul: add to C instead of replacing it; kStore, kMove: the
                               ///< chain's side output accumulates in the row statistics
  bool a_unsigned = false;     ///< kMatmul: A is u8
  bool b_transposed = false;   ///< kMatmul: B is stored n x k; the preload path transposes it
  std::uint16_t chain = 0;     ///< kStore, kMove: index into Program::chains
  std::uint16_t mix = 0;       ///< kStore, kAttention: 1 + index into Program::mixes; 0: none.
                               ///< kLoad*: 1 + index into Program::chains: stages on the way in
  std::uint32_t op = 0;        ///< index into Program::operators
  std::uint64_t dram = 0;      ///< kLoad*, kStore: byte address of the first row
  std::uint32_t dram_pitch = 0;
  std::uint32_t m = 0, n = 0;
  std::uint32_t k = 0;               ///< kMatmul; those with a chain, kHost: valid columns
  std::uint32_t a = 0, a_pitch = 0;  ///< kMatmul: scratchpad; kLoad: destination in the scratchpad
  std::uint32_t b = 0, b_pitch = 0;  ///< kMatmul: scratchpad; kMove: destination in the scratchpad
  std::uint32_t c = 0,
                c_pitch = 0;     ///< accumulator tile (kMatmul, kStore, kMove, kLoadAccumulator)
  std::uint32_t parameters = 0;  ///< of a chain: parameter block in the scratchpad, aligned
  std::uint32_t statistics = 0;  ///< of a chain: first word of the row statistics
  std::uint64_t tensor = 0;      ///< of a chain: DRAM address of its first tensor operand
  std::uint32_t tensor_pitch = 0;

  [[nodiscard]] bool operator==(const Command& other) const {
    const auto all = [](const Command& of) {
      return std::tie(of.opcode, of.dram, of.a, of.b, of.c, of.m, of.n, of.k, of.type, of.issue,
                      of.accumulate, of.a_unsigned, of.b_transposed, of.chain, of.mix, of.op,
                      of.dram_pitch, of.a_pitch, of.b_pitch, of.c_pitch, of.parameters,
                      of.statistics, of.tensor, of.tensor_pitch);
    };
    return all(*this) == all(other);
  }
};

/// Further tensor operands of a chain are in Program::operand_tiles, from index `a` on for kStore
/// and kMove, from `b` on for kLoad*.

/// The fields of kAttention are in those of the others. m queries, c_pitch keys, k features of Q
/// and K, n of V, in `statistics` heads: head h of an operand begins h * k (Q, K) or h * n (V,
/// outputs) bytes into a row. Q at dram, K at a, V at b, outputs at tensor, each with its pitch.
/// Outputs leave through `chain`, the row sums of the softmax being its row statistics; `c` is the
/// chain that holds the softmax, and before it stages for the scores; `parameters` is the
/// index into Program::masks. With `accumulate`, Q, K and V go through the three chains after `c`
/// on their way in. The engines' chains have no operands but immediates, the saved value and the
/// row sums.
///
/// With a `mix`, the rows of Q hold in_heads * k bytes of latent heads, which Program::mixes[mix -
/// 1] decodes to all heads on their way in; those of K likewise, decoded by the mix after it.
///
/// kHost: `chain` is an index into Program::host_functions; m rows of n elements, the input at
/// dram, the second operand at a (kAdd, else 0), the result at tensor, each with its pitch. k as in
/// a kStore.
///
/// kLoop: C[m x n] = A[m x k] B[k x n], to which D is added or, with `accumulate`, the sums of the
/// loop before: a block of a product that a loop unroller computes from memory to memory
/// (hw/loop/loop_core.h). A at dram, B row by row at a, int32 sums D at b (0: none), the result at
/// tensor (0: the sums stay for the next loop), each with its pitch. The result leaves through
/// `chain`, which has no operands but immediates. A B and D are below 4 GiB.
///
/// A kStore with a `mix` encodes on the way out: the rows of n = in_heads * d int8 that leave the
/// chain become out_heads * d bytes each.

inline constexpr std::size_t kCommandBytes = 80;

/// A parameter block in the scratchpad begins at a multiple of this: its words are read in place.
inline constexpr std::uint32_t kParameterAlignment = 4;

/// Where an operator's result stands when its last command has completed: for reports and checks.
struct Operator {
  enum class Place : std::uint8_t {
    kDram = 0,
    kScratchpad = 1,
    kRing = 2,  ///< in the scratchpad, where later rows have taken the places of earlier ones
  };
  std::string name;    ///< unique, as in the graph, e.g. "blocks.0.attn.qkv"
  std::string tensor;  ///< tensor written
  Place place = Place::kDram;
  DType type = DType::kS8;
  std::uint64_t address = 0;
  std::uint32_t pitch = 0;  ///< bytes
  std::uint32_t rows = 0, cols = 0;
  std::uint64_t macs = 0;
};

/// The mask of an attention layer (hw/attention/mask_codec.h), as it resides in memory at
/// `address`.
struct LayerMask {
  std::uint64_t address = 0;
  std::vector<std::uint8_t> bytes;
};

/// Where a tensor operand of a tile begins in DRAM.
struct OperandTile {
  std::uint64_t address = 0;
  std::uint32_t pitch = 0;  ///< bytes

  [[nodiscard]] bool operator==(const OperandTile& other) const {
    return address == other.address && pitch == other.pitch;
  }
};

struct Program {
  std::vector<Chain> chains;  ///< micro-code (hw/postop/microcode.h)
  std::vector<OperandTile> operand_tiles;
  std::vector<LayerMask> masks;
  std::vector<HeadMix> mixes;  ///< coefficients travel with the commands, as those of chains do
  std::vector<HostFunction> host_functions;  ///< software of the host: in no memory of the machine
  std::vector<Operator> operators;
  std::vector<Command> commands;  ///< ends with kEnd
};

/// Bytes at an address: what memory holds before a run.
struct MemoryPiece {
  std::uint64_t address = 0;
  std::vector<std::uint8_t> bytes;
  bool is_program = false;  ///< a core reads it as its program: runs without values need it too
};
using MemoryImage = std::vector<MemoryPiece>;

/// Where things answer on the system bus: main memory from 0, the cores' registers far above it.
inline constexpr std::uint64_t kDramBase = 0;
inline constexpr std::uint64_t kRegistersBase = std::uint64_t{1} << 40;

/// A half-open range of one memory that a command touches.
enum class Space : std::uint8_t { kDram = 0, kScratchpad = 1, kAccumulator = 2, kStatistics = 3 };
struct Range {
  Space space;
  std::uint64_t begin, end;
  bool write;
};
[[nodiscard]] inline bool conflict(const Range& a, const Range& b) noexcept {
  return a.space == b.space && (a.write || b.write) && a.begin < b.end && b.begin < a.end;
}

/// Whether a loop can send its results through the chain: to int8, or sums as they are, without
/// operands, statistics, whole rows or a transposition.
[[nodiscard]] bool loop_takes(const Chain& chain);

/// The chain of a kStore, kMove, kLoop or kLoad*, which must exist; null for a load without stages
/// and for other opcodes.
[[nodiscard]] const Chain* chain_of(const Command& command, const Program& program);
/// The tensor operands of that chain, in the order of its stages. They must exist.
[[nodiscard]] std::vector<OperandTile> operands_of(const Command& command, const Program& program);
/// Rows that a kStore or kMove writes, and bytes of each; its chain and mix must exist.
[[nodiscard]] std::uint64_t stored_rows(const Command& command, const Program& program);
[[nodiscard]] std::uint64_t stored_row_bytes(const Command& command, const Program& program);

/// Rows of each tensor operand that a pipeline holds at a time (postop.operand_kib), in two halves.
inline constexpr std::uint32_t kOperandRows = 16;

/// Every range that a command reads or writes (bounding ranges of strided tiles); an accumulating
/// matmul counts as a write. A range that would pass 2^64 ends at 2^64 - 1. The chain of a kStore
/// or kMove, the mask of a kAttention, the mixes of both and the function of a kHost must exist.
[[nodiscard]] std::vector<Range> ranges_of(const Command& command, const Program& program);

/// Throws InputError that names the chain, operator or command and the rule it breaks: what
/// check_chain(), check_head_mix() or check_host_function() refuses; a range outside a memory of
/// the machine; written rows that overlap; an unknown chain, mix, function, operator or type; rows
/// that a mix does not divide; a field that the opcode does not use; operators of one name; no
/// kEnd, or one before the last command.
void check_program(const Program& program, const Machine& machine, std::uint64_t dram_bytes);

}  // namespace systole::hw
