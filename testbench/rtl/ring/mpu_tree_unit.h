#pragma once

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "base/error.h"
#include "hw/ring/half_kernels.h"
#include "testbench/rtl/drive/stream.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "testbench/rtl/ring/mpu_tree_rtl.h"

/// Drives rtl/ring/systole_mpu_tree.sv, or RTL with its ports.
namespace systole::testbench {

/// Slices in the order in which the unit takes them: those of a tile first, then the next tile
/// along K, then the next block of slices.
class SliceWalk {
 public:
  SliceWalk(const hw::HalfGemv& args, std::size_t partial_sums)
      : k_tiles_(args.k_tiles), slices_(args.slices), partial_sums_(partial_sums) {}

  [[nodiscard]] std::size_t k() const { return k_; }
  [[nodiscard]] std::size_t slot() const { return slot_; }
  [[nodiscard]] std::size_t slice() const { return first_ + slot_; }
  [[nodiscard]] bool first() const { return k_ == 0; }
  [[nodiscard]] bool last() const { return k_ + 1 == k_tiles_; }
  void next() {
    if (++slot_ < std::min(partial_sums_, slices_ - first_)) return;
    slot_ = 0;
    if (++k_ < k_tiles_) return;
    k_ = 0;
    first_ += partial_sums_;
  }

 private:
  std::size_t k_tiles_, slices_, partial_sums_;
  std::size_t first_ = 0;  ///< slice of the block
  std::size_t k_ = 0;
  std::size_t slot_ = 0;
};

template <typename Model>
class MpuTreeUnit final : public MpuTreeRtl {
 public:
  MpuTreeUnit(const hw::MatrixUnit& unit, const RtlOptions& options) : unit_(unit), dut_(options) {}

  RtlCycles run(const hw::HalfGemv& args, std::size_t row, std::size_t lane,
                const BackPressure& pressure) override {
    if (args.depth != unit_.depth) throw std::invalid_argument("mpu_tree RTL: not its depth");
    SliceWalk walk(args, unit_.partial_sums);
    return run_stream(
        dut_, args.k_tiles * args.slices, args.slices,
        [&](std::size_t) {
          drive(args, row, lane, walk);
          walk.next();
        },
        [&](std::size_t slice) { collect(args, row, lane, slice); }, pressure);
  }

  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  void drive(const hw::HalfGemv& args, std::size_t row, std::size_t lane, const SliceWalk& walk) {
    const hw::Half* const x = args.x + row * args.x_pitch + walk.k() * args.depth;
    const hw::Half* const weights =
        hw::half_detail::tile_of(args, walk.slice(), walk.k()) + lane * args.depth;
    std::memcpy(&dut_->x_i, x, args.depth * sizeof *x);
    std::memcpy(&dut_->weight_i, weights, args.depth * sizeof *weights);
    dut_->slot_i = static_cast<CData>(walk.slot());
    dut_->first_i = walk.first();
    dut_->last_i = walk.last();
    dut_->bias_i = args.bias == nullptr ? 0 : args.bias[walk.slice() * args.lanes + lane].bits;
  }

  void collect(const hw::HalfGemv& args, std::size_t row, std::size_t lane, std::size_t slice) {
    if (dut_->slot_o != slice % unit_.partial_sums) {
      throw std::runtime_error("RTL mpu_tree: a sum of another slot");
    }
    dut_.show_beat(slice, 1);
    args.y[row * args.y_pitch + slice * args.lanes + lane] = {dut_->data_o};
  }

  hw::MatrixUnit unit_;
  VerilatedDut<Model> dut_;
};

}  // namespace systole::testbench
