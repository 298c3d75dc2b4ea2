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
  std::uint64_t address = 0, pitch = 0, rows = 0;
};

/// Calls visit(rows, bank) for rows that follow each other and begin in the same bank.
template <typename Visit>
void for_each_bank_of(const RowsOfTile& tile, std::uint64_t bank_bytes, Visit visit) {
  std::uint64_t address = tile.address;
  for (std::uint64_t left = tile.rows; left != 0;) {
    const std::uint64_t bank = address / bank_bytes;
    const std::uint64_t last = (bank + 1) * bank_bytes - 1;
    const std::uint64_t rows =
        tile.pitch == 0 ? left : std::min(left, (last - address) / tile.pitch + 1);
    visit(rows, static_cast<std::uint32_t>(bank));
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
        words_(step_words(matmul)) {
    b_bytes_ = stored_bytes<std::uint64_t>(matmul.k, int4_of(matmul).b);
    inner_ = ceil_div(matmul.m, rows_);
  }

  [[nodiscard]] std::uint32_t times() const { return std::max(words_.a, words_.b); }
  /// Words of a whole fold.
  [[nodiscard]] std::uint64_t a_words() const { return words_.steps * words_.a; }
  [[nodiscard]] std::uint64_t b_words() const { return words_.steps * words_.b; }

  void read_a(std::uint64_t fold, std::vector<Reads>& reads) const {
    const std::uint64_t row = fold % inner_ * rows_;
    sweep({matmul_.a.address + row * matmul_.a.pitch, matmul_.a.pitch,
           std::min<std::uint64_t>(rows_, matmul_.m - row)},
          words_.a, reads);
  }
  void read_b(std::uint64_t fold, std::vector<Reads>& reads) const {
    const std::uint64_t column = fold / inner_ * cols_;
    const std::uint64_t columns = std::min<std::uint64_t>(cols_, matmul_.n - column);
    const std::uint64_t pitch = matmul_.b.pitch;
    if (matmul_.b_transposed) {
      return sweep({matmul_.b.address + column * pitch, pitch, columns}, words_.b, reads);
    }
    sweep({matmul_.b.address + column, pitch, b_bytes_}, words_.b, reads);
  }

 private:
  /// All steps of k, spread evenly over the rows of a tile. What is read in a step is short: of a
  /// row it begins in, it is in that row's first bank.
  void sweep(const RowsOfTile& tile, std::uint8_t times, std::vector<Reads>& reads) const {
    reads.clear();
    std::uint64_t rows_before = 0, steps_before = 0;
    for_each_bank_of(tile, bank_bytes_, [&](std::uint64_t rows, std::uint32_t bank) {
      rows_before += rows;
      const std::uint64_t until = words_.steps * rows_before / tile.rows;
      if (until != steps_before) {
        reads.push_back({until - steps_before, BankAccess{bank, false}, times});
      }
      steps_before = until;
    });
  }

  const cmd::Matmul& matmul_;
  std::uint64_t bank_bytes_, rows_, cols_;
  StepWords words_;
  std::uint64_t b_bytes_ = 0;  ///< of k
  std::uint64_t inner_ = 1;    ///< tiles of rows
};

OperandReads::OperandReads(const Machine::Array& array, const Machine::Sram& scratchpad,
                           const cmd::Matmul& matmul, std::uint64_t at)
    : array_(array),
      bank_bytes_(scratchpad.bank_bytes()),
      ports_(scratchpad.ports),
      matmul_(matmul),
      at_(at),
      left_(matmul_cycles(array, matmul, false).interval) {
  const ArraySchedule schedule(array, matmul.m, matmul.n, step_words(matmul).steps, false, 0);
  folds_ = schedule.folds();
  interval_ = schedule.interval();
  const auto of_fold = [&](const LocalTile& tile, const StoredShape& shape, std::uint64_t words) {
    const auto [first, last] = banks_of_tile(scratchpad, tile, shape, 0);
    return ArrayUse::Words{first, last, words};
  };
  const Tiles tiles(array, matmul_, bank_bytes_);
  a_of_fold_ = of_fold(matmul.a, a_shape(matmul), tiles.a_words());
  b_of_fold_ = of_fold(matmul.b, b_shape(matmul), tiles.b_words());
  is_plain_ = !a_of_fold_.meets(b_of_fold_) && tiles.times() <= ports_;
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
  runs_.clear();
  run_ = 0;
  std::uint64_t length = std::min(interval_, left_);
  tiles.read_a(fold_, a_);
  tiles.read_b(fold_, b_);
  ++fold_;
  merge(a_, b_, runs_);
  for (const Run& run : runs_) length -= std::min(length, run.count);
  if (length != 0) runs_.push_back({length, {}});
}

void OperandReads::skip(const BankService& banks, std::uint64_t until, ArrayUse* use) {
  if (!is_plain_ || at_ >= until) return;
  const std::uint64_t first = std::min(a_of_fold_.first_bank, b_of_fold_.first_bank);
  const std::uint64_t last = std::max(a_of_fold_.last_bank, b_of_fold_.last_bank);
  const std::uint64_t free = std::min(until, banks.next_use(first, last, at_)) - at_;
  const std::uint64_t folds = std::min(free / interval_, folds_ - fold_);
  if (use != nullptr) use->add(at_, at_ + folds * interval_, interval_, a_of_fold_, b_of_fold_);
  fold_ += folds;
  at_ += folds * interval_;
  left_ -= folds * interval_;
}

std::uint64_t OperandReads::advance(const BankService& banks, std::uint64_t until, ArrayUse* use) {
  while (left_ != 0) {
    if (run_ == runs_.size()) {
      skip(banks, until, use);
      if (left_ == 0) break;
      find_runs();
      continue;
    }
    Run& run = runs_[run_];
    const BankService::Passed passed = banks.pass(at_, run.step, run.count, until);
    if (use != nullptr) use->add(at_, passed, run.step);
    at_ = passed.end;
    left_ -= passed.steps;
    run.count -= passed.steps;
    if (run.count != 0) break;
    ++run_;
  }
  return left_ == 0 ? at_ : std::max(at_ + left_, until + 1);
}

std::optional<std::size_t> OperandReads::bank() const {
  if (run_ == runs_.size()) return std::nullopt;
  const BankStep& step = runs_[run_].step;
  if (step.first) return step.first->bank;
  if (step.second) return step.second->bank;
  return std::nullopt;
}

}  // namespace systole::hw
