#pragma once

#include <cstdint>

#include "hw/machine/machine.h"
#include "hw/number/int4.h"

/// Cycle contract of the systolic array.
///
/// A matmul of m x k by k x n runs as folds. Weight-stationary: ceil(k/R) ceil(n/C) folds, each
/// streams T = m rows past R x C resident weights. Output-stationary: ceil(m/R) ceil(n/C) folds,
/// each streams T = k. A lone fold takes 2R + C + T - 2 clock edges from the first operand row that
/// enters to the last result that leaves: R to preload the weights (WS) or to shift the results out
/// (OS), T to stream, R + C - 2 for the skew of the last row; the count is of intervals, hence one
/// less. How much of it overlaps with the neighbouring fold is Machine::Array::overlap:
///
/// | overlap | interval between folds | known as                                                |
/// |---------|------------------------|---------------------------------------------------------|
/// | none    | 2R + C + T - 2         | what SCALE-Sim counts                                   |
/// | preload | max(T + R + C - 2, R)  | weights double-buffered, results drained before the next|
/// | full    | max(T, R)              | Gemmini, ONNXim: the next fold follows without a bubble |
///
/// Output-stationary, "preload" overlaps the shift-out of the results with the next fold instead.
/// Ragged tiles cost as much as full ones: the array pads them with zeros.
///
/// Int4 weights (Machine::Array::split): the 8 x 8-bit multiplier of a PE is two of 8 x 4 bits
/// whose products are added, the high one shifted for an int8 weight, not shifted for two int4
/// weights. A byte of weights is then a pair of neighbours along k, and the PE adds a0 w0 + a1 w1
/// to its sum in a cycle: it takes two activations instead of one. The array does in cycles what it
/// does for int8 with half of the depth, array_steps(k): that many rows of weights to preload (or
/// steps to stream), the same sums. What is not halved are the activations: each is read as often
/// as if weights were int8, 2 R bytes in a cycle of full rate instead of R, and a word of the
/// scratchpad is R bytes. So a stationary array that streams long rows gains from one port at the
/// bank of A nothing, and from two ports twice the MACs; where loading weights is what takes time,
/// it gains without more ports.
///
/// Int4 activations by int4 weights (split "both"): the multiplier is four of 4 x 4 bits. All four
/// products of a PE in a cycle are of one row and one column, of the k from 4 s to 4 s + 3, and are
/// added to its one sum, which so stays exact in int32: a PE holds two bytes of weights, of one
/// column, and takes two bytes of activations. (An int8 product is the four with shifts of 0, 4, 4
/// and 8; two of int8 by int4 are two with shifts of 0 and 4 each.) A fold is then 4 R deep, half
/// as many bytes of either operand are read as of int8, 2 R and 2 C of them in a cycle of full
/// rate: two ports again give all of it, one gives half.
///
/// In cycles of the RTL (rtl/array/systole_systolic_array.sv, weight-stationary), cycle 0 being
/// that of a command's first handshake:
/// - A lone fold takes its weights in cycles 0 to R - 1 and its rows in cycles R to R + T - 1. The
///   last PE multiplies for the last time in cycle 2R + C + T - 3, lone_matmul_cycles(), and with
///   the edge that ends it, number 2R + C + T - 2, the last row of sums is in the output register.
/// - So the last row is handed over in cycle `latency`, and the accumulator takes it with the edge
///   that ends this cycle. Both ends counted, that is latency + 1 cycles.
/// - In cycle `interval` the next command can begin: with its first row if its first weights came
///   in after this one, which takes two sets of weight registers, else with its first weights.
/// - Each cycle in which the array waits for a beat, or a row of sums is refused, delays all that
///   lags it by one.
namespace systole::hw {

/// Steps along k of a product: as many as a PE multiplies at once are one.
template <typename T>
[[nodiscard]] constexpr T array_steps(T k, Int4Operands int4) {
  return k / int4.macs() + (k % int4.macs() == 0 ? 0 : 1);
}

struct ArrayCycles {
  std::uint64_t folds = 0;
  std::uint64_t interval = 0;  ///< until the array can start the next command's first fold
  std::uint64_t latency = 0;   ///< until the last result leaves for the accumulator, from the start
  std::uint64_t stream = 0;    ///< of the interval: rows of operands entering the array
  std::uint64_t preload = 0;   ///< of the interval: weight preload that nothing hides
  std::uint64_t drain = 0;     ///< of the interval: skew and shift-out that nothing hides
  /// Of these, what belongs to each fold; the rest of the preload belongs to the first.
  std::uint64_t fold_preload = 0, fold_drain = 0;
};

/// Cycles of one matmul command. `preloaded`: the first fold's weights were shifted in after the
/// previous command (possible when that one still ran when this one became ready). It saves those
/// R cycles weight-stationary; without double-buffered weights (overlap none) it changes nothing.
/// interval <= latency, and stream + preload + drain == interval. A matmul of no work costs
/// nothing.
///
/// `k` counts steps: array_steps().
[[nodiscard]] ArrayCycles array_cycles(const Machine::Array& array, std::uint64_t m,
                                       std::uint64_t n, std::uint64_t k, bool preloaded);

/// Compute cycles of a lone matmul with all operands on chip, first operand in to last result out:
/// one less than its latency, because the last result still has to be written.
[[nodiscard]] std::uint64_t lone_matmul_cycles(const Machine::Array& array, std::uint64_t m,
                                               std::uint64_t n, std::uint64_t k);

/// Scratchpad rows that a command reads. Weight-stationary: m rows of A (R elements) per fold, and
/// k rows of B (C elements) per column of folds. Output-stationary: per fold k rows of A and as
/// many of B, all streamed. Of int4 operands, pairs are what is k above.
struct ArrayReads {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
};
[[nodiscard]] ArrayReads array_reads(const Machine::Array& array, std::uint64_t m, std::uint64_t n,
                                     std::uint64_t k, Int4Operands int4 = {});

}  // namespace systole::hw
