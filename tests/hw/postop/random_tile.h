#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "hw/postop/plain_stage.h"
#include "tests/hw/postop/random_chain.h"

/// Operands for any chain.
namespace systole::hw::test {

/// Reads an element of a type at an address without alignment.
inline std::int32_t read_element(const std::vector<unsigned char>& bytes, std::size_t offset,
                                 DType type) {
  std::uint32_t raw = 0;
  std::memcpy(&raw, bytes.data() + offset, bytes_of(type));
  switch (type) {
    case DType::kS8:
      return static_cast<std::int8_t>(raw);
    case DType::kS16:
      return static_cast<std::int16_t>(raw);
    case DType::kU8:
    case DType::kU16:
    case DType::kS32:
      break;
  }
  return static_cast<std::int32_t>(raw);
}

/// A tile of random operands, with gaps between the rows of each.
class RandomTile {
 public:
  RandomTile(const Chain& chain, std::size_t rows, std::size_t cols, Random& random)
      : rows_(rows), cols_(cols), gap_(static_cast<std::size_t>(pick(random, 0, 3))) {
    const auto fill = [&](auto& words) {
      for (auto& word : words) word = static_cast<std::uint32_t>(any_int32(random));
    };
    accumulator_.resize(rows * (cols + gap_));
    fill(accumulator_);
    const auto narrow = static_cast<int>(pick(random, 0, 24));
    for (std::int32_t& value : accumulator_) value >>= narrow;
    parameters_.resize(parameter_words(chain) * cols);
    fill(parameters_);
    statistics_.resize(rows * statistics_words(chain));
    fill(statistics_);
    for (const DType type : tensor_types(chain)) {
      tensors_.push_back({type, cols * bytes_of(type) + gap_, {}});
      tensors_.back().bytes.resize(rows * tensors_.back().pitch + 1);
      for (unsigned char& byte : tensors_.back().bytes) byte = static_cast<unsigned char>(random());
    }
    if (pick(random, 0, 1) != 0) {
      valid_cols_ = static_cast<std::size_t>(pick(random, 1, static_cast<std::int64_t>(cols)));
    }
    accumulates_ = pick(random, 0, 1) != 0;
  }

  /// All but the result. Reads and writes the statistics.
  [[nodiscard]] ChainOperands operands() {
    ChainOperands operands;
    operands.accumulator = accumulator_.data();
    operands.accumulator_pitch = cols_ + gap_;
    operands.parameters = parameters_.data();
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      operands.tensors.at(i) = {tensors_[i].bytes.data() + 1, tensors_[i].pitch};
    }
    operands.row_statistics = statistics_.data();
    operands.accumulate_statistics = accumulates_;
    operands.rows = rows_;
    operands.cols = cols_;
    operands.valid_cols = valid_cols_;
    return operands;
  }

  /// What the plain stages make of a row; changes its statistics.
  [[nodiscard]] std::vector<std::int32_t> expected_row(const Chain& chain, std::size_t r) {
    const std::size_t words = statistics_words(chain);
    std::uint32_t* const statistics = statistics_.data() + r * words;
    const std::int32_t* const values = accumulator_.data() + r * (cols_ + gap_);
    PlainRow row;
    row.x = {values, values + cols_};
    row.parameters = parameters_;
    row.statistics = {statistics, statistics + words};
    row.accumulate_statistics = accumulates_;
    if (valid_cols_ != 0) row.valid_cols = valid_cols_ + r;
    for (const Tensor& tensor : tensors_) {
      row.tensors.emplace_back();
      for (std::size_t i = 0; i < cols_; ++i) {
        row.tensors.back().push_back(read_element(
            tensor.bytes, 1 + r * tensor.pitch + i * bytes_of(tensor.type), tensor.type));
      }
    }
    apply_plain_row(chain, row);
    std::copy(row.statistics.begin(), row.statistics.end(), statistics);
    return row.x;
  }

  [[nodiscard]] std::size_t gap() const { return gap_; }
  [[nodiscard]] const std::vector<std::uint32_t>& statistics() const { return statistics_; }

 private:
  struct Tensor {
    DType type;
    std::size_t pitch;
    std::vector<unsigned char> bytes;
  };
  std::size_t rows_, cols_, gap_;
  std::vector<std::int32_t> accumulator_, parameters_;
  std::vector<std::uint32_t> statistics_;
  std::vector<Tensor> tensors_;
  std::size_t valid_cols_ = 0;
  bool accumulates_ = false;
};

/// Columns of a tile that the chain takes: pairs for a rotation.
inline std::size_t random_cols(const Chain& chain, Random& random) {
  const auto cols = static_cast<std::size_t>(pick(random, 0, 9) == 0 ? pick(random, 100, 3000)
                                                                     : pick(random, 1, 70));
  return has_stage(chain, StageOp::kRope) ? 2 * (cols / 2 + 1) : cols;
}

}  // namespace systole::hw::test
