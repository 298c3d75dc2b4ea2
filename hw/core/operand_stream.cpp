#include "hw/core/operand_stream.h"

#include <algorithm>

#include "hw/core/bank_words.h"

namespace systole::hw {

OperandStream::OperandStream(const Machine& machine)
    : array_(machine.array),
      scratchpad_(machine.scratchpad),
      stationary_weights_(machine.array.dataflow == Dataflow::kWeightStationary),
      overlaps_(machine.array.overlap != ArrayOverlap::kNone && stationary_weights_),
      steps_(machine),
      moves_(std::uint64_t{machine.array.rows} + machine.array.cols - 2) {}

void OperandStream::begin(const cmd::Matmul& matmul, std::uint64_t at, std::uint64_t ready) {
  continues_ = overlaps_ && free_ == at;
  held_before_ = held(at);
  runs_ = true;
  begun_ = at;
  if (!stationary_weights_) {
    reads_ = OperandReads(array_, scratchpad_, matmul, at);
    all_ = reads_.left();
    const ArrayCycles cycles = matmul_cycles(array_, matmul, false);
    moves_ = cycles.latency - cycles.interval;
    return;
  }
  steps_.idle_until(at);
  if (steps_.matmuls() == 0) steps_.add(matmul, ready);
  const std::uint64_t first = continues_ ? 0 : array_.rows + transposer_cycles(array_, matmul);
  const std::uint64_t before = steps_.before_rows();
  exposed_ = before - std::min(before, first);
  drained_ = std::min(exposed_, steps_.before_drained());
}

std::uint64_t OperandStream::read_words(const BankService& banks, const ParameterWords& parameters,
                                        std::uint64_t word, std::uint64_t from,
                                        std::uint64_t to) const {
  // Most are read soon: looks at few cycles first.
  std::uint64_t looks = 64;
  while (from < to && word < parameters.count()) {
    const std::uint64_t until = std::min(to, from + looks);
    word = read_known_words(banks, parameters, word, from, until);
    from = until;
    looks *= 2;
  }
  return word;
}

std::uint64_t OperandStream::read_known_words(const BankService& banks,
                                              const ParameterWords& parameters, std::uint64_t word,
                                              std::uint64_t from, std::uint64_t to) const {
  const ArrayUse passed = passed_over(from, to);
  const auto left_of = [&](std::size_t bank, std::uint64_t until) {
    return left(banks, passed, bank, from, until);
  };
  while (word < parameters.count() && from < to) {
    const BankAccess access = parameters.access(word, scratchpad_);
    // Rows that follow each other in a bank are read as one.
    std::uint64_t last = word;
    while (last < parameters.count() && parameters.access(last, scratchpad_).bank == access.bank) {
      const std::uint64_t run = parameters.run_in_bank(last, scratchpad_);
      if (run == 0) break;
      last += run;
    }
    if (last == word) {
      if (left_of(access.bank, from + 1) != 0 && left_of(access.bank + std::size_t{1}, from + 1)) {
        ++word;
      }
      ++from;
      continue;
    }
    const std::uint64_t wanted = last - word, most = left_of(access.bank, to);
    if (most < wanted) return word + most;
    // The first cycle with which all of them have been read.
    std::uint64_t before = from, end = to;
    while (before + 1 < end) {
      const std::uint64_t middle = before + (end - before) / 2;
      (left_of(access.bank, middle) < wanted ? before : end) = middle;
    }
    word = last;
    from = end;
  }
  return word;
}

std::uint64_t OperandStream::left(const BankService& banks, const ArrayUse& passed,
                                  std::size_t bank, std::uint64_t from, std::uint64_t to) const {
  // The banks serve what is asked for a cycle after the one that is said here.
  const std::uint64_t all = (to - from) * banks.ports();
  std::uint64_t used = banks.used(bank, from - 1, to - 1) +
                       use_.words(bank, from - 1, to - 1, banks) +
                       passed.words(bank, from - 1, to - 1, banks);
  if (stationary_weights_) used += steps_.open_words(bank, from - 1, to - 1, banks);
  return all - std::min(all, used);
}

std::uint64_t OperandStream::end(std::uint64_t at) {
  const std::uint64_t held_by_now = held(at);
  runs_ = false;
  free_ = at;
  if (stationary_weights_) {
    steps_.finish();
  } else {
    held_before_ = held_by_now;
  }
  return at + moves_ - held_by_now;
}

std::uint64_t OperandStream::held(std::uint64_t now) const {
  if (stationary_weights_) return steps_.held(now);
  if (!runs_) return held_before_;
  const std::uint64_t since = reads_.left() == 0 ? reads_.at() : now;
  return held_before_ + (since - begun_) - (all_ - reads_.left());
}

}  // namespace systole::hw
