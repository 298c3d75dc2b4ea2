#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "hw/kernel/gemm.h"
#include "hw/machine/machine.h"
#include "testbench/rtl/array/array_folds.h"
#include "testbench/rtl/array/systolic_array_rtl.h"
#include "testbench/rtl/drive/back_pressure.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {

/// The array's inputs between two commands.
template <typename Model>
void idle_inputs(Model& model) {
  model.weight_valid_i = 0;
  model.weight_pending_i = 0;
  model.act_valid_i = 0;
  model.act_pending_i = 0;
  model.act_last_i = 0;
  model.result_ready_i = 1;
  model.clear_i = 0;
}

/// One matmul command in flight in the array: what has been offered, taken and seen. `kSplit`: into
/// what its multipliers split, as the parameter of that name.
template <typename Model, std::size_t Dim, unsigned kSplit = 0>
class ArrayCommand {
 public:
  using Cycles = SystolicArrayRtl::Cycles;

  /// The array is empty, and `folds`, of `args`, are not.
  ArrayCommand(VerilatedDut<Model>& dut, hw::ArrayOverlap overlap, const hw::GemmArgs& args,
               const ArrayFolds<Dim>& folds, const BackPressure& pressure)
      : dut_(dut),
        args_(args),
        folds_(folds),
        injector_(pressure),
        overlapped_(overlap != hw::ArrayOverlap::kNone),
        drains_(overlap != hw::ArrayOverlap::kFull),
        weight_folds_(folds.count() + (overlapped_ ? 1 : 0)) {}

  /// Runs it, and leaves the array empty.
  Cycles run(bool preloaded) {
    if (preloaded && overlapped_) preload();
    while (!interval_seen_ || delivered_.fold != folds_.count()) cycle();
    clear();
    return result_;
  }

 private:
  /// A row of partial sums as it leaves the array.
  struct ResultRow {
    std::size_t row;        ///< of C
    std::size_t col, cols;  ///< of C, without the columns that pad the tile
    const std::int32_t* sums;
    bool first;  ///< no partial sum of these elements has left before
  };

  /// Lets the first weights in before the first cycle of the command.
  void preload() {
    for (;;) {
      dut_->weight_valid_i = weight_.fold == 0;
      if (weight_.fold == 0) drive_weight();
      dut_.settle();
      if (dut_->act_ready_o) return;
      if (dut_->weight_valid_i && dut_->weight_ready_o) weight_.step(Dim);
      finish_cycle(false);
    }
  }

  void cycle() {
    offer();
    dut_.settle();
    const bool stalled = dut_->stalled_o;
    const bool took_weight = weight_beat_.take(dut_->weight_ready_o);
    const bool took_act = act_beat_.take(dut_->act_ready_o);
    if (!interval_seen_) watch_interval(stalled, took_act);
    dut_.show_cycle(now_ + 1);
    if (dut_->result_valid_o && dut_->result_ready_i) collect();
    if (took_weight) weight_.step(Dim);
    if (took_act) {
      act_.step(folds_.rows());
      ++in_flight_;
    }
    result_.stalled += stalled ? 1 : 0;
    ++now_;
    finish_cycle(stalled || took_weight || took_act);
  }

  /// Drops the weights that came in after the last fold.
  void clear() {
    idle_inputs(*dut_);
    dut_->clear_i = 1;
    dut_.settle();
    finish_cycle(true);
    dut_->clear_i = 0;
    dut_.end_operation();
  }

  void drive_weight() {
    std::int8_t lanes[Dim];
    folds_.weights(weight_.fold, weight_.beat, lanes);
    std::memcpy(&dut_->weight_i, lanes, Dim);
    if constexpr (kSplit == 2) {
      folds_.second_weights(weight_.fold, weight_.beat, lanes);
      std::memcpy(reinterpret_cast<std::uint8_t*>(&dut_->weight_i) + Dim, lanes, Dim);
    }
  }
  void drive_act() {
    std::uint8_t lanes[Dim];
    folds_.activations(act_.fold, act_.beat, lanes);
    std::memcpy(&dut_->act_i, lanes, Dim);
    if constexpr (kSplit != 0) {
      folds_.odd_activations(act_.fold, act_.beat, lanes);
      std::memcpy(reinterpret_cast<std::uint8_t*>(&dut_->act_i) + Dim, lanes, Dim);
      dut_->b_int4_i = args_.b_int4;
      dut_->a_int4_i = args_.a_int4;
    }
    dut_->act_last_i = act_.beat + 1 == folds_.rows();
  }

  void offer() {
    const bool weights_remain = weight_.fold < weight_folds_;
    const bool acts_remain = act_.fold < folds_.count();
    weight_beat_.offer(weights_remain, &injector_, [this] { drive_weight(); });
    act_beat_.offer(acts_remain, &injector_, [this] { drive_act(); });
    dut_->weight_valid_i = weight_beat_.offered();
    dut_->weight_pending_i = weights_remain;
    dut_->act_valid_i = act_beat_.offered();
    dut_->act_pending_i = acts_remain;
    dut_->result_ready_i = !injector_.refuses();
  }

  // The interval ends in the cycle in which the array would take the next command's first beat:
  // activations if their weights could come before them, else weights. A cycle of it streams, or
  // waits for rows that are still in flight, or for weights.
  void watch_interval(bool stalled, bool took_act) {
    const bool over =
        act_.fold == folds_.count() && (overlapped_ ? dut_->act_ready_o : dut_->weight_ready_o);
    if (over) {
      interval_seen_ = true;
      result_.measured.interval = now_ - result_.stalled;
      return;
    }
    if (stalled) return;
    const std::uint64_t in_array = in_flight_ - (dut_->result_valid_o ? 1 : 0);
    if (took_act) {
      ++result_.measured.stream;
    } else if (drains_ && in_array != 0) {
      ++result_.measured.drain;
    } else {
      ++result_.measured.preload;
    }
  }

  void collect() {
    if (delivered_.fold == folds_.count()) {
      throw std::runtime_error("systolic_array RTL: a row of sums too many");
    }
    std::int32_t sums[Dim];
    std::memcpy(sums, &dut_->result_o, sizeof sums);
    const std::size_t fold = delivered_.fold;
    const ResultRow row{delivered_.beat, folds_.col(fold), folds_.cols(fold), sums,
                        folds_.first_of_k(fold)};
    if (dut_.is_shown()) {
      std::int32_t expected[Dim];
      folds_.sums(fold, row.row, expected);
      dut_.show_words(expected, Dim);
    }
    if (args_.c != nullptr) add_to_c(row);
    delivered_.step(folds_.rows());
    --in_flight_;
    if ((dut_->result_last_o != 0) != (delivered_.beat == 0)) {
      throw std::runtime_error("systolic_array RTL: a fold ends in the wrong row");
    }
    result_.measured.folds += dut_->result_last_o;
    result_.measured.latency = now_ - result_.stalled;
  }

  /// Adds a row to what C has, or overwrites it. Most rows are `Dim` sums long, and a
  /// constant length lets the compiler use vectors.
  void add_to_c(const ResultRow& row) {
    std::int32_t* const c = args_.c + row.row * args_.ldc + row.col;
    if (row.first && !args_.accumulate) {
      std::memcpy(c, row.sums, row.cols * sizeof(std::int32_t));
      return;
    }
    const auto add = [&](std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) {
        const auto sum = static_cast<std::uint32_t>(c[i]) + static_cast<std::uint32_t>(row.sums[i]);
        c[i] = static_cast<std::int32_t>(sum);
      }
    };
    if (row.cols == Dim) {
      add(Dim);
    } else {
      add(row.cols);
    }
  }

  void finish_cycle(bool moved) {
    dut_.end_cycle(moved);
    ++result_.cycles;
  }

  VerilatedDut<Model>& dut_;
  const hw::GemmArgs& args_;
  const ArrayFolds<Dim>& folds_;
  BackPressureInjector injector_;
  OfferedBeat weight_beat_, act_beat_;
  const bool overlapped_, drains_;
  const std::size_t weight_folds_;
  FoldPosition weight_, act_, delivered_;
  bool interval_seen_ = false;
  std::uint64_t in_flight_ = 0;
  std::uint64_t now_ = 0;
  Cycles result_;
};

/// rtl/array/systole_systolic_array.sv, or RTL with its ports; `kSplit`: systole_split_array.sv.
template <typename Model, std::size_t Dim, unsigned kSplit = 0>
class ArrayBuild final : public SystolicArrayRtl {
 public:
  ArrayBuild(hw::ArrayOverlap overlap, const RtlOptions& options)
      : overlap_(overlap), dut_(options) {
    dut_->overlap_i = static_cast<CData>(overlap);
    idle_inputs(*dut_);
  }

  Cycles matmul(const hw::GemmArgs& args, bool preloaded, const BackPressure& pressure) override {
    if ((args.b_int4 && kSplit == 0) || (args.a_int4 && kSplit != 2)) {
      throw std::invalid_argument("systolic_array RTL: int4 operands, expected int8");
    }
    const ArrayFolds<Dim> folds(args);
    if (folds.count() == 0) {
      clear_c(args);
      return {};
    }
    dut_->a_unsigned_i = args.a_unsigned;
    return ArrayCommand<Model, Dim, kSplit>(dut_, overlap_, args, folds, pressure).run(preloaded);
  }

  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  const hw::ArrayOverlap overlap_;
  VerilatedDut<Model> dut_;
};

}  // namespace systole::testbench
