#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/round.h"
#include "hw/array/accumulator.h"
#include "hw/array/array.h"
#include "hw/machine/machine.h"
#include "hw/memory/bank_service.h"
#include "hw/memory/word_code.h"
#include "hw/program/program.h"

/// Port accesses of commands at the scratchpad and the accumulator, in words.
namespace systole::hw {

/// Shares `words` among the banks that [begin, end) covers, in proportion; the last one takes the
/// remainder, so that none is lost. Calls visit(bank, words).
template <typename Visit>
void for_each_bank(const BlockSize& bank_size, std::uint64_t begin, std::uint64_t end,
                   std::uint64_t words, Visit visit) {
  if (begin >= end || words == 0) return;
  std::uint64_t left = words;
  for (std::uint64_t at = begin; at < end;) {
    const std::uint64_t bank = bank_size.index(at);
    const std::uint64_t stop = std::min(end, (bank + 1) * bank_size.bytes());
    const std::uint64_t share = stop == end ? left : words * (stop - at) / (end - begin);
    visit(static_cast<std::size_t>(bank), share);
    left -= share;
    at = stop;
  }
}

/// Does not look at what banks serve.
struct UnseenWords {
  void operator()(std::size_t /*bank*/, std::uint64_t /*words*/, std::uint64_t /*from*/,
                  std::uint64_t /*to*/) const {}
};

/// The banks serve such words, one a cycle from `from` on. Calls visit(bank, words, from, to) for
/// each. Returns the cycle after the last one.
template <typename Visit = UnseenWords>
std::uint64_t serve_words(BankService& banks, const BlockSize& bank_size, std::uint64_t begin,
                          std::uint64_t end, std::uint64_t words, std::uint64_t from,
                          Visit visit = {}) {
  for_each_bank(bank_size, begin, end, words, [&](std::size_t bank, std::uint64_t share) {
    if (share == 0) return;
    const std::uint64_t to = banks.serve(from, static_cast<std::uint32_t>(bank), share);
    visit(bank, share, from, to);
    from = to;
  });
  return from;
}

/// serve_request() of one that ends in the next bank: it takes both. Apart, so that the rest is
/// inline where it is called for every request.
template <typename Visit>
[[gnu::noinline]] void serve_crossing(BankService& banks, const BlockSize& bank_size,
                                      std::uint64_t address, std::uint64_t bytes, std::uint64_t to,
                                      const BlockSize& access, std::uint64_t cycle, Visit visit) {
  while (bytes != 0) {
    const std::uint64_t length = std::min(access.bytes() - address % access.bytes(), bytes);
    const BankAccess part = bank_access(to, length, bank_size);
    const std::uint64_t end = banks.serve(cycle, {part, std::nullopt}).end;
    for (std::uint64_t bank = part.bank; bank <= part.bank + (part.crosses ? 1U : 0U); ++bank) {
      visit(static_cast<std::size_t>(bank), std::uint64_t{1}, end - 1, end);
    }
    cycle = end;
    address += length;
    to += length;
    bytes -= length;
  }
}

/// The same of the `bytes` bytes of a request that a load writes to address `to`, those of each
/// block of `access` in memory in one access, the last one in cycle `done`. There is a byte.
template <typename Visit = UnseenWords>
[[gnu::always_inline]] inline void serve_request(BankService& banks, const BlockSize& bank_size,
                                                 std::uint64_t address, std::uint64_t bytes,
                                                 std::uint64_t to, const BlockSize& access,
                                                 std::uint64_t done, Visit visit = {}) {
  const std::uint64_t accesses = access.touched(address, bytes);
  const std::uint64_t cycle = done - std::min(done, accesses);
  const BankAccess all = bank_access(to, bytes, bank_size);
  if (all.crosses) {
    return serve_crossing(banks, bank_size, address, bytes, to, access, cycle, visit);
  }
  visit(static_cast<std::size_t>(all.bank), accesses, cycle,
        banks.serve(cycle, all.bank, accesses));
}

/// Banks write in the cycle after the one for which hw::BankService is asked, as they read for the
/// array: a word of a move that leaves the stages in a cycle is asked for in the one before.
inline constexpr std::uint64_t kBankWriteCycles = 1;

/// The first cycle from `from` on in which the banks of an access serve it.
[[nodiscard]] inline std::uint64_t first_free(const BankService& banks, const BankAccess& access,
                                              std::uint64_t from) {
  while (!banks.is_free(from, access)) ++from;
  return from;
}

/// So many cycles ahead it is known what loads write, which have the banks of the scratchpad before
/// results that move there: no request is answered sooner.
[[nodiscard]] inline std::uint64_t loads_known_cycles(const Machine& machine) {
  return std::uint64_t{machine.bus.request_latency + machine.bus.response_latency} *
         machine.core.clock_mhz / machine.bus.clock_mhz;
}

/// Cycles that weights of B stored transposed take before they can enter a weight-stationary array:
/// the rows of a fold's columns are read into a transposer, and leave it two cycles later
/// (hw/array/fold_stream.h).
[[nodiscard]] inline std::uint64_t transposer_cycles(const Machine::Array& array,
                                                     const cmd::Matmul& matmul) {
  if (!matmul.b_transposed || array.dataflow != Dataflow::kWeightStationary) return 0;
  return std::min(array.cols, matmul.n) + std::uint64_t{1};
}
/// By how much a fold waits for them beyond what its weights take anyway, after a fold of the same
/// command: the transposer holds two, so that the columns of one come in while the other leaves it.
[[nodiscard]] inline std::uint64_t transposer_bubble(const Machine::Array& array,
                                                     const cmd::Matmul& matmul) {
  const std::uint64_t fill = transposer_cycles(array, matmul);
  if (fill == 0 || array.overlap != ArrayOverlap::kFull) return 0;
  const std::uint64_t needed = std::max(matmul.m, array.rows);
  return std::max(fill - 1, needed) - needed;
}
/// The same of a command's first fold, after a command like it: its columns come in when the last
/// weights of that one have left.
[[nodiscard]] inline std::uint64_t transposer_gap(const Machine::Array& array,
                                                  const cmd::Matmul& matmul) {
  const std::uint64_t fill = transposer_cycles(array, matmul);
  const std::uint64_t skew = std::uint64_t{array.rows} + array.cols - 2;
  // What of the fold before hides them, and of its own weights.
  std::uint64_t beside = matmul.m, hidden = array.rows;
  if (array.overlap != ArrayOverlap::kFull) beside += skew;
  if (array.overlap == ArrayOverlap::kNone) hidden = 0;
  const std::uint64_t needed = std::max(beside, hidden);
  return std::max(fill + hidden, needed) - needed;
}
/// array_cycles() of a command, with its transposer.
[[nodiscard]] inline ArrayCycles matmul_cycles(const Machine::Array& array,
                                               const cmd::Matmul& matmul, bool preloaded) {
  ArrayCycles cycles =
      array_cycles(array, matmul.m, matmul.n, array_steps(matmul.k, int4_of(matmul)), preloaded);
  const std::uint64_t fill = transposer_cycles(array, matmul);
  if (fill == 0 || cycles.folds == 0) return cycles;
  // The last fold does not wait for those of the next command, which counts them.
  const bool first = !preloaded || array.overlap == ArrayOverlap::kNone;
  const std::uint64_t more =
      (first ? fill : 0) + (cycles.folds - 1) * transposer_bubble(array, matmul);
  cycles.preload += more;
  cycles.interval += more;
  cycles.latency += more;
  return cycles;
}
/// Cycles of a command among others like it, which hide its first weights as it hides theirs.
[[nodiscard]] inline std::uint64_t steady_matmul_cycles(const Machine::Array& array,
                                                        const cmd::Matmul& matmul) {
  const ArrayCycles cycles = matmul_cycles(array, matmul, true);
  return cycles.interval + (cycles.folds == 0 ? 0 : transposer_gap(array, matmul));
}
[[nodiscard]] inline ArrayReads matmul_reads(const Machine::Array& array,
                                             const cmd::Matmul& matmul) {
  return array_reads(array, matmul.m, matmul.n, matmul.k, int4_of(matmul));
}

/// Steps of k of a matmul, and words of each operand in one.
struct StepWords {
  std::uint64_t steps = 0;
  std::uint8_t a = 1, b = 1;
};
[[nodiscard]] inline StepWords step_words(const cmd::Matmul& matmul) {
  const Int4Operands int4 = int4_of(matmul);
  const auto words = [macs = int4.macs()](bool is_int4) {
    return static_cast<std::uint8_t>(is_int4 ? macs / 2 : macs);
  };
  return {array_steps<std::uint64_t>(matmul.k, int4), words(int4.a), words(int4.b)};
}
/// The first and the last bank of a tile of which `beyond` bytes are read behind its last one.
[[nodiscard]] inline std::pair<std::uint64_t, std::uint64_t> banks_of_tile(
    const Machine::Sram& sram, const LocalTile& tile, const StoredShape& shape,
    std::uint64_t beyond) {
  const std::uint64_t last =
      tile.address + (shape.rows - 1) * std::uint64_t{tile.pitch} + shape.cols - 1;
  return {tile.address / sram.bank_bytes(),
          std::min<std::uint64_t>((last + beyond) / sram.bank_bytes(), sram.banks - 1)};
}

/// Words that a matmul of `folds` folds reads and writes at the accumulator. Results of a fold
/// leave a row (WS) or, shifted out, R rows (OS) at a time, a word each. Adding to a word reads it
/// first.
[[nodiscard]] inline std::uint64_t matmul_accumulator_words(const Machine::Array& array,
                                                            const cmd::Matmul& matmul,
                                                            std::uint64_t folds) {
  const bool stationary_weights = array.dataflow == Dataflow::kWeightStationary;
  const std::uint64_t rows =
      folds * (stationary_weights ? matmul.m : std::min<std::uint64_t>(array.rows, matmul.m));
  // With stationary weights only the first fold along k can overwrite; the others add to it.
  const std::uint64_t columns = (matmul.n + std::uint64_t{array.cols} - 1) / array.cols;
  const std::uint64_t first = stationary_weights ? columns * matmul.m : rows;
  return first * accumulator_accesses(matmul.accumulate) +
         (rows - first) * accumulator_accesses(true);
}

/// Cycles that the codes of the memories delay a product's results by: those of its operands, and
/// of sums that it adds to.
[[nodiscard]] inline std::uint64_t matmul_read_delay(const Machine::Array& array,
                                                     const cmd::Matmul& matmul,
                                                     const WordCode& scratchpad,
                                                     const WordCode& accumulator) {
  const bool adds = matmul.accumulate || (array.dataflow == Dataflow::kWeightStationary &&
                                          array_steps(matmul.k, int4_of(matmul)) > array.rows);
  return scratchpad.read_delay() + (adds ? accumulator.read_delay() : 0);
}

/// Words that a chain with `reads` reads of a vector (ChainCycles::reads) takes from the
/// accumulator for rows of `cols` sums. Every vector takes at least one word, and a row as many as
/// it has, however many lanes are left.
[[nodiscard]] inline std::uint64_t chain_accumulator_words(std::uint64_t reads, std::uint64_t cols,
                                                           std::uint32_t lanes,
                                                           std::uint32_t word_bytes) {
  const std::uint64_t vectors = (cols + lanes - 1) / lanes;
  const std::uint64_t row_words = (cols * std::uint64_t{4} + word_bytes - 1) / word_bytes;
  return reads / vectors * std::max(vectors, row_words);
}

/// Bytes [begin, end) of the accumulator that a tile of m rows of n elements covers.
struct AccumulatorSpan {
  std::uint64_t begin, end;
};
[[nodiscard]] inline AccumulatorSpan accumulator_span(const LocalTile& tile, std::uint32_t m,
                                                      std::uint32_t n) {
  const std::uint64_t begin = std::uint64_t{tile.address} * 4;
  return {begin, begin + (std::uint64_t{m - 1} * tile.pitch + n) * 4};
}

/// Whether the bytes of a load go where they belong without stages, expansion or a window.
[[nodiscard]] inline bool is_plain(const cmd::Load& load) {
  return !load.pre && !load.packed() && !load.window;
}
/// Whether the bytes of a load are written as their requests bring them: rows that go through
/// something, or are widened, are written as a whole when they leave it.
[[nodiscard]] inline bool is_written_by_request(const cmd::Load& load, bool to_accumulator) {
  return !to_accumulator && is_plain(load);
}

/// Whether those of a load to the accumulator are, where its memories are those of the gates: a
/// beat at a time.
[[nodiscard]] inline bool is_placed_by_beat(const cmd::Load& load, bool to_accumulator) {
  return to_accumulator && is_plain(load);
}

/// What a port of the scratchpad and of the accumulator moves in a cycle, in bytes. A port of the
/// scratchpad has to give a row of A, array.rows bytes, and a row of B, array.cols.
[[nodiscard]] inline std::uint32_t scratchpad_word_bytes(const Machine& machine) {
  return std::max(machine.array.rows, machine.array.cols);
}
[[nodiscard]] inline std::uint32_t accumulator_word_bytes(const Machine& machine) {
  return machine.array.cols * 4;
}

/// Bytes of a request that a load writes into the scratchpad in one access: beats that are narrower
/// than a word are gathered in a register first (as Gemmini's BeatMerger does), and a port is wide
/// enough for a beat that is wider.
[[nodiscard]] inline BlockSize load_access_size(const Machine& machine) {
  return BlockSize(std::max(machine.bus.width_bytes, scratchpad_word_bytes(machine)));
}

/// The widest piece of a result that a port of the store unit takes in a cycle: for the scratchpad
/// a word, for memory a beat of the bus.
[[nodiscard]] inline std::uint64_t result_piece_bytes(const Machine& machine, bool move) {
  return move ? scratchpad_word_bytes(machine) : machine.bus.width_bytes;
}

}  // namespace systole::hw
