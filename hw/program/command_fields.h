#pragma once

#include <cstddef>
#include <type_traits>

#include "hw/program/program.h"

/// Where the fields of a command reside in its 80 bytes, and their names: the one description that
/// encoder, decoder and disassembly go through.
///
/// | byte | field                                                        |
/// |------|--------------------------------------------------------------|
/// | 0    | opcode                                                       |
/// | 1    | type                                                         |
/// | 2    | flags: 1 accumulate, 2 a_unsigned, 4 b_transposed, 16 b_int4,|
/// |      | 32 a_int4, 64 int4; of a load 8 times the WeightFormat       |
/// | 3    | issue                                                        |
/// | 4    | chain or gather, mix (u16 each)                              |
/// | 8    | op, dram_pitch (u32 each)                                    |
/// | 16   | dram, tensor (u64 each)                                      |
/// | 32   | tensor_pitch, m, n, k, a, a_pitch, b, b_pitch, c, c_pitch,   |
/// |      | parameters, statistics (u32 each)                            |
///
/// Little endian. Opcodes share places under names of their own; what an opcode does not use is
/// zero.
namespace systole::hw::layout {

inline constexpr std::size_t kOpcode = 0, kType = 1, kFlags = 2, kIssue = 3, kChain = 4, kMix = 6,
                             kOp = 8, kDramPitch = 12, kDram = 16, kTensor = 24, kTensorPitch = 32,
                             kM = 36, kN = 40, kK = 44, kA = 48, kAPitch = 52, kB = 56,
                             kBPitch = 60, kC = 64, kCPitch = 68, kParameters = 72,
                             kStatistics = 76;
inline constexpr unsigned kAccumulate = 1, kAUnsigned = 2, kBTransposed = 4, kBInt4 = 16,
                          kAInt4 = 32, kInt4 = 64;
/// Where the flags have a format of weights, two bits.
inline constexpr unsigned kFormatAt = 3, kFormatMask = 3;

/// Whether a listing shows a field that is zero.
enum class Shown { kAlways, kUnlessZero };

/// An address in DRAM has eight bytes in two places, else four.
[[nodiscard]] constexpr std::size_t address_bytes(std::size_t at) {
  return at == kDram || at == kTensor ? 8 : 4;
}

/// Calls methods of `f` for the fields of a chain: see visit_fields().
template <typename Use, typename F>
void visit_chain(Use& use, std::size_t operands, F& f) {
  constexpr Shown kOptional = Shown::kUnlessZero;
  f.number("parameters", kParameters, use.parameters, kOptional);
  f.number("statistics", kStatistics, use.statistics, kOptional);
  f.tile("tensor", kTensor, kTensorPitch, use.tensor, kOptional);
  f.number("operands", operands, use.operands, kOptional);
  f.number("kept", kK, use.valid_cols, kOptional);
}

/// Where a load without stages has its window; what it gathers is at kChain, padding at kK.
template <typename Tile, typename F>
void visit_window(Tile& tile, F& f) {
  constexpr Shown kAlways = Shown::kAlways;
  f.number("kernel_rows", kTensor, tile.window.kernel_rows, kAlways);
  f.number("kernel_cols", kTensor + 2, tile.window.kernel_cols, kAlways);
  f.number("stride", kTensor + 4, tile.window.stride, kAlways);
  f.number("top", kK, tile.window.padding.top, kAlways);
  f.number("left", kK + 1, tile.window.padding.left, kAlways);
  f.number("bottom", kK + 2, tile.window.padding.bottom, kAlways);
  f.number("right", kK + 3, tile.window.padding.right, kAlways);
  f.number("height", kB, tile.window.height, kAlways);
  f.number("width", kBPitch, tile.window.width, kAlways);
  f.number("channels", kTensorPitch, tile.window.channels, kAlways);
  f.number("row", kParameters, tile.row, kAlways);
  f.number("col", kStatistics, tile.col, kAlways);
}

/// Calls for every field of a command's work, in the order of a listing, one of
///
/// - f.number(name, place, value, shown), an unsigned integer of its type's size
/// - f.flag(name, bit of the byte kFlags, value)
/// - f.format(name, value), of weights
/// - f.type(value, shown), the name is "type"
/// - f.tile(name, place, place of the pitch, tile, shown)
/// - f.index(name, place, value): optional, 1 + its value in 16 bits
/// - f.chain(name, place, use): the same for an optional chain
/// - f.window(name, place, tile): the same for an optional window, by what it gathers
///
/// `work` is one of the types in cmd, const or not.
template <typename Work, typename F>
void visit_fields(Work& work, F& f) {
  using T = std::remove_const_t<Work>;
  constexpr Shown kAlways = Shown::kAlways, kOptional = Shown::kUnlessZero;
  const auto shape = [&](auto& m, auto& n) {
    f.number("m", kM, m, kAlways);
    f.number("n", kN, n, kAlways);
  };
  if constexpr (std::is_base_of_v<cmd::Load, T>) {
    constexpr bool kSums = std::is_same_v<T, cmd::LoadAccumulator>;
    f.type(work.type, kSums ? kAlways : kOptional);
    f.tile("dram", kDram, kDramPitch, work.from, kAlways);
    f.tile(kSums ? "c" : "a", kSums ? kC : kA, kSums ? kCPitch : kAPitch, work.to, kAlways);
    shape(work.m, work.n);
    f.chain("pre", kMix, work.pre);
    if (work.pre) visit_chain(*work.pre, kB, f);
    f.window("gather", kChain, work.window);
    if (work.window) visit_window(*work.window, f);
    if constexpr (!kSums) f.format("packed", work.format);
  } else if constexpr (std::is_same_v<T, cmd::Matmul>) {
    f.tile("c", kC, kCPitch, work.c, kAlways);
    f.tile("a", kA, kAPitch, work.a, kAlways);
    f.tile("b", kB, kBPitch, work.b, kAlways);
    shape(work.m, work.n);
    f.number("k", kK, work.k, kAlways);
    f.flag("accumulate", kAccumulate, work.accumulate);
    f.flag("a_unsigned", kAUnsigned, work.a_unsigned);
    f.flag("b_transposed", kBTransposed, work.b_transposed);
    f.flag("b_int4", kBInt4, work.b_int4);
    f.flag("a_int4", kAInt4, work.a_int4);
  } else if constexpr (std::is_base_of_v<cmd::Result, T>) {
    f.number("chain", kChain, work.chain.chain, kAlways);
    if constexpr (std::is_same_v<T, cmd::Store>) {
      f.tile("dram", kDram, kDramPitch, work.to, kAlways);
    }
    f.tile("c", kC, kCPitch, work.from, kAlways);
    if constexpr (std::is_same_v<T, cmd::Move>) f.tile("b", kB, kBPitch, work.to, kAlways);
    shape(work.m, work.n);
    visit_chain(work.chain, kA, f);
    f.flag("continues", kAccumulate, work.chain.continues);
    f.flag("int4", kInt4, work.int4);
    if constexpr (std::is_same_v<T, cmd::Store>) f.index("encoder", kMix, work.encoder);
  } else if constexpr (std::is_same_v<T, cmd::Attention>) {
    f.number("chain", kChain, work.chain, kAlways);
    shape(work.queries, work.n);
    f.number("k", kK, work.k, kAlways);
    f.number("softmax", kC, work.softmax, kAlways);
    f.number("mask", kParameters, work.mask, kAlways);
    f.number("heads", kStatistics, work.heads, kAlways);
    f.number("keys", kCPitch, work.keys, kAlways);
    f.tile("query", kDram, kDramPitch, work.query, kAlways);
    f.tile("key", kA, kAPitch, work.key, kAlways);
    f.tile("value", kB, kBPitch, work.value, kAlways);
    f.tile("out", kTensor, kTensorPitch, work.out, kAlways);
    f.index("decoders", kMix, work.decoders);
    f.flag("operand_chains", kAccumulate, work.operand_chains);
  } else if constexpr (std::is_same_v<T, cmd::HostCall>) {
    f.number("function", kChain, work.function, kAlways);
    shape(work.m, work.n);
    f.number("kept", kK, work.valid_cols, kOptional);
    f.tile("in", kDram, kDramPitch, work.in, kAlways);
    f.tile("operand", kA, kAPitch, work.operand, kOptional);
    f.tile("result", kTensor, kTensorPitch, work.out, kAlways);
  } else if constexpr (std::is_same_v<T, cmd::Loop>) {
    f.number("chain", kChain, work.chain, kAlways);
    shape(work.m, work.n);
    f.number("k", kK, work.k, kAlways);
    f.flag("accumulate", kAccumulate, work.accumulate);
    f.tile("left", kDram, kDramPitch, work.a, kAlways);
    f.tile("right", kA, kAPitch, work.b, kAlways);
    f.tile("sums", kB, kBPitch, work.d, kOptional);
    f.tile("result", kTensor, kTensorPitch, work.c, kAlways);
  } else {
    static_assert(std::is_same_v<T, cmd::End>);
  }
}

}  // namespace systole::hw::layout
