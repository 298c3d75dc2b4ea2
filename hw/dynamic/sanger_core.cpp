#include "hw/dynamic/sanger_core.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/round.h"

namespace systole::hw::dynamic {
namespace {

/// Rows of the array that the kept cells of each key tile fill.
std::vector<std::uint64_t> filled_rows(const SparseHead& head, const SangerArray& array) {
  const std::uint64_t tiles = ceil_div(head.keys, array.tile_keys);
  std::vector<std::uint64_t> kept(tiles * head.queries);
  for (std::size_t column = 0; column < head.sparse_columns.size(); ++column) {
    const std::size_t tile = head.sparse_columns[column] / array.tile_keys;
    for (std::size_t cell = head.column_pointers[column]; cell < head.column_pointers[column + 1];
         ++cell) {
      ++kept[tile * head.queries + head.row_indices[cell]];
    }
  }
  std::vector<std::uint64_t> rows(tiles);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    rows[i / head.queries] += ceil_div(kept[i], array.row_pes);
  }
  return rows;
}

/// The units' times, head by head.
class SangerTimeline {
 public:
  SangerTimeline(std::size_t dim, const SangerArray& array, const OperandStream& stream)
      : dim_(dim), array_(array), stream_(stream) {}

  void add(const SparseHead& head) {
    const double ready = load(head);
    const std::uint64_t prediction = prediction_cycles(head);
    cycles_.prediction += prediction;
    const std::uint64_t tiles =
        ceil_div(head.queries, array_.rows) * ceil_div(head.keys, array_.tile_keys);
    read_buffers(tiles * (array_.rows + array_.tile_keys), 0.5);  // 4 bits
    // On the array's own MACs the array has to be free.
    const double begin = std::max({ready, predicted_, array_.own_predictor ? 0.0 : free_});
    predicted_ = begin + static_cast<double>(prediction);
    if (!array_.own_predictor) free_ = predicted_;
    double packed = predicted_;
    bool first = true;
    for (const std::uint64_t rows : filled_rows(head, array_)) {
      const std::uint64_t packing = ceil_div(head.queries, array_.rows) * array_.tile_keys;
      cycles_.packing += packing;
      packed += static_cast<double>(packing);
      for (std::uint64_t left = rows; left > 0;
           left -= std::min<std::uint64_t>(left, array_.rows)) {
        free_ = std::max(free_, packed) + static_cast<double>(pass_cycles(first));
        first = false;
      }
    }
    cycles_.kept += head.kept();
    cycles_.products += 2 * head.kept() * dim_;
    cycles_.predictions += std::uint64_t{head.queries} * head.keys * dim_;
    ends_.push_back(std::max(free_, packed));  // without a kept cell nothing passes the array
    store(head);
  }

  [[nodiscard]] SangerCycles result() {
    cycles_.total = static_cast<std::uint64_t>(
        std::ceil(std::max(ends_.empty() ? 0.0 : ends_.back(), memory_)));
    cycles_.memory = static_cast<std::uint64_t>(std::ceil(moving_));
    return cycles_;
  }

 private:
  double moved(std::size_t rows) {
    const double cycles =
        static_cast<double>(rows * dim_) * stream_.element_bytes / stream_.bytes_per_cycle;
    moving_ += cycles;
    cycles_.moved_bytes += static_cast<double>(rows * dim_) * stream_.element_bytes;
    cycles_.buffer_bytes += static_cast<double>(rows * dim_) * stream_.element_bytes;
    return cycles;
  }
  /// What a pass, or a tile of the prediction, reads of so many rows of Q, K, V and outputs.
  void read_buffers(std::uint64_t rows, double element_bytes) {
    cycles_.buffer_bytes += static_cast<double>(rows * dim_) * element_bytes;
  }
  /// When a head's rows are on chip: there is room for it once the head before the last is over.
  double load(const SparseHead& head) {
    const double room = ends_.size() < 2 ? 0.0 : ends_[ends_.size() - 2];
    memory_ = std::max(memory_, room) + moved(head.queries + 2 * head.keys);
    return memory_;
  }
  /// Outputs leave after those rows that were asked for before.
  void store(const SparseHead& head) { memory_ += moved(head.queries); }

  [[nodiscard]] std::uint64_t prediction_cycles(const SparseHead& head) const {
    if (!array_.own_predictor) {
      return ceil_div(std::uint64_t{head.queries} * head.keys * dim_, array_.macs());
    }
    const std::uint64_t tiles =
        ceil_div(head.queries, array_.rows) * ceil_div(head.keys, array_.tile_keys);
    return tiles * (dim_ + array_.tile_keys + skew());
  }
  [[nodiscard]] std::uint64_t skew() const {
    return array_.common_phases ? std::uint64_t{array_.rows} + array_.tile_keys : 0;
  }
  std::uint64_t pass_cycles(bool first) {
    const std::uint64_t once =
        first && !array_.common_phases ? std::uint64_t{array_.rows} + array_.tile_keys : 0;
    const std::uint64_t scores = dim_ + skew() + kSangerExpCycles + once;
    // Sums of a row's exponentials leave through its elements, meanwhile unless phases are common.
    const std::uint64_t context = dim_ + skew() + (array_.common_phases ? array_.row_pes + 1 : 0);
    ++cycles_.passes;
    // Queries, keys and values; an output's sum is read and written again.
    read_buffers(3 * std::uint64_t{array_.rows} + 2 * std::uint64_t{array_.tile_keys},
                 stream_.element_bytes);
    cycles_.slots += array_.macs();
    cycles_.scores += scores;
    cycles_.context += context;
    return scores + context;
  }

  const std::size_t dim_;
  const SangerArray& array_;
  const OperandStream& stream_;
  SangerCycles cycles_;
  double memory_ = 0.0, moving_ = 0.0, predicted_ = 0.0, free_ = 0.0;
  std::vector<double> ends_;
};

/// Rounded to 4 bits by the largest magnitude, as real numbers.
std::vector<double> to_four_bits(const std::vector<double>& values) {
  constexpr double kLargest = 7.0;
  double magnitude = 0.0;
  for (const double value : values) magnitude = std::max(magnitude, std::fabs(value));
  if (magnitude == 0.0) return values;
  std::vector<double> rounded;
  for (const double value : values) {
    rounded.push_back(std::nearbyint(value / magnitude * kLargest) * magnitude / kLargest);
  }
  return rounded;
}

}  // namespace

SangerCycles run_sanger(const std::vector<SparseHead>& heads, std::size_t dim,
                        const SangerArray& array, const OperandStream& stream) {
  if (dim == 0 || array.macs() == 0 || array.tile_keys == 0) {
    throw std::invalid_argument("Sanger: an array without elements, or no features");
  }
  if (!stream.moves()) throw std::invalid_argument("Sanger: memory without a rate");
  SangerTimeline timeline(dim, array, stream);
  for (const SparseHead& head : heads) {
    if (!head.dense_columns.empty()) throw std::invalid_argument("Sanger: global columns");
    timeline.add(head);
  }
  return timeline.result();
}

std::vector<std::uint8_t> predict_mask(const std::vector<double>& query,
                                       const std::vector<double>& key, std::size_t dim,
                                       double threshold) {
  if (dim == 0 || query.size() % dim != 0 || key.size() % dim != 0 || key.empty()) {
    throw std::invalid_argument("predict_mask: rows of another length");
  }
  const std::vector<double> q = to_four_bits(query), k = to_four_bits(key);
  const std::size_t queries = query.size() / dim, keys = key.size() / dim;
  const double scale = 1.0 / std::sqrt(static_cast<double>(dim));
  std::vector<std::uint8_t> mask(queries * keys);
  std::vector<double> scores(keys);
  for (std::size_t i = 0; i < queries; ++i) {
    for (std::size_t j = 0; j < keys; ++j) {
      double sum = 0.0;
      for (std::size_t f = 0; f < dim; ++f) sum += q[i * dim + f] * k[j * dim + f];
      scores[j] = sum * scale;
    }
    const std::size_t largest =
        static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
    const double top = scores[largest];
    double total = 0.0;
    for (double& score : scores) total += score = std::exp(score - top);
    for (std::size_t j = 0; j < keys; ++j) {
      mask[i * keys + j] = scores[j] / total > threshold || j == largest ? 1 : 0;
    }
  }
  return mask;
}

}  // namespace systole::hw::dynamic
