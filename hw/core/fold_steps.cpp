#include "hw/core/fold_steps.h"

#include <algorithm>

#include "base/round.h"

namespace systole::hw {

FoldSteps::FoldSteps(const Machine& machine)
    : array_(machine.array),
      scratchpad_(machine.scratchpad),
      bank_bytes_(scratchpad_.bank_bytes()),
      word_bytes_(scratchpad_word_bytes(machine)),
      skew_(std::uint64_t{array_.rows} + array_.cols - 2),
      sums_(array_) {}

void FoldSteps::add(const cmd::Matmul& matmul, std::uint64_t ready) {
  Matmul& next = matmuls_[added_++ % kMostMatmuls];
  next.command = matmul;
  next.start = ready;
  next.words = step_words(matmul);
  next.depths = ceil_div(next.words.steps, array_.rows);
  next.columns = ceil_div(matmul.n, array_.cols);
  next.first_sum = matmul.c.address;
  next.last_sum = matmul.c.address + (matmul.m - std::uint64_t{1}) * matmul.c.pitch +
                  next.columns * array_.cols - 1;
  // The last word may reach further than what is wanted of it.
  const auto banks_of = [&](const LocalTile& tile, const StoredShape& shape) {
    const auto [first, last] = banks_of_tile(scratchpad_, tile, shape, word_bytes_);
    return ArrayUse::Words{first, last, 0};
  };
  next.a_banks = banks_of(matmul.a, a_shape(matmul));
  next.b_banks = banks_of(matmul.b, b_shape(matmul));
  const std::uint32_t most = next.a_banks.meets(next.b_banks)
                                 ? std::uint32_t{next.words.a} + next.words.b
                                 : std::max<std::uint32_t>(next.words.a, next.words.b);
  next.is_plain = most <= scratchpad_.ports;
}

void FoldSteps::idle_until(std::uint64_t at) {
  if (at <= at_) return;
  since_row_ += at - at_;
  at_ = at;
}

std::uint64_t FoldSteps::width(const Place& place) const {
  return std::min<std::uint64_t>(array_.cols,
                                 matmul(place.matmul).command.n - place.column * array_.cols);
}

FoldSteps::Run FoldSteps::next_run() const {
  Run run;
  const auto started = [&](const Place& place) {
    if (!is_known(place)) return false;
    const std::uint64_t start = matmul(place.matmul).start;
    if (start > at_) run.until = std::min(run.until, start);
    return start <= at_;
  };
  if (started(rows_) && weights_.fold > rows_.fold) {
    run.row = rows_.row != 0 || array_.overlap == ArrayOverlap::kFull || is_drained();
    if (run.row) {
      run.count = matmul(rows_.matmul).command.m - rows_.row;
    } else {
      run.count = skew_ - since_row_;
    }
  }
  if (started(weights_)) {
    const bool is_next = weights_.fold == rows_.fold + 1 && (rows_.row != 0 || run.row);
    run.weights = weights_.fold == rows_.fold || is_next;
    if (array_.overlap == ArrayOverlap::kNone) {
      run.weights = weights_.fold == rows_.fold && is_drained();
      if (weights_.fold == rows_.fold && !run.weights) {
        run.count = std::min(run.count, skew_ - since_row_);
      }
    }
    if (run.weights && is_transposed(weights_) && weights_.row == 0) {
      run.weights = filled_count_ != 0 && filled_[0] <= at_;
      if (filled_count_ != 0 && !run.weights) run.until = std::min(run.until, filled_[0]);
    }
    if (run.weights) run.count = std::min(run.count, array_.rows - weights_.row);
  }
  if (columns_.matmul == weights_.matmul && started(columns_) && is_transposed(columns_)) {
    const bool has_room = filled_count_ < filled_.size();
    const std::uint64_t last = array_.rows - 1 - weights_.row;
    run.column = has_room || (run.weights && last == 0);
    if (run.column) {
      run.count = std::min(run.count, has_room ? width(columns_) - columns_.row : 1);
    } else if (run.weights) {
      run.count = std::min(run.count, last);
    }
  }
  find_reads(run);
  return run;
}

// Rows that follow each other in the same bank are one run.
void FoldSteps::limit(Run& run, std::uint64_t steps, std::optional<BankAccess>& access,
                      std::uint8_t& times, std::uint64_t address, std::uint64_t pitch, bool down,
                      std::uint8_t words) const {
  // One division: this is where the array's time goes.
  const std::uint64_t bank = address / bank_bytes_;
  const std::uint64_t begin = bank * bank_bytes_, end = begin + bank_bytes_;
  const std::uint64_t last = address + word_bytes_ * words;
  // At the end of the memory there is no word after it.
  const bool crosses = last > end && bank + 1 != scratchpad_.banks;
  access = BankAccess{static_cast<std::uint32_t>(bank), crosses};
  // Of two words that are in two banks each has one.
  times = crosses ? std::uint8_t{1} : words;
  if (crosses) steps = 1;
  const std::uint64_t room = down ? address - begin : end - std::min(end, last);
  if ((steps - 1) * pitch > room) steps = room / pitch + 1;
  run.count = std::min(run.count, steps);
}

void FoldSteps::find_reads(Run& run) const {
  if (run.row) {
    const Matmul& of = matmul(rows_.matmul);
    const LocalTile& a = of.command.a;
    limit(run, of.command.m - rows_.row, run.step.first, run.step.first_times,
          a.address + rows_.row * a.pitch + rows_.depth * array_.rows * of.words.a, a.pitch, false,
          of.words.a);
  }
  if (run.column) {
    const Matmul& of = matmul(columns_.matmul);
    const LocalTile& b = of.command.b;
    const std::uint64_t row = columns_.column * array_.cols + columns_.row;
    limit(run, width(columns_) - columns_.row, run.step.second, run.step.second_times,
          b.address + row * b.pitch + columns_.depth * array_.rows * of.words.b, b.pitch, false,
          of.words.b);
  } else if (run.weights && !is_transposed(weights_)) {
    const Matmul& of = matmul(weights_.matmul);
    const LocalTile& b = of.command.b;
    const std::uint64_t depth = weights_.depth * array_.rows;
    const std::uint64_t zeros =
        array_.rows - std::min<std::uint64_t>(array_.rows, of.words.steps - depth);
    if (weights_.row < zeros) {
      run.count = std::min(run.count, zeros - weights_.row);
      return;
    }
    const std::uint64_t row = (depth + array_.rows - 1 - weights_.row) * of.words.b;
    limit(run, array_.rows - weights_.row, run.step.second, run.step.second_times,
          b.address + row * b.pitch + weights_.column * array_.cols,
          std::uint64_t{b.pitch} * of.words.b, true, of.words.b);
  }
}

bool FoldSteps::move(Place& place, std::uint64_t steps, std::uint64_t count) const {
  place.row += steps;
  if (place.row < count) return false;
  place.row = 0;
  ++place.fold;
  const Matmul& of = matmul(place.matmul);
  if (++place.depth < of.depths) return false;
  place.depth = 0;
  if (++place.column < of.columns) return false;
  place.column = 0;
  ++place.matmul;
  return true;
}

// Steps of a run have ended in cycle `at_`.
void FoldSteps::take(const Run& run, std::uint64_t steps) {
  since_row_ = run.row ? 0 : since_row_ + steps;
  if (run.row) (void)move(rows_, steps, matmul(rows_.matmul).command.m);
  if (run.weights) {
    const bool transposed = is_transposed(weights_);
    if (transposed && weights_.row + steps == array_.rows) {
      filled_[0] = filled_[1];
      --filled_count_;
    }
    if (move(weights_, steps, array_.rows) && !transposed) columns_ = weights_;
  }
  if (run.column) {
    const std::uint64_t count = width(columns_);
    if (columns_.row + steps == count) filled_.at(filled_count_++) = at_ + 1;
    (void)move(columns_, steps, count);
  }
}

SumRuns::Run FoldSteps::run_from_here(bool takes_rows) const {
  SumRuns::Run rows;
  rows.begin = at_;
  rows.before = at_ - held_;
  if (!takes_rows) return rows;
  const Matmul& of = matmul(rows_.matmul);
  rows.row = rows_.row;
  rows.column = rows_.column;
  rows.depth = rows_.depth;
  rows.depths = of.depths;
  rows.c = of.command.c.address;
  rows.pitch = of.command.c.pitch;
  rows.accumulate = of.command.accumulate;
  rows.first_sum = of.first_sum;
  rows.last_sum = of.last_sum;
  return rows;
}

void FoldSteps::keep(const Run& run, const BankService::Passed& passed) {
  const bool waited = passed.end - at_ != passed.steps;
  if (!keeps_sums_ || (!run.row && !waited)) return;
  SumRuns::Run kept = run_from_here(run.row);
  kept.rows = run.row ? passed.steps : 0;
  kept.end = passed.end;
  kept.steps = kept.interval = passed.steps;
  if (waited) kept.reads = run.step;
  sums_.add(kept);
}

void FoldSteps::keep_folds(std::uint64_t count, std::uint64_t interval, std::uint64_t waits) {
  if (!keeps_sums_) return;
  SumRuns::Run kept = run_from_here(true);
  kept.rows = matmul(rows_.matmul).command.m;
  kept.interval = interval - waits;
  kept.waits = waits;
  kept.steps = count * kept.interval;
  kept.end = at_ + count * interval;
  sums_.add(kept);
}

FoldSteps::Phase FoldSteps::phase() const {
  Phase phase;
  phase.weights_ahead = weights_.fold - rows_.fold;
  phase.weights_row = weights_.row;
  if (!is_transposed(rows_)) return phase;
  phase.columns_ahead = columns_.fold - rows_.fold;
  phase.columns_row = columns_.row;
  phase.count = filled_count_;
  for (std::size_t i = 0; i < filled_count_; ++i) {
    phase.filled.at(i) = filled_.at(i) - std::min(filled_.at(i), at_);
  }
  return phase;
}

FoldSteps::FoldSteps(const FoldSteps& of, const Passed& passed)
    : array_(of.array_),
      scratchpad_(of.scratchpad_),
      bank_bytes_(of.bank_bytes_),
      word_bytes_(of.word_bytes_),
      skew_(of.skew_),
      first_(passed.rows.matmul),
      added_(first_ + 1),
      sums_(array_),
      skips_(false),
      rows_(passed.rows),
      weights_(passed.weights),
      columns_(passed.columns),
      filled_(passed.filled),
      filled_count_(passed.filled_count),
      since_row_(passed.since_row),
      at_(passed.begin) {
  matmuls_[first_ % kMostMatmuls] = passed.matmul;
}

ArrayUse FoldSteps::passed_over(std::uint64_t from, std::uint64_t to) const {
  ArrayUse use;
  const BankService alone(scratchpad_.banks, scratchpad_.ports);
  for (const Passed& passed : passed_) {
    if (passed.end <= from || passed.begin >= to) continue;
    FoldSteps steps(*this, passed);
    steps.pass_folds((std::max(from, passed.begin) - passed.begin) / passed.interval,
                     passed.interval);
    // A step may have begun in the last cycle and take another one.
    steps.advance(alone, std::min(to + 1, passed.end), false, use);
  }
  return use;
}

void FoldSteps::pass_folds(std::uint64_t count, std::uint64_t interval) {
  const Matmul& of = matmul(rows_.matmul);
  at_ += count * interval;
  for (Place* const place : {&rows_, &weights_, &columns_}) {
    if (place == &columns_ && !of.command.b_transposed) continue;
    const std::uint64_t fold = place->column * of.depths + place->depth + count;
    place->column = fold / of.depths;
    place->depth = fold % of.depths;
    place->fold += count;
  }
  for (std::size_t i = 0; i < filled_count_; ++i) filled_.at(i) += count * interval;
}

bool FoldSteps::skip(const BankService& banks, std::uint64_t until) {
  if (rows_.row != 0 || weights_.fold <= rows_.fold || weights_.matmul != rows_.matmul) {
    return false;
  }
  if (array_.overlap != ArrayOverlap::kFull && !is_drained()) return false;
  const Matmul& of = matmul(rows_.matmul);
  if (of.start > at_) return false;
  if (!of.is_plain) return skip_in_one_bank(banks, until);
  const Phase now = phase();
  const bool repeats = fold_ + 1 == rows_.fold && fold_held_ == held_ && fold_phase_ == now;
  std::uint64_t interval = at_ - fold_at_;
  fold_ = rows_.fold;
  fold_at_ = at_;
  fold_held_ = held_;
  fold_phase_ = now;
  const std::uint64_t folds = of.depths * of.columns;
  const std::uint64_t first = rows_.fold - rows_.depth - rows_.column * of.depths;
  std::uint64_t last = first + folds - 1;  // that the place that is furthest may come to
  std::uint64_t furthest = weights_.fold;
  if (of.command.b_transposed) {
    if (!repeats || columns_.matmul != rows_.matmul) return false;
    furthest = std::max(furthest, columns_.fold);
    // Its last tile of columns may be narrower.
    const bool is_narrower = of.command.n % array_.cols != 0;
    const bool is_last = columns_.column + 1 == of.columns;
    if (is_narrower && is_last && columns_.depth == 0) return false;  // those before were wide
    if (is_narrower && !is_last) last -= of.depths;
  } else if (array_.overlap == ArrayOverlap::kFull && weights_.fold == rows_.fold + 1 &&
             weights_.row == 0) {
    interval = std::max<std::uint64_t>(of.command.m, array_.rows);
  } else if (!repeats) {
    return false;
  }
  if (furthest >= last) return false;
  const std::size_t first_bank = std::min(of.a_banks.first_bank, of.b_banks.first_bank);
  const std::size_t last_bank = std::max(of.a_banks.last_bank, of.b_banks.last_bank);
  const std::uint64_t free = std::min(until, banks.next_use(first_bank, last_bank, at_));
  if (free <= at_) return false;
  return skip_folds(std::min((free - at_) / interval, last - furthest), interval, 0);
}

std::uint64_t FoldSteps::folds_in_bank(std::uint64_t bank) const {
  const Matmul& of = matmul(weights_.matmul);
  const std::uint64_t left = of.depths * of.columns - weights_.column * of.depths - weights_.depth;
  if (of.b_banks.first_bank == of.b_banks.last_bank) return left;
  const LocalTile& b = of.command.b;
  const std::uint64_t begin = b.address + weights_.column * array_.cols;
  const std::uint64_t end = (bank + 1) * bank_bytes_;
  if (begin + word_bytes_ > end) return 0;
  const std::uint64_t rows = std::min((end - word_bytes_ - begin) / b.pitch + 1, of.words.steps);
  return rows / array_.rows - std::min(rows / array_.rows, weights_.depth);
}

bool FoldSteps::skip_in_one_bank(const BankService& banks, std::uint64_t until) {
  const Matmul& of = matmul(rows_.matmul);
  const std::uint64_t rows = array_.rows, m = of.command.m;
  const bool reads_words = scratchpad_.ports == 1 && of.words.a == 1 && of.words.b == 1;
  if (!reads_words || of.command.b_transposed || array_.overlap != ArrayOverlap::kFull ||
      of.words.steps % rows != 0 || weights_.fold != rows_.fold + 1 || weights_.row != 0) {
    return false;
  }
  const LocalTile& a = of.command.a;
  const std::uint64_t both = std::min(rows, m);  // steps that read a row of A and one of B
  const std::uint64_t last_word = a.address + (both - 1) * a.pitch + (of.depths - 1) * rows;
  const std::uint64_t a_bank = of.a_banks.first_bank;
  if (last_word + word_bytes_ > (a_bank + 1) * bank_bytes_) return false;
  const LocalTile& b = of.command.b;
  const std::uint64_t first =
      b.address + weights_.depth * rows * b.pitch + weights_.column * array_.cols;
  const std::uint64_t b_bank = first / bank_bytes_;
  const std::uint64_t free = std::min({until, banks.next_use(a_bank, of.a_banks.last_bank, at_),
                                       banks.next_use(b_bank, b_bank, at_)});
  if (free <= at_) return false;
  const std::uint64_t waits = a_bank == b_bank ? both : 0;
  const std::uint64_t interval = std::max(rows, m) + waits;
  const std::uint64_t last =
      rows_.fold - rows_.depth - rows_.column * of.depths + of.depths * of.columns - 1;
  const std::uint64_t ahead = std::min(last - weights_.fold, folds_in_bank(b_bank));
  return skip_folds(std::min((free - at_) / interval, ahead), interval, waits);
}

bool FoldSteps::skip_folds(std::uint64_t count, std::uint64_t interval, std::uint64_t waits) {
  if (count == 0) return false;
  passed_.push_back({at_, at_ + count * interval, interval, matmul(rows_.matmul), rows_, weights_,
                     columns_, filled_, filled_count_, since_row_});
  keep_folds(count, interval, waits);
  held_ += count * waits;
  pass_folds(count, interval);
  fold_ = rows_.fold;
  fold_at_ = at_;
  fold_held_ = held_;
  return true;
}

void FoldSteps::advance(const BankService& banks, std::uint64_t until, bool stops, ArrayUse& use) {
  while (!over() && at_ < until) {
    if (stops && takes_next() && !open_) return;
    if (!open_ && skips_ && skip(banks, until)) continue;
    const Run run = open_ ? run_ : next_run();
    if (!run.moves()) {
      // It waits for its start, for the transposer, or for sums to leave.
      const std::uint64_t steps = std::min(run.count, std::min(run.until, until) - at_);
      at_ += steps;
      since_row_ += steps;
      continue;
    }
    // What a step reads is fixed when it begins.
    const std::uint64_t count = open_ ? 1 : run.count;
    const std::uint64_t end = open_ ? until : std::min(run.until, until);
    const BankService::Passed passed = banks.pass(at_, run.step, count, end);
    if (passed.steps != 0) {
      use.add(at_, passed, run.step);
      keep(run, passed);
    }
    held_ += passed.end - at_ - passed.steps;
    at_ = passed.end;
    if (passed.steps != 0) {
      open_ = false;
      take(run, passed.steps);
    }
    if (passed.steps != count && at_ < end) {
      if (passed.steps != 0) {
        run_ = next_run();
      } else {
        run_ = run;
      }
      open_ = true;
      if (end == until) return;
    }
  }
}

std::uint64_t FoldSteps::before_drained() const {
  if (array_.overlap == ArrayOverlap::kFull || rows_.row != 0 || is_drained()) return 0;
  return skew_ - since_row_;
}

std::uint64_t FoldSteps::before_rows() const {
  const std::uint64_t drain = before_drained();
  if (over() || rows_.row != 0 || weights_.fold > rows_.fold) return drain;
  std::uint64_t columns = 0;  // before the transposer has them
  if (is_transposed(rows_) && weights_.row == 0) {
    if (filled_count_ != 0) {
      columns = filled_[0] - std::min(filled_[0], at_);
    } else {
      columns = (columns_.fold == weights_.fold ? width(columns_) - columns_.row : 0) + 1;
    }
  }
  const std::uint64_t weights = array_.rows - weights_.row;
  return array_.overlap == ArrayOverlap::kNone ? std::max(drain, columns) + weights
                                               : std::max(drain, columns + weights);
}

std::uint64_t FoldSteps::left() const {
  if (over()) return 0;
  const Matmul& of = matmul(first_);
  const std::uint64_t rows = array_.rows, m = of.command.m;
  const std::uint64_t folds = (of.columns - rows_.column) * of.depths - rows_.depth - 1;
  const std::uint64_t left = m - rows_.row;
  const std::uint64_t lead = before_rows();
  if (folds == 0) return lead + left;
  const std::uint64_t weights = weights_.fold == rows_.fold + 1 ? rows - weights_.row
                                : weights_.fold <= rows_.fold   ? rows
                                                                : 0;
  switch (array_.overlap) {
    case ArrayOverlap::kNone:
      return lead + left + folds * (skew_ + rows + m);
    case ArrayOverlap::kPreload:
      return lead + std::max(left + skew_, weights) + (folds - 1) * std::max(m + skew_, rows) + m;
    case ArrayOverlap::kFull:
      break;
  }
  return lead + std::max(left, weights) + (folds - 1) * std::max(m, rows) + m;
}

std::optional<std::size_t> FoldSteps::bank() const {
  if (!open_) return std::nullopt;
  if (run_.step.first) return run_.step.first->bank;
  if (run_.step.second) return run_.step.second->bank;
  return std::nullopt;
}

}  // namespace systole::hw
