#include "hw/core/operand_reads.h"

#include <algorithm>
#include <optional>

#include "base/round.h"
#include "hw/array/array_schedule.h"
#include "hw/core/bank_words.h"

namespace systole::hw {
namespace {

/// Rows of a tile in the scratchpad.
struct RowsOfTile {
  std::uint64_t address = 0, pitch = 0, bytes = 0, rows = 0;
};

/// Calls visit(rows, access) for rows that follow each other in the same banks.
template <typename Visit>
void for_each_access(const RowsOfTile& tile, std::uint64_t bank_bytes, Visit visit) {
  std::uint64_t address = tile.address;
  for (std::uint64_t left = tile.rows; left != 0;) {
    const BankAccess access = bank_access(address, tile.bytes, bank_bytes);
    std::uint64_t rows = 1;
    if (!access.crosses && left > 1) {
      const std::uint64_t end = (address / bank_bytes + 1) * bank_bytes;
      rows = tile.pitch == 0 ? left : std::min(left, (end - tile.bytes - address) / tile.pitch + 1);
    }
    visit(rows, access);
    address += rows * tile.pitch;
    left -= rows;
  }
}

}  // namespace

/// The operands of a matmul, fold by fold.
class OperandReads::Tiles {
 public:
  Tiles(const Machine::Array& array, const cmd::Matmul& matmul, std::uint64_t bank_bytes)
      : matmul_(matmul),
        bank_bytes_(bank_bytes),
        rows_(array.rows),
        cols_(array.cols),
        stationary_weights_(array.dataflow == Dataflow::kWeightStationary),
        comes_early_(array.overlap == ArrayOverlap::kFull && array.cols <= array.rows) {
    const Int4Operands int4 = int4_of(matmul);
    const std::uint64_t macs = int4.macs();
    steps_ = array_steps<std::uint64_t>(matmul.k, int4);
    a_times_ = static_cast<std::uint8_t>(int4.a ? macs / 2 : macs);
    b_times_ = static_cast<std::uint8_t>(int4.b ? macs / 2 : macs);
    a_bytes_ = stored_bytes<std::uint64_t>(matmul.k, int4.a);
    b_bytes_ = stored_bytes<std::uint64_t>(matmul.k, int4.b);
    inner_ = ceil_div(stationary_weights_ ? steps_ : matmul.m, rows_);
  }

  [[nodiscard]] std::uint32_t times() const { return std::max(a_times_, b_times_); }
  /// Words of a whole fold.
  [[nodiscard]] std::uint64_t a_words() const {
    return (stationary_weights_ ? matmul_.m : steps_) * std::uint64_t{a_times_};
  }
  [[nodiscard]] std::uint64_t b_words() const {
    if (!stationary_weights_) return steps_ * std::uint64_t{b_times_};
    const std::uint64_t rows =
        is_transposed() ? std::min<std::uint64_t>(cols_, matmul_.n) : std::min(rows_, steps_);
    return rows * b_times_;
  }

  /// What is read of A from the begin of a fold on.
  void read_a(std::uint64_t fold, std::vector<Reads>& reads) const {
    reads.clear();
    const std::uint64_t tile = fold % inner_;
    if (stationary_weights_) {
      const std::uint64_t at = tile * rows_ * a_times_;
      add({matmul_.a.address + at, matmul_.a.pitch, std::min(rows_ * a_times_, a_bytes_ - at),
           matmul_.m},
          a_times_, reads);
    } else {
      const std::uint64_t row = tile * rows_;
      sweep({matmul_.a.address + row * matmul_.a.pitch, matmul_.a.pitch, a_bytes_,
             std::min<std::uint64_t>(rows_, matmul_.m - row)},
            a_times_, reads);
    }
  }

  /// What is read of B before the first fold begins: its weights, and of B stored transposed what
  /// enters the transposer beside them.
  void read_first_b(std::vector<Reads>& reads) const {
    reads.clear();
    if (!is_transposed()) return add_b(0, reads);
    add_columns(0, 0, cols_, reads);
    if (comes_early_) {
      add_idle(rows_ - add_columns(1, 0, cols_, reads), reads);
      add_idle(1 - add_columns(2, 0, 1, reads), reads);
      return;
    }
    const std::uint64_t ahead = add_columns(1, 0, lead(), reads);
    add_idle(lead() - ahead, reads);
  }
  /// The same from the begin of a fold on: weights of the next one, output-stationary what streams.
  void read_b(std::uint64_t fold, std::vector<Reads>& reads) const {
    reads.clear();
    if (!stationary_weights_) return add_b(fold, reads);
    if (!is_transposed()) return fold + 1 == folds() ? void() : add_b(fold + 1, reads);
    if (comes_early_) {
      // The columns of a fold begin to come in the step in which the last weights leave of the one
      // two before it: those of the first in the last step before its stream.
      const std::uint64_t last_weights = rows_ - 1;
      const std::uint64_t left = std::max<std::uint64_t>(matmul_.m, rows_) - last_weights;
      const std::uint64_t rest = add_columns(fold + 2, fold == 0 ? 1 : left, cols_, reads);
      if (fold + 3 >= folds()) return;
      add_idle(last_weights - rest, reads);
      add_columns(fold + 3, 0, left, reads);
      return;
    }
    add_columns(fold + 1, lead(), cols_, reads);
    add_columns(fold + 2, 0, lead(), reads);
  }

 private:
  /// Adds the weights of a fold, or what streams.
  void add_b(std::uint64_t fold, std::vector<Reads>& reads) const {
    const std::uint64_t column = fold / inner_ * cols_;
    const std::uint64_t columns = std::min<std::uint64_t>(cols_, matmul_.n - column);
    const std::uint64_t pitch = matmul_.b.pitch;
    if (!stationary_weights_) {
      if (matmul_.b_transposed) {
        return sweep({matmul_.b.address + column * pitch, pitch, b_bytes_, columns}, b_times_,
                     reads);
      }
      return sweep({matmul_.b.address + column, pitch, columns, b_bytes_}, b_times_, reads);
    }
    const std::uint64_t depth = fold % inner_ * rows_ * b_times_;
    const std::uint64_t deep = std::min(rows_ * b_times_, b_bytes_ - depth);
    const std::uint64_t beats = ceil_div(deep, std::uint64_t{b_times_});
    add_idle(rows_ - beats, reads);
    const std::size_t first = reads.size();
    add({matmul_.b.address + depth * pitch + column, pitch * b_times_, columns, beats}, b_times_,
        reads);
    std::reverse(reads.begin() + static_cast<std::ptrdiff_t>(first), reads.end());
  }
  [[nodiscard]] bool is_transposed() const { return stationary_weights_ && matmul_.b_transposed; }
  [[nodiscard]] std::uint64_t folds() const { return inner_ * ceil_div(matmul_.n, cols_); }
  /// Cycles from the last column of a fold in the transposer to the end of its weights.
  [[nodiscard]] std::uint64_t lead() const { return rows_ + 1; }
  /// Adds a row of B for each of the columns [from, to) of a fold that there are. Returns how many.
  std::uint64_t add_columns(std::uint64_t fold, std::uint64_t from, std::uint64_t to,
                            std::vector<Reads>& reads) const {
    if (fold >= folds()) return 0;
    const std::uint64_t column = fold / inner_ * cols_;
    to = std::min({to, cols_, matmul_.n - column});
    if (from >= to) return 0;
    const std::uint64_t depth = fold % inner_ * rows_ * b_times_;
    const std::uint64_t deep = std::min(rows_ * b_times_, b_bytes_ - depth);
    add({matmul_.b.address + (column + from) * matmul_.b.pitch + depth, matmul_.b.pitch, deep,
         to - from},
        b_times_, reads);
    return to - from;
  }
  static void add_idle(std::uint64_t count, std::vector<Reads>& reads) {
    if (count != 0) reads.push_back({count, std::nullopt, 1});
  }
  void add(const RowsOfTile& tile, std::uint8_t times, std::vector<Reads>& reads) const {
    for_each_access(tile, bank_bytes_, [&](std::uint64_t rows, const BankAccess& access) {
      // Of two words that are in two banks each has one.
      reads.push_back({rows, access, access.crosses ? std::uint8_t{1} : times});
    });
  }
  /// All steps of k, spread evenly over the rows of a tile.
  void sweep(const RowsOfTile& tile, std::uint8_t times, std::vector<Reads>& reads) const {
    std::uint64_t rows_before = 0, steps_before = 0;
    // What is read in a step is short: of a row it begins in, it is in that row's first bank.
    RowsOfTile begins = tile;
    begins.bytes = 1;
    for_each_access(begins, bank_bytes_, [&](std::uint64_t rows, const BankAccess& access) {
      rows_before += rows;
      const std::uint64_t until = steps_ * rows_before / tile.rows;
      if (until != steps_before) reads.push_back({until - steps_before, access, times});
      steps_before = until;
    });
  }

  const cmd::Matmul& matmul_;
  std::uint64_t bank_bytes_, rows_, cols_;
  bool stationary_weights_;
  bool comes_early_;                         ///< a transposed B: as soon as the transposer has room
  std::uint64_t steps_ = 0;                  ///< of k
  std::uint64_t a_bytes_ = 0, b_bytes_ = 0;  ///< of k
  std::uint8_t a_times_ = 1, b_times_ = 1;   ///< words of a step
  std::uint64_t inner_ = 1;                  ///< tiles of k, or of rows
};

OperandReads::OperandReads(const Machine::Array& array, std::uint64_t banks,
                           std::uint64_t bank_bytes, std::uint32_t ports, const cmd::Matmul& matmul,
                           bool preloaded, std::uint64_t at)
    : array_(array),
      banks_(banks),
      bank_bytes_(bank_bytes),
      ports_(ports),
      matmul_(matmul),
      at_(at),
      left_(matmul_cycles(array, matmul, preloaded).interval) {
  const ArraySchedule schedule(array_, matmul.m, matmul.n,
                               array_steps<std::uint64_t>(matmul.k, int4_of(matmul)), preloaded, 0);
  folds_ = schedule.folds();
  last_interval_ = schedule.interval();
  interval_ = last_interval_ + transposer_bubble(array_, matmul);
  const auto banks_of = [&](const LocalTile& tile, const StoredShape& shape) {
    const std::uint64_t last =
        tile.address + (shape.rows - 1) * std::uint64_t{tile.pitch} + shape.cols - 1;
    return std::pair{tile.address / bank_bytes_, std::min(last / bank_bytes_, banks_ - 1)};
  };
  const auto [a_first, a_last] = banks_of(matmul.a, a_shape(matmul));
  const auto [b_first, b_last] = banks_of(matmul.b, b_shape(matmul));
  const Tiles tiles(array_, matmul_, bank_bytes_);
  a_of_fold_ = {a_first, a_last, tiles.a_words()};
  b_of_fold_ = {b_first, b_last, tiles.b_words()};
  is_plain_ = (a_last < b_first || b_last < a_first) && tiles.times() <= ports_;
}

OperandReads::OperandReads(const Machine& machine, const cmd::Matmul& matmul, std::uint64_t at)
    : OperandReads(machine.array, machine.scratchpad.banks, machine.scratchpad.bank_bytes(),
                   machine.scratchpad.ports, matmul, false, at) {
  if (array_.dataflow != Dataflow::kWeightStationary) return;
  Tiles(array_, matmul_, bank_bytes_).read_first_b(b_);
  merge(a_, b_, runs_);
}

OperandReads::OperandReads(const OperandReads& before, const cmd::Matmul& matmul,
                           std::uint64_t ready, const BankService& banks)
    : OperandReads(before.array_, before.banks_, before.bank_bytes_, before.ports_, matmul, true,
                   before.last_fold_) {
  Tiles(array_, before.matmul_, bank_bytes_).read_a(before.folds_ - 1, a_);
  std::uint64_t streamed = 0;
  for (const Reads& reads : a_) streamed += reads.count;
  if (streamed < before.last_interval_) a_.push_back({before.last_interval_ - streamed, {}, 1});
  // They come in from the begin of the last fold on, at the earliest.
  std::size_t first = 0;
  while (first < a_.size() && at_ < ready) {
    const BankService::Passed passed =
        banks.pass(at_, {a_[first].access, {}, a_[first].times, 1}, a_[first].count, ready);
    at_ = passed.end;
    a_[first].count -= passed.steps;
    if (a_[first].count != 0) break;
    ++first;
  }
  a_.erase(a_.begin(), a_.begin() + static_cast<std::ptrdiff_t>(first));
  // What a step reads is fixed when it begins, so weights do not join one that waits for its bank.
  const bool waits = !a_.empty() && at_ < ready;
  if (a_.empty()) at_ = std::max(at_, ready);
  for (const Reads& reads : a_) beside_ += reads.count;
  const std::uint64_t needed = array_.rows + transposer_cycles(array_, matmul) + (waits ? 1 : 0);
  exposed_ = needed - std::min(needed, beside_);
  Tiles(array_, matmul_, bank_bytes_).read_first_b(b_);
  if (waits) b_.insert(b_.begin(), {1, std::nullopt, 1});
  merge(a_, b_, runs_);
  left_ += beside_ + exposed_;
}

void OperandReads::merge(const std::vector<Reads>& a, const std::vector<Reads>& b,
                         std::vector<Run>& runs) {
  std::size_t i = 0, j = 0;
  std::uint64_t a_past = 0, b_past = 0;  // of their first
  while (i < a.size() || j < b.size()) {
    const std::uint64_t a_left = i < a.size() ? a[i].count - a_past : ~std::uint64_t{0};
    const std::uint64_t b_left = j < b.size() ? b[j].count - b_past : ~std::uint64_t{0};
    Run& run = runs.emplace_back();
    run.count = std::min(a_left, b_left);
    if (i < a.size()) {
      run.step.first = a[i].access;
      run.step.first_times = a[i].times;
    }
    if (j < b.size()) {
      run.step.second = b[j].access;
      run.step.second_times = b[j].times;
    }
    a_past += run.count;
    b_past += run.count;
    if (i < a.size() && a_past == a[i].count) {
      ++i;
      a_past = 0;
    }
    if (j < b.size() && b_past == b[j].count) {
      ++j;
      b_past = 0;
    }
  }
}

void OperandReads::find_runs() {
  const Tiles tiles(array_, matmul_, bank_bytes_);
  const bool weights = array_.dataflow == Dataflow::kWeightStationary;
  runs_.clear();
  run_ = 0;
  a_.clear();
  b_.clear();
  std::uint64_t length = std::min(interval_, left_);
  tiles.read_a(fold_, a_);
  tiles.read_b(fold_, b_);
  const bool waits = weights && array_.overlap == ArrayOverlap::kNone && fold_ + 1 != folds_;
  if (waits && transposer_cycles(array_, matmul_) == 0) {
    b_.insert(b_.begin(), {interval_ - array_.rows, std::nullopt, 1});
  }
  if (++fold_ == folds_) last_fold_ = at_;
  merge(a_, b_, runs_);
  for (const Run& run : runs_) length -= std::min(length, run.count);
  if (length != 0) runs_.push_back({length, {}});
}

void OperandReads::skip(const BankService& banks, std::uint64_t until, ArrayUse* use) {
  if (!is_plain_ || at_ >= until) return;
  const std::uint64_t first = std::min(a_of_fold_.first_bank, b_of_fold_.first_bank);
  const std::uint64_t last = std::max(a_of_fold_.last_bank, b_of_fold_.last_bank);
  const std::uint64_t free = std::min(until, banks.next_use(first, last, at_)) - at_;
  if (free >= left_) {
    const std::uint64_t begun = at_;
    at_ += left_;
    left_ = 0;
    fold_ = folds_;
    last_fold_ = at_ - std::min(at_, last_interval_);
    if (use == nullptr) return;
    // Beside the last stationary weights none of its own follow.
    const bool weights = array_.dataflow == Dataflow::kWeightStationary;
    use->add(begun, last_fold_, interval_, a_of_fold_, b_of_fold_);
    use->add(std::max(begun, last_fold_), at_, last_interval_, a_of_fold_,
             weights ? ArrayUse::Words{} : b_of_fold_);
    return;
  }
  const std::uint64_t folds = std::min(free / interval_, folds_ - fold_);
  if (use != nullptr) use->add(at_, at_ + folds * interval_, interval_, a_of_fold_, b_of_fold_);
  fold_ += folds;
  at_ += folds * interval_;
  left_ -= folds * interval_;
}

void OperandReads::add_use(const BankStep& step, const BankService::Passed& passed,
                           ArrayUse& use) const {
  const auto words = [&](const std::optional<BankAccess>& access, std::uint8_t times) {
    if (!access) return ArrayUse::Words{};
    return ArrayUse::Words{access->bank, access->bank + (access->crosses ? 1U : 0U),
                           passed.steps * times * (access->crosses ? 2 : 1)};
  };
  const std::uint64_t cycles = passed.end - at_;
  use.add(at_, passed.end, cycles, words(step.first, step.first_times),
          words(step.second, step.second_times), ports_ == 1 && cycles > passed.steps);
}

std::uint64_t OperandReads::advance(const BankService& banks, std::uint64_t until,
                                    std::uint64_t after, ArrayUse* use) {
  while (left_ > after) {
    if (run_ == runs_.size()) {
      skip(banks, until, use);
      if (left_ == 0) break;
      find_runs();
      continue;
    }
    Run& run = runs_[run_];
    const BankService::Passed passed = banks.pass(at_, run.step, run.count, until);
    if (use != nullptr) add_use(run.step, passed, *use);
    at_ = passed.end;
    left_ -= passed.steps;
    beside_ -= std::min(beside_, passed.steps);
    run.count -= passed.steps;
    if (run.count != 0) break;
    ++run_;
  }
  return left_ <= after ? at_ : std::max(at_ + (left_ - after), until + 1);
}

std::optional<std::size_t> OperandReads::bank() const {
  if (run_ == runs_.size()) return std::nullopt;
  const BankStep& step = runs_[run_].step;
  if (step.first) return step.first->bank;
  if (step.second) return step.second->bank;
  return std::nullopt;
}

}  // namespace systole::hw
