#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/shared_vector.h"
#include "hw/attention/head_mix.h"
#include "hw/host/host_function.h"
#include "hw/machine/machine.h"
#include "hw/number/dtype.h"
#include "hw/number/int4.h"
#include "hw/number/weight_groups.h"
#include "hw/postop/postop.h"
#include "hw/program/window.h"

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

/// A tile in DRAM: the byte address of its first row, and bytes from row to row.
struct DramTile {
  std::uint64_t address = 0;
  std::uint32_t pitch = 0;

  [[nodiscard]] bool operator==(const DramTile& other) const {
    return address == other.address && pitch == other.pitch;
  }
};

/// A tile in the scratchpad (bytes) or in the accumulator (elements).
struct LocalTile {
  std::uint32_t address = 0, pitch = 0;

  [[nodiscard]] bool operator==(const LocalTile& other) const {
    return address == other.address && pitch == other.pitch;
  }
};

/// A chain that a command's tile goes through, and what its stages work on.
struct ChainUse {
  std::uint16_t chain = 0;  ///< index into Program::chains
  bool continues = false;   ///< its side output accumulates in the row statistics; not of loads
  std::uint32_t parameters = 0;  ///< its parameter block in the scratchpad: kParameterAlignment
  std::uint32_t statistics = 0;  ///< its first word of the row statistics
  std::uint32_t valid_cols = 0;  ///< of a softmax or causal mask; 0: all
  DramTile tensor;               ///< its first tensor operand
  std::uint32_t operands = 0;    ///< index into Program::operand_tiles of the further ones

  [[nodiscard]] bool operator==(const ChainUse& other) const {
    return chain == other.chain && continues == other.continues && parameters == other.parameters &&
           statistics == other.statistics && valid_cols == other.valid_cols &&
           tensor == other.tensor && operands == other.operands;
  }
};

/// What a command does, a type per opcode.
namespace cmd {

struct End {
  [[nodiscard]] bool operator==(const End& /*other*/) const { return true; }
};

/// DRAM -> stages -> scratchpad: m rows of n elements of one byte. Without stages they stay as they
/// are. Packed weights (hw/number/weight_groups.h) are expanded: `from` is the first group, groups
/// apart by the pitch, and m a multiple of kGroupWeights. With a window, which excludes stages,
/// `from` is the picture, its pixels apart by the pitch, and the rows are what the window gathers
/// of it: patches for the scratchpad, maxima and sums for the accumulator.
struct Load {
  std::uint32_t m = 0, n = 0;
  DType type = DType::kS8;                    ///< of the elements in DRAM
  WeightFormat format = WeightFormat::kInt8;  ///< another: without stages or a window
  DramTile from;
  LocalTile to;
  std::optional<ChainUse> pre;  ///< stages as the rows are loaded
  std::optional<WindowTile> window;

  [[nodiscard]] bool packed() const { return format != WeightFormat::kInt8; }
  [[nodiscard]] bool operator==(const Load& other) const {
    return m == other.m && n == other.n && type == other.type && format == other.format &&
           from == other.from && to == other.to && pre == other.pre && window == other.window;
  }
};

/// DRAM -> stages -> accumulator, widened to int32.
struct LoadAccumulator : Load {};

/// C[m x n] (+)= A[m x k] B[k x n].
struct Matmul {
  std::uint32_t m = 0, n = 0, k = 0;
  bool accumulate = false;    ///< adds to C instead of replacing it
  bool a_unsigned = false;    ///< A is u8
  bool b_transposed = false;  ///< B is stored n x k; the preload path transposes it
  bool a_int4 = false;        ///< A has pairs of int4 along k (hw/number/int4.h), as then has B
  bool b_int4 = false;        ///< B has
  LocalTile a, b;             ///< scratchpad
  LocalTile c;                ///< accumulator

  [[nodiscard]] bool operator==(const Matmul& other) const {
    return m == other.m && n == other.n && k == other.k && accumulate == other.accumulate &&
           a_unsigned == other.a_unsigned && b_transposed == other.b_transposed &&
           a_int4 == other.a_int4 && b_int4 == other.b_int4 && a == other.a && b == other.b &&
           c == other.c;
  }
};

/// m rows of n sums leave the accumulator through a chain.
struct Result {
  std::uint32_t m = 0, n = 0;
  LocalTile from;
  ChainUse chain;
  bool int4 = false;  ///< int8 results, saturated to int4, in pairs along a row (hw/number/int4.h)

  [[nodiscard]] bool operator==(const Result& other) const {
    return m == other.m && n == other.n && int4 == other.int4 && from == other.from &&
           chain == other.chain;
  }
};

/// ... to DRAM.
struct Store : Result {
  DramTile to;
  /// Index into Program::mixes: rows of n = in_heads * d int8 that leave the chain are encoded to
  /// out_heads * d bytes each.
  std::optional<std::uint16_t> encoder;

  [[nodiscard]] bool operator==(const Store& other) const {
    return Result::operator==(other) && to == other.to && encoder == other.encoder;
  }
};

/// ... to the scratchpad.
struct Move : Result {
  LocalTile to;

  [[nodiscard]] bool operator==(const Move& other) const {
    return Result::operator==(other) && to == other.to;
  }
};

/// Q, K, V in DRAM -> masked attention of all heads -> DRAM. Head h of an operand begins h * k (Q,
/// K) or h * n (V, outputs) bytes into a row. The engines' chains have no operands but immediates,
/// the saved value and the row sums of the softmax.
struct Attention {
  std::uint32_t queries = 0, keys = 0, heads = 0;
  std::uint32_t k = 0;              ///< features of Q and K in a head
  std::uint32_t n = 0;              ///< of V
  DramTile query, key, value, out;  ///< key and value: below 4 GiB
  std::uint16_t chain = 0;    ///< of the outputs; the softmax's row sums are its row statistics
  std::uint32_t softmax = 0;  ///< chain that ends with the softmax, before it stages for the scores
  bool operand_chains = false;  ///< Q, K and V go through the three chains after `softmax`
  std::uint32_t mask = 0;       ///< index into Program::masks
  /// Index into Program::mixes: rows of Q hold in_heads * k bytes of latent heads, which that mix
  /// decodes to all heads on their way in; those of K likewise, decoded by the mix after it.
  std::optional<std::uint16_t> decoders;

  [[nodiscard]] bool operator==(const Attention& other) const {
    return queries == other.queries && keys == other.keys && heads == other.heads && k == other.k &&
           n == other.n && query == other.query && key == other.key && value == other.value &&
           out == other.out && chain == other.chain && softmax == other.softmax &&
           operand_chains == other.operand_chains && mask == other.mask &&
           decoders == other.decoders;
  }
};

/// DRAM -> the host's function -> DRAM: m rows of n elements.
struct HostCall {
  std::uint32_t m = 0, n = 0;
  std::uint16_t function = 0;    ///< index into Program::host_functions
  std::uint32_t valid_cols = 0;  ///< of a softmax, as in a ChainUse
  DramTile in, out;
  DramTile operand;  ///< of functions of two operands; below 4 GiB

  [[nodiscard]] bool operator==(const HostCall& other) const {
    return m == other.m && n == other.n && function == other.function &&
           valid_cols == other.valid_cols && in == other.in && out == other.out &&
           operand == other.operand;
  }
};

/// C[m x n] = A[m x k] B[k x n], to which D is added or, with `accumulate`, the sums of the loop
/// before: a block of a product that a loop unroller computes from memory to memory
/// (hw/loop/loop_core.h). The result leaves through a chain without operands but immediates.
struct Loop {
  std::uint32_t m = 0, n = 0, k = 0;
  bool accumulate = false;
  std::uint16_t chain = 0;  ///< index into Program::chains
  DramTile a;
  DramTile b;  ///< row by row; below 4 GiB
  DramTile d;  ///< int32 sums, at 0: none; below 4 GiB
  DramTile c;  ///< at 0: the sums stay for the next loop

  [[nodiscard]] bool operator==(const Loop& other) const {
    return m == other.m && n == other.n && k == other.k && accumulate == other.accumulate &&
           chain == other.chain && a == other.a && b == other.b && d == other.d && c == other.c;
  }
};

}  // namespace cmd

/// One command; 80 bytes in memory (hw/program/command_codec.h).
struct Command {
  /// In the order of Opcode.
  std::variant<cmd::End, cmd::Load, cmd::LoadAccumulator, cmd::Matmul, cmd::Store, cmd::Move,
               cmd::Attention, cmd::HostCall, cmd::Loop>
      work;
  std::uint32_t op = 0;        ///< index into Program::operators; not of an end
  Issue issue = Issue::kNone;  ///< not of an end

  [[nodiscard]] Opcode opcode() const { return static_cast<Opcode>(work.index()); }
  /// Its work, if it is a T (Load: of either kind; Result: of a store or a move); else null.
  template <typename T>
  [[nodiscard]] const T* as() const {
    if constexpr (std::is_same_v<T, cmd::Load>) {
      if (const auto* const load = std::get_if<cmd::LoadAccumulator>(&work)) return load;
    }
    if constexpr (std::is_same_v<T, cmd::Result>) {
      if (const auto* const store = std::get_if<cmd::Store>(&work)) return store;
      return std::get_if<cmd::Move>(&work);
    } else {
      return std::get_if<T>(&work);
    }
  }
  template <typename T>
  [[nodiscard]] T* as() {
    return const_cast<T*>(std::as_const(*this).template as<T>());
  }
  [[nodiscard]] bool operator==(const Command& other) const {
    return op == other.op && issue == other.issue && work == other.work;
  }
};

inline constexpr std::size_t kCommandBytes = 80;

/// A parameter block in the scratchpad begins at a multiple of this: its words are read in place.
inline constexpr std::uint32_t kParameterAlignment = 4;

/// Where an operator's result is stored when its last command has completed: for reports and
/// checks.
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
  bool int4 = false;  ///< its int8 are stored as int4, in pairs along a row
  /// Columns of a section: sections follow each other, each with all rows; 0: rows are whole.
  std::uint32_t section = 0;
  /// Columns that reside side by side.
  [[nodiscard]] std::uint32_t section_cols() const { return section == 0 ? cols : section; }
  [[nodiscard]] std::uint64_t section_bytes() const { return std::uint64_t{rows} * pitch; }
};

/// The mask of an attention layer (hw/attention/mask_codec.h), as it resides in memory at
/// `address`.
struct LayerMask {
  std::uint64_t address = 0;
  std::vector<std::uint8_t> bytes;
};

struct Program {
  std::vector<Chain> chains;  ///< micro-code (hw/postop/microcode.h)
  std::vector<DramTile> operand_tiles;
  std::vector<LayerMask> masks;
  std::vector<HeadMix> mixes;  ///< coefficients travel with the commands, as those of chains do
  std::vector<HostFunction> host_functions;  ///< software of the host: in no memory of the machine
  std::vector<Operator> operators;
  std::vector<Command> commands;  ///< ends with kEnd
};

/// Bytes at an address: what memory holds before a run.
struct MemoryPiece {
  std::uint64_t address = 0;
  SharedVector<std::uint8_t> bytes;  ///< of constants made when memory takes them
  bool is_program = false;  ///< a core reads it as its program: runs without values need it too
};
using MemoryImage = std::vector<MemoryPiece>;

/// Where things answer on the system bus: main memory from 0, the cores' registers far above it.
inline constexpr std::uint64_t kDramBase = 0;
inline constexpr std::uint64_t kRegistersBase = std::uint64_t{1} << 40;
/// Distance between the registers of cores that name no address.
inline constexpr std::uint64_t kRegisterStride = 0x1000;

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

/// Rows that a load without a window reads from memory, and bytes of each: groups of packed
/// weights.
struct ReadRows {
  std::uint64_t rows = 0, bytes = 0;
};
[[nodiscard]] ReadRows read_rows(const cmd::Load& load);

/// Whether a loop can send its results through the chain: to int8, or sums as they are, without
/// operands, statistics, whole rows or a transposition.
[[nodiscard]] bool loop_takes(const Chain& chain);

[[nodiscard]] inline Int4Operands int4_of(const cmd::Matmul& matmul) {
  return {matmul.a_int4, matmul.b_int4};
}
/// What A and B of a product take in the scratchpad.
[[nodiscard]] StoredShape a_shape(const cmd::Matmul& matmul);
[[nodiscard]] StoredShape b_shape(const cmd::Matmul& matmul);

/// m, n and k of a command's work, 0 where it has none; queries are m.
struct CommandShape {
  std::uint64_t m = 0, n = 0, k = 0;
};
[[nodiscard]] CommandShape shape_of(const Command& command);

/// What a load with stages, a store or a move says of its chain; null: another command.
[[nodiscard]] const ChainUse* chain_use(const Command& command);
/// That chain, which must exist.
[[nodiscard]] const Chain& chain_of(const ChainUse& use, const Program& program);
/// The tensor operands of that chain, in the order of its stages. They must exist.
[[nodiscard]] std::vector<DramTile> operands_of(const ChainUse& use, const Program& program);
/// Rows that a command writes, and bytes of each; chain and encoder must exist.
struct WrittenRows {
  std::uint64_t rows = 0, bytes = 0;
};
[[nodiscard]] WrittenRows written_rows(const cmd::Store& store, const Program& program);
[[nodiscard]] WrittenRows written_rows(const cmd::Move& move, const Program& program);
[[nodiscard]] WrittenRows written_rows(const cmd::Loop& loop, const Program& program);

/// Rows of each tensor operand that a pipeline has room for at least (postop.operand_kib).
inline constexpr std::uint32_t kOperandRows = 16;
/// How many rows of a command's tensor operands a pipeline asks for at a time: all of them if there
/// is room, or else half of those that have room, so that one half comes while the other one is
/// used; of a chain that transposes the rows that it collects.
[[nodiscard]] std::uint64_t operand_block(const cmd::Result& result, const Chain& chain,
                                          const Machine::Postop& postop);

/// Rows of `cols` elements of that type that a load with stages can bring at once: its buffers have
/// room for them and their tensor operands (postop.operand_kib, as the pipeline's have).
[[nodiscard]] std::uint64_t staged_rows(std::uint64_t cols, DType type, const Chain& chain,
                                        const Machine::Postop& postop);

/// Every range that a command reads or writes (bounding ranges of strided tiles); an accumulating
/// matmul counts as a write. A range that would pass 2^64 ends at 2^64 - 1. Chains, masks, mixes
/// and functions that it names must exist.
[[nodiscard]] std::vector<Range> ranges_of(const Command& command, const Program& program);

/// Throws InputError that names the chain, operator or command and the rule it breaks: what
/// check_chain(), check_head_mix() or check_host_function() refuses; a range outside a memory of
/// the machine; written rows that overlap; an unknown chain, mix, function, operator or type; rows
/// that a mix does not divide; a field that the opcode does not use; operators of one name; no
/// kEnd, or one before the last command.
void check_program(const Program& program, const Machine& machine, std::uint64_t dram_bytes);

}  // namespace systole::hw
