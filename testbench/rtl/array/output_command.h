#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "hw/kernel/gemm.h"
#include "testbench/rtl/array/array_folds.h"
#include "testbench/rtl/array/systolic_array_rtl.h"
#include "testbench/rtl/drive/back_pressure.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {

/// The folds of one product on a Rows x Cols output-stationary array, as beats of its stream:
/// column tiles outside, row tiles inside (hw/array/array_schedule.h), ragged tiles padded with
/// zeros.
template <std::size_t Rows, std::size_t Cols>
class OutputFolds {
 public:
  /// Throws std::invalid_argument if a pitch is shorter than its row.
  explicit OutputFolds(const hw::GemmArgs& args) : args_(args) {
    check_pitches(args);
    if (args.m == 0 || args.n == 0 || args.k == 0) return;
    row_tiles_ = (args.m + Rows - 1) / Rows;
    count_ = row_tiles_ * ((args.n + Cols - 1) / Cols);
  }

  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::size_t beats() const { return args_.k; }
  [[nodiscard]] std::size_t row(std::size_t fold) const { return fold % row_tiles_ * Rows; }
  [[nodiscard]] std::size_t col(std::size_t fold) const { return fold / row_tiles_ * Cols; }
  [[nodiscard]] std::size_t rows(std::size_t fold) const {
    return std::min(Rows, args_.m - row(fold));
  }
  [[nodiscard]] std::size_t cols(std::size_t fold) const {
    return std::min(Cols, args_.n - col(fold));
  }

  /// Column `beat` of the fold's tile of A, and row `beat` of its tile of B.
  void operands(std::size_t fold, std::size_t beat, std::uint8_t* acts,
                std::int8_t* weights) const {
    std::memset(acts, 0, Rows);
    std::memset(weights, 0, Cols);
    const auto* const a = static_cast<const std::uint8_t*>(args_.a);
    for (std::size_t r = 0; a != nullptr && r < rows(fold); ++r) {
      acts[r] = a[(row(fold) + r) * args_.lda + beat];
    }
    for (std::size_t c = 0; args_.b != nullptr && c < cols(fold); ++c) {
      const std::size_t column = col(fold) + c;
      weights[c] = args_.b_transposed ? args_.b[column * args_.ldb + beat]
                                      : args_.b[beat * args_.ldb + column];
    }
  }

  /// The sums that row `row` of a fold should give.
  void sums(std::size_t fold, std::size_t row, std::int32_t* lanes) const {
    std::fill_n(lanes, Cols, 0);
    std::uint8_t acts[Rows];
    std::int8_t weights[Cols];
    for (std::size_t beat = 0; beat < beats(); ++beat) {
      operands(fold, beat, acts, weights);
      const std::int32_t x = args_.a_unsigned ? acts[row] : static_cast<std::int8_t>(acts[row]);
      for (std::size_t c = 0; c < Cols; ++c) lanes[c] += x * weights[c];
    }
  }

 private:
  hw::GemmArgs args_;
  std::size_t row_tiles_ = 0;
  std::size_t count_ = 0;
};

/// One matmul command in flight in the array.
template <typename Model, std::size_t Rows, std::size_t Cols>
class OutputCommand {
 public:
  using Cycles = SystolicArrayRtl::Cycles;

  /// The array is empty, and `folds`, of `args`, are not.
  OutputCommand(VerilatedDut<Model>& dut, const hw::GemmArgs& args,
                const OutputFolds<Rows, Cols>& folds, const BackPressure& pressure)
      : dut_(dut), args_(args), folds_(folds), injector_(pressure) {}

  /// Runs it, and leaves the array empty.
  Cycles run() {
    while (!interval_seen_ || delivered_.fold != folds_.count()) cycle();
    dut_.end_operation();
    return result_;
  }

 private:
  void cycle() {
    const bool remain = entered_.fold < folds_.count();
    beat_.offer(remain, &injector_, [this] { drive(); });
    dut_->valid_i = beat_.offered();
    dut_->pending_i = remain;
    dut_->result_ready_i = !injector_.refuses();
    dut_.settle();
    const bool stalled = dut_->stalled_o;
    const bool taken = beat_.take(dut_->ready_o);
    if (!interval_seen_) watch_interval(stalled, taken);
    dut_.show_cycle(now_ + 1);
    if (dut_->result_valid_o && dut_->result_ready_i) collect();
    if (taken) entered_.step(folds_.beats());
    result_.stalled += stalled ? 1 : 0;
    ++result_.cycles;
    ++now_;
    dut_.end_cycle(stalled || taken);
  }

  void drive() {
    std::uint8_t acts[Rows];
    std::int8_t weights[Cols];
    folds_.operands(entered_.fold, entered_.beat, acts, weights);
    std::memcpy(&dut_->act_i, acts, Rows);
    std::memcpy(&dut_->weight_i, weights, Cols);
    dut_->last_i = entered_.beat + 1 == folds_.beats();
  }

  // The interval ends in the cycle in which the array would take the next command's first beat. A
  // cycle of it streams, or waits until sums make room.
  void watch_interval(bool stalled, bool taken) {
    if (entered_.fold == folds_.count() && dut_->ready_o) {
      interval_seen_ = true;
      result_.measured.interval = now_ - result_.stalled;
      return;
    }
    if (!stalled) ++(taken ? result_.measured.stream : result_.measured.drain);
  }

  void collect() {
    const std::size_t fold = delivered_.fold;
    if (fold == folds_.count()) {
      throw std::runtime_error("systolic_array RTL: a row of sums too many");
    }
    const std::size_t row = Rows - 1 - delivered_.beat;
    std::int32_t sums[Cols];
    std::memcpy(sums, &dut_->result_o, sizeof sums);
    if (dut_.is_shown()) {
      std::int32_t expected[Cols];
      folds_.sums(fold, row, expected);
      dut_.show_words(expected, Cols);
    }
    if (args_.c != nullptr && row < folds_.rows(fold)) {
      std::int32_t* const c = args_.c + (folds_.row(fold) + row) * args_.ldc + folds_.col(fold);
      for (std::size_t i = 0; i < folds_.cols(fold); ++i) {
        const std::uint32_t before = args_.accumulate ? static_cast<std::uint32_t>(c[i]) : 0;
        c[i] = static_cast<std::int32_t>(before + static_cast<std::uint32_t>(sums[i]));
      }
    }
    delivered_.step(Rows);
    if ((dut_->result_last_o != 0) != (delivered_.beat == 0)) {
      throw std::runtime_error("systolic_array RTL: a fold ends in the wrong row");
    }
    result_.measured.folds += dut_->result_last_o;
    result_.measured.latency = now_ - result_.stalled;
  }

  VerilatedDut<Model>& dut_;
  const hw::GemmArgs& args_;
  const OutputFolds<Rows, Cols>& folds_;
  BackPressureInjector injector_;
  OfferedBeat beat_;
  FoldPosition entered_, delivered_;
  bool interval_seen_ = false;
  std::uint64_t now_ = 0;
  Cycles result_;
};

/// rtl/array/systole_output_array.sv, or RTL with its ports.
template <typename Model, std::size_t Rows, std::size_t Cols>
class OutputBuild final : public SystolicArrayRtl {
 public:
  OutputBuild(hw::ArrayOverlap overlap, const RtlOptions& options) : dut_(options) {
    dut_->overlap_i = static_cast<CData>(overlap);
    dut_->valid_i = dut_->pending_i = dut_->last_i = 0;
    dut_->result_ready_i = 1;
  }

  Cycles matmul(const hw::GemmArgs& args, bool /*preloaded*/,
                const BackPressure& pressure) override {
    const OutputFolds<Rows, Cols> folds(args);
    if (folds.count() == 0) {
      clear_c(args);
      return {};
    }
    dut_->a_unsigned_i = args.a_unsigned;
    return OutputCommand<Model, Rows, Cols>(dut_, args, folds, pressure).run();
  }

  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  VerilatedDut<Model> dut_;
};

}  // namespace systole::testbench
