#include "hw/attention/sparse_attention.h"

#include <stdexcept>
#include <utility>

#include "hw/postop/stage_constants.h"

namespace systole::hw {
namespace {

std::int32_t score(const AttentionOperands& operands, std::size_t query, std::size_t key) {
  const std::int8_t* q = operands.q + query * operands.q_pitch;
  const std::int8_t* k = operands.k + key * operands.k_pitch;
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < operands.dim; ++i) sum += q[i] * k[i];
  return sum;
}

void accumulate(const AttentionOperands& operands, std::size_t key, std::uint8_t code,
                OutputGroup group, std::int32_t* sums) {
  const std::int8_t* v = operands.v + key * operands.v_pitch + group.first;
  for (std::size_t i = 0; i < group.count; ++i) sums[i] += code * v[i];
}

void check_operands(const AttentionOperands& operands) {
  for (const std::size_t dimension : {operands.dim, operands.value_dim}) {
    if (dimension < 1 || dimension > kMaxAttentionFeatures) {
      throw std::invalid_argument("sparse attention: expected 1 to 65535 features");
    }
  }
  if (operands.q_pitch < operands.dim || operands.k_pitch < operands.dim ||
      operands.v_pitch < operands.value_dim) {
    throw std::invalid_argument("sparse attention: a pitch is shorter than its row");
  }
}

}  // namespace

void score_dense_column(const SparseHead& head, const AttentionOperands& operands,
                        std::size_t column, std::size_t first, std::size_t step,
                        SplitCells<std::int32_t>& scores) {
  const std::size_t key = head.dense_columns[column];
  for (std::size_t query = first; query < head.queries; query += step) {
    scores.dense[column * head.queries + query] = score(operands, query, key);
  }
}

void score_sparse_column(const SparseHead& head, const AttentionOperands& operands,
                         std::size_t column, SplitCells<std::int32_t>& scores) {
  const std::size_t key = head.sparse_columns[column];
  for (std::uint32_t cell = head.column_pointers[column]; cell < head.column_pointers[column + 1];
       ++cell) {
    scores.sparse[cell] = score(operands, head.row_indices[cell], key);
  }
}

SplitCells<std::int32_t> attention_scores(const SparseHead& head,
                                          const AttentionOperands& operands) {
  auto scores = make_split_cells<std::int32_t>(head);
  for (std::size_t c = 0; c < head.dense_columns.size(); ++c) {
    score_dense_column(head, operands, c, 0, 1, scores);
  }
  for (std::size_t c = 0; c < head.sparse_columns.size(); ++c) {
    score_sparse_column(head, operands, c, scores);
  }
  return scores;
}

ScoreFunctions score_functions(const Chain& chain) {
  ScoreFunctions functions{softmax_constants(chain.stages.back()), std::nullopt};
  Chain stages{chain.stages, DType::kS32};
  stages.stages.pop_back();
  if (!stages.stages.empty()) functions.stages.emplace(std::move(stages));
  return functions;
}

void apply_score_stages(const ScoreFunctions& functions, SplitCells<std::int32_t>& scores) {
  if (!functions.stages) return;
  for (std::vector<std::int32_t>* const cells : {&scores.dense, &scores.sparse}) {
    std::vector<std::int32_t> results(cells->size());
    ChainOperands operands;
    operands.accumulator = cells->data();
    operands.out = results.data();
    operands.rows = 1;
    operands.cols = cells->size();
    functions.stages->apply(operands);
    cells->swap(results);
  }
}

AttentionCodes softmax_kept_cells(const SparseHead& head, const SparseRows& rows,
                                  const SplitCells<std::int32_t>& scores,
                                  const SoftmaxConstants& constants) {
  if (constants.mode != SoftmaxMode::kDeferred) {
    throw std::invalid_argument("sparse attention: expected the deferred softmax");
  }
  AttentionCodes codes{make_split_cells<std::uint8_t>(head),
                       std::vector<std::uint32_t>(head.queries)};
  const std::size_t global = head.dense_columns.size();
  std::vector<std::int32_t> row;
  std::vector<std::uint8_t> keep;
  std::vector<std::uint8_t> row_codes;
  for (std::size_t query = 0; query < head.queries; ++query) {
    row.clear();
    keep.clear();
    for (std::size_t cell = query; cell < head.dense_cells(); cell += head.queries) {
      row.push_back(scores.dense[cell]);
      keep.push_back(head.dense_keep[cell] ? 1 : 0);
    }
    for (std::uint32_t i = rows.pointers[query]; i < rows.pointers[query + 1]; ++i) {
      row.push_back(scores.sparse[rows.cells[i]]);
      keep.push_back(1);
    }
    row_codes.resize(row.size());
    codes.divisor[query] =
        softmax_row(row.data(), keep.data(), row.size(), constants, row_codes.data());
    for (std::size_t c = 0; c < global; ++c) {
      codes.cells.dense[c * head.queries + query] = row_codes[c];
    }
    for (std::uint32_t i = rows.pointers[query]; i < rows.pointers[query + 1]; ++i) {
      codes.cells.sparse[rows.cells[i]] = row_codes[global + i - rows.pointers[query]];
    }
  }
  return codes;
}

void accumulate_dense_group(const SparseHead& head, const AttentionOperands& operands,
                            const AttentionCodes& codes, OutputGroup group, std::int32_t* sums) {
  for (std::size_t c = 0; c < head.dense_columns.size(); ++c) {
    accumulate(operands, head.dense_columns[c], codes.cells.dense[c * head.queries + group.query],
               group, sums);
  }
}

void accumulate_sparse_group(const SparseRows& rows, const AttentionOperands& operands,
                             const AttentionCodes& codes, OutputGroup group, std::int32_t* sums) {
  for (std::uint32_t i = rows.pointers[group.query]; i < rows.pointers[group.query + 1]; ++i) {
    accumulate(operands, rows.keys[i], codes.cells.sparse[rows.cells[i]], group, sums);
  }
}

AttentionSums attention_sums(const SparseHead& head, const AttentionOperands& operands,
                             const ScoreFunctions& functions) {
  check_sparse_head(head);
  check_operands(operands);
  const SparseRows rows = sparse_rows(head);
  SplitCells<std::int32_t> scores = attention_scores(head, operands);
  apply_score_stages(functions, scores);
  AttentionCodes codes = softmax_kept_cells(head, rows, scores, functions.softmax);

  std::vector<std::int32_t> sums(head.queries * operands.value_dim, 0);
  for (std::size_t query = 0; query < head.queries; ++query) {
    std::int32_t* row = sums.data() + query * operands.value_dim;
    const OutputGroup all{query, 0, operands.value_dim};
    accumulate_dense_group(head, operands, codes, all, row);
    accumulate_sparse_group(rows, operands, codes, all, row);
  }
  return {std::move(sums), std::move(codes.divisor)};
}

std::vector<std::int32_t> sparse_attention(const SparseHead& head,
                                           const AttentionOperands& operands,
                                           const SoftmaxConstants& constants) {
  AttentionSums result = attention_sums(head, operands, {constants, std::nullopt});
  for (std::size_t i = 0; i < result.sums.size(); ++i) {
    // The quotient is a weighted mean of V's int8 values with 8 fraction bits: far below 2^31.
    result.sums[i] = static_cast<std::int32_t>(
        deferred_divide(result.sums[i], result.divisor[i / operands.value_dim]));
  }
  return std::move(result.sums);
}

}  // namespace systole::hw
