#include "hw/core/operand_stream.h"

#include <algorithm>

namespace systole::hw {

void OperandStream::begin(const Machine& machine, const cmd::Matmul& matmul, std::uint64_t at,
                          std::uint64_t ready, const BankService& banks) {
  overlaps_ = machine.array.overlap != ArrayOverlap::kNone &&
              machine.array.dataflow == Dataflow::kWeightStationary;
  continues_ = overlaps_ && free_ == at;
  if (!continues_) {
    reads_ = OperandReads(machine, matmul, at);
  } else if (!has_next_) {
    reads_ = OperandReads(reads_, matmul, std::min(at, ready), banks);
    (void)reads_.advance_before(banks, at, &use_);
  }
  has_next_ = false;
  runs_ = true;
  begun_ = at;
  steps_ = reads_.left();
}

void OperandStream::take_next(const cmd::Matmul& next, std::uint64_t ready,
                              const BankService& banks) {
  reads_ = OperandReads(reads_, next, ready, banks);
  use_.cut(reads_.at());
  has_next_ = true;
}

std::uint64_t OperandStream::words_left(const BankService& banks, std::size_t bank,
                                        std::uint64_t from, std::uint64_t to) const {
  if (from >= to) return 0;
  // The banks serve the array's reads, and what loads and moves write, a cycle after the one that
  // is said here, and parameters in it.
  const std::uint64_t all = (to - from) * banks.ports();
  const auto others = [&](std::uint64_t begin, std::uint64_t end) {
    return banks.used(bank, begin, end);
  };
  return all - std::min(all, others(from - 1, to - 1) + use_.words(bank, from - 1, to - 1, others));
}

std::uint64_t OperandStream::end(std::uint64_t at, std::uint64_t moves) {
  held_ += at - begun_ - steps_;
  runs_ = false;
  free_ = at;
  return at + moves - held_;
}

std::uint64_t OperandStream::held(std::uint64_t now) const {
  if (!runs_) return held_;
  const std::uint64_t left = has_next_ ? reads_.left_before() : reads_.left();
  const std::uint64_t since = left == 0 ? reads_.at() : now;
  return held_ + (since - begun_) - (steps_ - left);
}

}  // namespace systole::hw
