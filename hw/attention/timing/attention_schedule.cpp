#include "hw/attention/timing/attention_schedule.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "hw/attention/timing/attention_cycles.h"
#include "hw/attention/timing/attention_runs.h"

namespace systole::hw {
namespace {

/// Names that were seen in the current window, without a pass over all names between windows.
class WindowSet {
 public:
  explicit WindowSet(std::size_t names) : window_of_(names, 0) {}

  void begin_window() { ++window_; }
  /// True if `name` is new in this window.
  bool insert(std::size_t name) {
    const bool fresh = window_of_[name] != window_;
    window_of_[name] = window_;
    return fresh;
  }

 private:
  std::vector<std::uint32_t> window_of_;
  std::uint32_t window_ = 0;
};

/// Words that one window wants of each bank of a buffer. An operand wanted twice in a window counts
/// once. `names`: operands; `banks`: a power of two.
class BankLoad {
 public:
  BankLoad(std::size_t names, std::uint32_t banks) : wanted_(names), words_(banks, 0) {}

  void begin_window() {
    wanted_.begin_window();
    std::fill(words_.begin(), words_.end(), 0);
  }
  /// `place`: the operand's bank, before it is taken modulo the number of banks.
  void want(std::size_t name, std::size_t place, std::uint64_t words) {
    if (!wanted_.insert(name)) return;
    words_[place & (words_.size() - 1)] += words;
    total_ += words;
  }
  /// Words of all banks and windows.
  [[nodiscard]] std::uint64_t total() const { return total_; }
  /// Cycles that the most wanted bank needs with `ports` words a cycle.
  [[nodiscard]] std::uint64_t cycles(std::uint32_t ports) const {
    return (*std::max_element(words_.begin(), words_.end()) + ports - 1) / ports;
  }

 private:
  WindowSet wanted_;
  std::vector<std::uint64_t> words_;
  std::uint64_t total_ = 0;
};

/// Rows that the lines begin to need, each once per window and engine.
class AccessList {
 public:
  AccessList(AttentionOperand operand, std::size_t rows)
      : operand_(operand), rows_(rows), seen_(2 * rows) {}

  void begin_window() { seen_.begin_window(); }
  void add(bool sparse, std::uint16_t row, std::uint64_t cycle, AttentionPhase& phase) {
    if (seen_.insert((sparse ? rows_ : 0) + row)) {
      phase.accesses.push_back({operand_, sparse, row, cycle, 0});
    }
  }

 private:
  AttentionOperand operand_;
  std::size_t rows_;
  WindowSet seen_;
};

/// What the scores of an SDDMM want of the buffers.
class SddmmWants {
 public:
  SddmmWants(const SparseHead& head, std::size_t dim, const Machine::Attention& attention)
      : head_(head),
        ports_(attention.ports),
        row_words_(line_passes(dim, attention)),
        query_rows_(AttentionOperand::kQuery, head.queries),
        key_rows_(AttentionOperand::kKey, head.keys),
        queries_(head.queries, attention.banks),
        keys_(head.keys, attention.banks),
        scores_(head.dense_cells() + head.sparse_kept(), attention.banks) {}

  void begin_window() {
    query_rows_.begin_window();
    key_rows_.begin_window();
    queries_.begin_window();
    keys_.begin_window();
    scores_.begin_window();
  }

  /// Steps [begin, end) of a run. The line keeps the key from the first to the last.
  void add(bool sparse, const LineRun& run, std::uint64_t begin, std::uint64_t end,
           AttentionPhase& phase) {
    const std::uint16_t key =
        sparse ? head_.sparse_columns[run.item] : head_.dense_columns[run.item];
    if (begin == 0) {
      keys_.want(key, key, row_words_);
      key_rows_.add(sparse, key, phase.cycles, phase);
    }
    for (std::uint64_t step = begin; step < end; ++step) {
      const std::size_t cell = run.first_cell + step * run.cell_step;
      const std::uint16_t query = sparse
                                      ? head_.row_indices[cell]
                                      : static_cast<std::uint16_t>(cell - run.item * head_.queries);
      queries_.want(query, query, row_words_);
      query_rows_.add(sparse, query, phase.cycles, phase);
      scores_.want(sparse ? head_.dense_cells() + cell : cell, std::size_t{query} + key, 1);
    }
  }

  [[nodiscard]] std::uint64_t bank_cycles() const {
    return std::max({queries_.cycles(ports_), keys_.cycles(ports_), scores_.cycles(ports_)});
  }
  [[nodiscard]] std::uint64_t operand_words() const { return queries_.total() + keys_.total(); }
  [[nodiscard]] std::uint64_t score_words() const { return scores_.total(); }

 private:
  const SparseHead& head_;
  std::uint32_t ports_;
  std::uint64_t row_words_;
  AccessList query_rows_;
  AccessList key_rows_;
  BankLoad queries_;
  BankLoad keys_;
  BankLoad scores_;
};

/// What the products of an SpMM want of the buffers.
class SpmmWants {
 public:
  SpmmWants(const SparseHead& head, const SparseRows& rows, std::size_t value_dim,
            const Machine::Attention& attention)
      : head_(head),
        rows_(rows),
        ports_(attention.ports),
        groups_(line_passes(value_dim, attention)),
        needs_codes_(head.queries, false),
        value_rows_(AttentionOperand::kValue, head.keys),
        values_(head.keys * groups_, attention.banks),
        codes_(head.dense_cells() + head.sparse_kept(), attention.banks) {
    for (std::size_t i = 0; i < head.dense_keep.size(); ++i) {
      if (head.dense_keep[i]) needs_codes_[i % head.queries] = true;
    }
    for (const std::uint16_t query : head.row_indices) needs_codes_[query] = true;
  }

  void begin_window() {
    value_rows_.begin_window();
    values_.begin_window();
    codes_.begin_window();
  }

  /// Steps [begin, end) of a run.
  void add(bool sparse, const LineRun& run, std::uint64_t begin, std::uint64_t end,
           AttentionPhase& phase) {
    const std::size_t query = run.item / groups_;
    const std::size_t group = run.item % groups_;
    if (needs_codes_[query]) {
      needs_codes_[query] = false;
      phase.codes.push_back({static_cast<std::uint16_t>(query), phase.cycles});
    }
    for (std::uint64_t step = begin; step < end; ++step) {
      const std::size_t cell = run.first_cell + step * run.cell_step;
      const std::uint16_t key = sparse ? rows_.keys[cell] : head_.dense_columns[step];
      const std::size_t word = key * groups_ + group;
      values_.want(word, word, 1);
      value_rows_.add(sparse, key, phase.cycles, phase);
      codes_.want(sparse ? head_.dense_cells() + cell : cell, query + key, 1);
    }
  }

  [[nodiscard]] std::uint64_t bank_cycles() const {
    return std::max(values_.cycles(ports_), codes_.cycles(ports_));
  }
  [[nodiscard]] std::uint64_t operand_words() const { return values_.total(); }
  [[nodiscard]] std::uint64_t score_words() const { return codes_.total(); }

 private:
  const SparseHead& head_;
  const SparseRows& rows_;
  std::uint32_t ports_;
  std::size_t groups_;
  std::vector<bool> needs_codes_;  ///< [queries] whose kept cells are still to be met
  AccessList value_rows_;
  BankLoad values_;
  BankLoad codes_;
};

/// Walks the windows of a phase: `window_steps` steps of `step_cycles` cycles each.
template <typename Wants>
AttentionPhase walk_windows(const LineRuns& runs, std::uint64_t window_steps,
                            std::uint64_t step_cycles, Wants wants) {
  const std::size_t lines = runs.lines.size();
  AttentionPhase phase;
  phase.split = runs.split;
  phase.busy.assign(lines, 0);
  phase.conflict.assign(lines, 0);
  std::vector<std::size_t> next(lines, 0);  // first run of each line that is not over
  const std::uint64_t steps = runs.steps();
  for (std::uint64_t begin = 0; begin < steps; begin += window_steps) {
    const std::uint64_t end = std::min(begin + window_steps, steps);
    const std::size_t first_access = phase.accesses.size();
    wants.begin_window();
    std::vector<std::size_t> working;
    for (std::size_t line = 0; line < lines; ++line) {
      const std::vector<LineRun>& own = runs.lines[line];
      if (next[line] < own.size()) working.push_back(line);
      while (next[line] < own.size() && own[next[line]].start < end) {
        const LineRun& run = own[next[line]];
        const std::uint64_t from = std::max(run.start, begin);
        const std::uint64_t to = std::min(run.end(), end);
        wants.add(line >= runs.split.dense, run, from - run.start, to - run.start, phase);
        phase.busy[line] += (to - from) * step_cycles;
        if (run.end() > end) break;
        ++next[line];
      }
    }
    const std::uint64_t work_cycles = (end - begin) * step_cycles;
    const std::uint64_t cycles = std::max(work_cycles, wants.bank_cycles());
    for (const std::size_t line : working) phase.conflict[line] += cycles - work_cycles;
    phase.cycles += cycles;
    for (std::size_t i = first_access; i < phase.accesses.size(); ++i) {
      phase.accesses[i].end = phase.cycles;
    }
  }
  phase.operand_words = wants.operand_words();
  phase.score_words = wants.score_words();
  return phase;
}

}  // namespace

std::uint64_t AttentionPhase::idle_cycles() const {
  const std::uint64_t used = std::accumulate(busy.begin(), busy.end(), std::uint64_t{0}) +
                             std::accumulate(conflict.begin(), conflict.end(), std::uint64_t{0});
  return busy.size() * cycles - used;
}

AttentionPhase schedule_sddmm(const SparseHead& head, std::size_t dim,
                              const Machine::Attention& attention) {
  return walk_windows(sddmm_runs(head, dim, attention), attention.line_rows,
                      line_passes(dim, attention), SddmmWants(head, dim, attention));
}

AttentionPhase schedule_spmm(const SparseHead& head, std::size_t dim, std::size_t value_dim,
                             const Machine::Attention& attention) {
  const std::uint64_t window = attention.line_rows * line_passes(dim, attention);
  const SparseRows rows = sparse_rows(head);
  return walk_windows(spmm_runs(head, rows, value_dim, attention), window, 1,
                      SpmmWants(head, rows, value_dim, attention));
}

}  // namespace systole::hw
