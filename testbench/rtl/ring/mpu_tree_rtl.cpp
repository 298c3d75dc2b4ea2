#include "testbench/rtl/ring/mpu_tree_rtl.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "Vmpu_tree_64x16.h"
#include "Vmpu_tree_64x16_checked.h"
#include "Vmpu_tree_8x4.h"
#include "Vmpu_tree_8x4_checked.h"
#include "base/error.h"
#include "hw/ring/half_kernels.h"
#include "testbench/rtl/drive/stream.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {

namespace {

/// Slices in the order in which the unit takes them: those of a tile first, then the next tile
/// along K, then the next block of slices.
class Walk {
 public:
  Walk(const hw::HalfGemv& args, std::size_t partial_sums)
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
class VerilatedLane final : public MpuTreeRtl {
 public:
  VerilatedLane(const hw::MatrixUnit& unit, const RtlOptions& options)
      : unit_(unit), dut_(options) {}

  RtlCycles run(const hw::HalfGemv& args, std::size_t row, std::size_t lane,
                const BackPressure& pressure) override {
    if (args.depth != unit_.depth) throw std::invalid_argument("mpu_tree RTL: not its depth");
    Walk walk(args, unit_.partial_sums);
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
  void drive(const hw::HalfGemv& args, std::size_t row, std::size_t lane, const Walk& walk) {
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

}  // namespace

std::unique_ptr<MpuTreeRtl> make_mpu_tree(const hw::MatrixUnit& unit, const RtlOptions& options) {
  const hw::MatrixUnit built;
  if (unit.multiply == built.multiply && unit.add == built.add) {
    if (unit.depth == 64 && unit.partial_sums <= 16) {
      return make_build<MpuTreeRtl, VerilatedLane<Vmpu_tree_64x16>,
                        VerilatedLane<Vmpu_tree_64x16_checked>>(options, unit);
    }
    if (unit.depth == 8 && unit.partial_sums <= 4) {
      return make_build<MpuTreeRtl, VerilatedLane<Vmpu_tree_8x4>,
                        VerilatedLane<Vmpu_tree_8x4_checked>>(options, unit);
    }
  }
  throw hw::InputError("mpu_tree RTL: depth " + std::to_string(unit.depth) + ", " +
                       std::to_string(unit.partial_sums) + " partial sums, multiplier " +
                       std::to_string(unit.multiply) + " and adder " + std::to_string(unit.add) +
                       " cycles, expected 64 with up to 16 or 8 with up to 4, and 6 and 11 cycles");
}

}  // namespace systole::testbench
