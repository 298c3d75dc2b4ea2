#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "hw/attention/timing/attention_cycles.h"
#include "hw/attention/timing/attention_schedule.h"
#include "tests/hw/attention/sparse_heads.h"

/// The rules of hw/attention/timing/attention_schedule.h, written down without regard to speed.
namespace systole::hw {

using Counts = std::vector<std::uint64_t>;
/// Cycle, operand, for the sparser engine, row.
using Access = std::tuple<std::uint64_t, AttentionOperand, bool, std::uint16_t>;

/// What a line does in one step of a phase, a score or a cycle.
struct Work {
  std::uint64_t step;
  bool sparse;
  std::size_t query, key, group;
  bool begins;  ///< a column
};
using Lines = std::vector<std::vector<Work>>;

struct Setting {
  HeadMask mask;
  SparseHead head;
  std::size_t dim, value_dim;
  Machine::Attention attention;

  [[nodiscard]] std::uint64_t passes(std::size_t features) const {
    return (features + attention.macs_per_line - 1) / attention.macs_per_line;
  }
};

inline Lines sddmm_lines(const Setting& setting) {
  const SparseHead& head = setting.head;
  const LineSplit split = allocate_lines(head, setting.attention);
  Lines lines(setting.attention.lines);
  for (std::size_t c = 0; c < head.dense_columns.size(); ++c) {
    for (std::size_t q = 0; q < head.queries; ++q) {
      lines[q % split.dense].push_back({q / split.dense * head.dense_columns.size() + c, false, q,
                                        head.dense_columns[c], 0, true});
    }
  }
  const auto place = [&](std::size_t line, std::size_t column, std::size_t i, std::uint64_t step,
                         bool begins) {
    lines[split.dense + line].push_back({step, true,
                                         head.row_indices[head.column_pointers[column] + i],
                                         head.sparse_columns[column], 0, begins});
  };
  if (setting.attention.mapping == SparserMapping::kBroadcast) {
    std::uint64_t begin = 0;
    for (std::size_t c = 0; c < head.sparse_columns.size(); ++c) {
      const std::size_t kept = head.column_kept(c);
      for (std::size_t i = 0; i < kept; ++i) {
        place(i % split.sparse, c, i, begin + i / split.sparse, i < split.sparse);
      }
      if (kept > 0) begin += (kept + split.sparse - 1) / split.sparse;
    }
    return lines;
  }
  const LineSchedule schedule = sddmm_column_schedule(head, setting.dim, setting.attention);
  for (std::size_t line = 0; line < split.sparse; ++line) {
    std::uint64_t step = 0;
    for (const std::uint32_t column : schedule.items[line]) {
      for (std::size_t i = 0; i < head.column_kept(column); ++i) {
        place(line, column, i, step++, i == 0);
      }
    }
  }
  return lines;
}

inline Lines spmm_lines(const Setting& setting) {
  const SparseHead& head = setting.head;
  const LineSplit split = allocate_lines(head, setting.attention);
  const std::size_t groups = setting.passes(setting.value_dim);
  Lines lines(setting.attention.lines);
  for (std::size_t item = 0; split.dense > 0 && item < head.queries * groups; ++item) {
    std::uint64_t step = item / split.dense * head.dense_columns.size();
    for (const std::uint16_t key : head.dense_columns) {
      lines[item % split.dense].push_back(
          {step++, false, item / groups, key, item % groups, false});
    }
  }
  const LineSchedule schedule = spmm_group_schedule(head, setting.value_dim, setting.attention);
  for (std::size_t line = 0; line < split.sparse; ++line) {
    std::uint64_t step = 0;
    for (const std::uint32_t item : schedule.items[line]) {
      for (const std::uint16_t key : head.sparse_columns) {
        if (!setting.mask.kept(item / groups, key)) continue;
        lines[split.dense + line].push_back(
            {step++, true, item / groups, key, item % groups, false});
      }
    }
  }
  return lines;
}

/// Words by bank of one buffer in one window.
class Buffer {
 public:
  void want(std::size_t operand, std::size_t bank, std::uint64_t words) {
    if (operands_.insert(operand).second) banks_[bank] += words;
  }
  [[nodiscard]] std::uint64_t cycles(std::uint64_t ports) const {
    std::uint64_t most = 0;
    for (const auto& [bank, words] : banks_) most = std::max(most, (words + ports - 1) / ports);
    return most;
  }
  [[nodiscard]] std::uint64_t words() const {
    std::uint64_t sum = 0;
    for (const auto& [bank, words] : banks_) sum += words;
    return sum;
  }

 private:
  std::set<std::size_t> operands_;
  std::map<std::size_t, std::uint64_t> banks_;
};

/// The rules of hw/attention/timing/attention_schedule.h, looking through all the work for every
/// window.
struct Reference {
  std::uint64_t cycles = 0;
  Counts busy, conflict;
  std::set<Access> accesses;
  std::map<std::size_t, std::uint64_t> codes;
  std::map<std::uint64_t, std::uint64_t> windows;  ///< by first cycle, where they end
  std::uint64_t operand_words = 0, score_words = 0;

  Reference(const Setting& setting, bool spmm)
      : busy(setting.attention.lines, 0), conflict(setting.attention.lines, 0) {
    const Machine::Attention& attention = setting.attention;
    const Lines lines = spmm ? spmm_lines(setting) : sddmm_lines(setting);
    const std::uint64_t row_words = setting.passes(setting.dim);
    const std::uint64_t step_cycles = spmm ? 1 : row_words;
    const std::uint64_t window = attention.line_rows * (spmm ? row_words : 1);
    const std::size_t groups = setting.passes(setting.value_dim);
    std::uint64_t steps = 0;
    for (const auto& line : lines) {
      for (const Work& work : line) steps = std::max(steps, work.step + 1);
    }
    for (std::uint64_t begin = 0; begin < steps; begin += window) {
      const std::uint64_t end = std::min(begin + window, steps);
      Buffer q, k, v, scores;
      std::set<std::size_t> working;
      for (std::size_t l = 0; l < lines.size(); ++l) {
        for (const Work& work : lines[l]) {
          if (work.step >= begin) working.insert(l);
          if (work.step < begin || work.step >= end) continue;
          busy[l] += step_cycles;
          scores.want(work.query * setting.head.keys + work.key,
                      (work.query + work.key) % attention.banks, 1);
          const auto access = [&](AttentionOperand operand, std::size_t row) {
            accesses.emplace(cycles, operand, work.sparse, row);
          };
          if (spmm) {
            const std::size_t word = work.key * groups + work.group;
            v.want(word, word % attention.banks, 1);
            access(AttentionOperand::kValue, work.key);
            const std::uint8_t* row = setting.mask.keep.data() + work.query * setting.mask.keys;
            if (std::count(row, row + setting.mask.keys, 1) > 0) codes.emplace(work.query, cycles);
          } else {
            q.want(work.query, work.query % attention.banks, row_words);
            access(AttentionOperand::kQuery, work.query);
          }
          if (work.begins) {
            k.want(work.key, work.key % attention.banks, row_words);
            access(AttentionOperand::kKey, work.key);
          }
        }
      }
      std::uint64_t longest = (end - begin) * step_cycles;
      for (const Buffer* buffer : {&q, &k, &v, &scores}) {
        longest = std::max(longest, buffer->cycles(attention.ports));
      }
      for (const std::size_t l : working) conflict[l] += longest - (end - begin) * step_cycles;
      operand_words += q.words() + k.words() + v.words();
      score_words += scores.words();
      windows.emplace(cycles, cycles + longest);
      cycles += longest;
    }
  }
};

}  // namespace systole::hw
