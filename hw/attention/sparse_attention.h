#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "hw/attention/sparse_head.h"
#include "hw/function/softmax.h"
#include "hw/postop/chain_kernel.h"

/// Values of one attention head with a fixed mask, as the denser and the sparser engine form them.
///
/// Equal, bit for bit, to the dense masked product: gemm(), stages of the scores, softmax_row()
/// with a keep mask, gemm(), deferred_divide(). Integer sums do not depend on their order and a
/// maximum does not either, so the output is the same for any number of global columns, any column
/// order and any split of the work over lines. The functions below are the pieces of work that a
/// line does.
namespace systole::hw {

/// Most features of a head: a score of int8 products stays below 2^30.
inline constexpr std::size_t kMaxAttentionFeatures = 65535;

/// Rows of Q, K and V, each `pitch` bytes from the next. The head's size gives the row counts.
struct AttentionOperands {
  const std::int8_t* q = nullptr;  ///< [queries][dim]
  std::size_t q_pitch = 0;
  const std::int8_t* k = nullptr;  ///< [keys][dim]
  std::size_t k_pitch = 0;
  const std::int8_t* v = nullptr;  ///< [keys][value_dim]
  std::size_t v_pitch = 0;
  std::size_t dim = 0;
  std::size_t value_dim = 0;
};

/// One value for each cell that the engines hold.
template <typename T>
struct SplitCells {
  std::vector<T> dense;   ///< [G][queries], pruned cells included
  std::vector<T> sparse;  ///< [sparse_kept()], in the order of row_indices
};

template <typename T>
[[nodiscard]] SplitCells<T> make_split_cells(const SparseHead& head) {
  return {std::vector<T>(head.dense_cells()), std::vector<T>(head.sparse_kept())};
}

/// What becomes of scores between SDDMM and SpMM.
struct ScoreFunctions {
  SoftmaxConstants softmax;           ///< deferred mode, up to 8 output bits
  std::optional<ChainKernel> stages;  ///< before it, of each score alone; s32 to s32
};

/// Those of a chain that may be an attention command's softmax chain (hw/program/program.h).
[[nodiscard]] ScoreFunctions score_functions(const Chain& chain);

/// Softmax codes of a head and what its outputs are divided by.
struct AttentionCodes {
  SplitCells<std::uint8_t> cells;      ///< 0 for the pruned cells of the dense block
  std::vector<std::uint32_t> divisor;  ///< [queries] sum of the codes, 1 for a row without any
};

/// Consecutive outputs of one query that a line's MACs hold.
struct OutputGroup {
  std::size_t query = 0;
  std::size_t first = 0;  ///< first feature of V
  std::size_t count = 0;
};

/// SDDMM of global column `column` (position in dense_columns) for queries `first`, first + step,
/// ... One line of the denser engine does one value of `first`, with the number of lines as step.
void score_dense_column(const SparseHead& head, const AttentionOperands& operands,
                        std::size_t column, std::size_t first, std::size_t step,
                        SplitCells<std::int32_t>& scores);

/// SDDMM of the kept cells of sparse column `column` (position in sparse_columns).
void score_sparse_column(const SparseHead& head, const AttentionOperands& operands,
                         std::size_t column, SplitCells<std::int32_t>& scores);

/// SDDMM of the whole head.
[[nodiscard]] SplitCells<std::int32_t> attention_scores(const SparseHead& head,
                                                        const AttentionOperands& operands);

/// Sends the scores through the stages, those of pruned cells of the dense block too: the softmax
/// ignores them.
void apply_score_stages(const ScoreFunctions& functions, SplitCells<std::int32_t>& scores);

/// Softmax of every row over the kept cells of both engines. `constants`: deferred mode, up to 8
/// output bits; others throw std::invalid_argument.
[[nodiscard]] AttentionCodes softmax_kept_cells(const SparseHead& head, const SparseRows& rows,
                                                const SplitCells<std::int32_t>& scores,
                                                const SoftmaxConstants& constants);

/// SpMM of one group over the global keys: adds to the `group.count` sums at `sums`. |sum| stays
/// below 2^31, since a head has at most 65535 keys.
void accumulate_dense_group(const SparseHead& head, const AttentionOperands& operands,
                            const AttentionCodes& codes, OutputGroup group, std::int32_t* sums);

/// SpMM of one group over the kept keys of its query's sparse row; as above.
void accumulate_sparse_group(const SparseRows& rows, const AttentionOperands& operands,
                             const AttentionCodes& codes, OutputGroup group, std::int32_t* sums);

/// What a head's lines leave for the post-op chain.
struct AttentionSums {
  std::vector<std::int32_t> sums;      ///< [queries][value_dim] of code times value
  std::vector<std::uint32_t> divisor;  ///< [queries] sum of the codes, 1 for a row without any
};

/// The whole head before the division. Throws std::invalid_argument for a head that
/// check_sparse_head() refuses, a dimension out of range, a pitch shorter than its row, and as
/// softmax_kept_cells() does.
[[nodiscard]] AttentionSums attention_sums(const SparseHead& head,
                                           const AttentionOperands& operands,
                                           const ScoreFunctions& functions);

/// The same without stages of the scores, divided: [queries][value_dim] outputs with
/// kDeferredFractionBits more fraction bits than V. A query without kept keys gets zeros.
[[nodiscard]] std::vector<std::int32_t> sparse_attention(const SparseHead& head,
                                                         const AttentionOperands& operands,
                                                         const SoftmaxConstants& constants);

}  // namespace systole::hw
