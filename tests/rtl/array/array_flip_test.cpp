/// A flipped register of the array: hw/array/array_flip.h against the RTL in which the same bit of
/// the same register is flipped in the same cycle.

#include "hw/array/array_flip.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <type_traits>
#include <vector>

#include "../checked/systolic_array_4/Vsystolic_array_4_checked___024root.h"
#include "Vsystolic_array_4_checked.h"
#include "hw/array/array.h"
#include "hw/kernel/gemm.h"
#include "testbench/rtl/array/array_command.h"
#include "testbench/rtl/array/array_folds.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {
namespace {

constexpr std::size_t kDim = 4;

/// The Verilated array with a bit that flips at the begin of a cycle.
class FlippingArray : public Vsystolic_array_4_checked {
 public:
  using Vsystolic_array_4_checked::Vsystolic_array_4_checked;

  /// Cycle 0 is the present one.
  void flip_at(std::uint64_t cycle, const hw::ArrayFlip& flip) {
    flip_ = flip;
    edges_left_ = cycle;
    if (cycle == 0) apply();
  }
  /// In the place of the model's own, which is not virtual: VerilatedDut<FlippingArray> calls this.
  void eval() {
    const bool edge = clk_i != 0 && !high_;
    high_ = clk_i != 0;
    Vsystolic_array_4_checked::eval();
    if (edge && flip_ && --edges_left_ == 0) apply();
  }

 private:
  void apply() {
    const std::size_t diagonal = flip_->row + flip_->col;
    const auto mask = std::uint32_t{1} << flip_->bit;
    auto& root = *rootp;
#define SYSTOLE_REGISTER(d, r, kind, name)                                                                                             \
  if (diagonal == (d) && flip_->row == (r)) {                                                                                          \
    auto& held =                                                                                                                       \
        root.systole_systolic_array__DOT__u_grid__DOT__gen_diagonal__BRA__##d##__KET____DOT__##kind##__BRA__##r##__KET____DOT__##name; \
    held = static_cast<std::remove_reference_t<decltype(held)>>(held ^ mask);                                                          \
  }
#define SYSTOLE_ELEMENTS(kind, name) \
  SYSTOLE_REGISTER(0, 0, kind, name) \
  SYSTOLE_REGISTER(1, 0, kind, name) \
  SYSTOLE_REGISTER(1, 1, kind, name) \
  SYSTOLE_REGISTER(2, 0, kind, name) \
  SYSTOLE_REGISTER(2, 1, kind, name) \
  SYSTOLE_REGISTER(2, 2, kind, name) \
  SYSTOLE_REGISTER(3, 1, kind, name) \
  SYSTOLE_REGISTER(3, 2, kind, name) \
  SYSTOLE_REGISTER(3, 3, kind, name) \
  SYSTOLE_REGISTER(4, 2, kind, name) \
  SYSTOLE_REGISTER(4, 3, kind, name) \
  SYSTOLE_REGISTER(5, 3, kind, name)
    switch (flip_->which) {
      case hw::ArrayRegister::kWeight:
        SYSTOLE_ELEMENTS(gen_stationary, weight_q)
        SYSTOLE_REGISTER(3, 0, gen_stationary, weight_q)
        SYSTOLE_REGISTER(4, 1, gen_stationary, weight_q)
        SYSTOLE_REGISTER(5, 2, gen_stationary, weight_q)
        SYSTOLE_REGISTER(6, 3, gen_stationary, weight_q)
        break;
      case hw::ArrayRegister::kActivation:  // the last column passes nothing on
        SYSTOLE_ELEMENTS(gen_act_stage, act_q)
        break;
      case hw::ArrayRegister::kSum:
        SYSTOLE_ELEMENTS(gen_sum, sum_q)
        SYSTOLE_REGISTER(3, 0, gen_sum, sum_q)
        SYSTOLE_REGISTER(4, 1, gen_sum, sum_q)
        SYSTOLE_REGISTER(5, 2, gen_sum, sum_q)
        SYSTOLE_REGISTER(6, 3, gen_sum, sum_q)
        // A wire from the last register to the port, which the model has evaluated already.
        if (diagonal == 6) result_o[kDim - 1] ^= mask;
        break;
    }
#undef SYSTOLE_ELEMENTS
#undef SYSTOLE_REGISTER
    flip_.reset();
  }

  std::optional<hw::ArrayFlip> flip_;
  std::uint64_t edges_left_ = 0;
  bool high_ = false;
};

/// A random product and room for its result.
struct FlippedProduct {
  explicit FlippedProduct(std::mt19937& random) {
    const auto size = [&] { return std::size_t{1} + random() % 11; };
    args.m = size();
    args.n = size();
    args.k = size();
    args.a_unsigned = random() % 2 != 0;
    args.b_transposed = random() % 2 != 0;
    args.accumulate = random() % 2 != 0;
    a.resize(args.m * args.k);
    b.resize(args.k * args.n);
    before.resize(args.m * args.n);
    for (std::uint8_t& value : a) value = static_cast<std::uint8_t>(random());
    for (std::int8_t& value : b) value = static_cast<std::int8_t>(random());
    for (std::int32_t& value : before) value = static_cast<std::int32_t>(random());
    args.a = a.data();
    args.b = b.data();
    args.lda = args.k;
    args.ldb = args.b_transposed ? args.k : args.n;
    args.ldc = args.n;
  }
  [[nodiscard]] hw::GemmArgs into(std::vector<std::int32_t>& sums) const {
    sums = before;
    hw::GemmArgs with = args;
    with.c = sums.data();
    return with;
  }

  hw::GemmArgs args;
  std::vector<std::uint8_t> a;
  std::vector<std::int8_t> b;
  std::vector<std::int32_t> before;
};

TEST(ArrayFlip, EqualsTheRtlWithTheSameBitFlippedInTheSameCycle) {
  std::mt19937 random(24);
  std::map<hw::ArrayRegister, int> changed, tried;
  for (int i = 0; i < 6000; ++i) {
    const FlippedProduct product(random);
    hw::Machine::Array array;
    array.rows = array.cols = kDim;
    array.overlap = static_cast<hw::ArrayOverlap>(random() % 3);
    const hw::GemmArgs& args = product.args;
    const hw::ArraySchedule schedule(array, args.m, args.n, args.k, false, 0);
    hw::ArrayFlip flip;
    flip.which = static_cast<hw::ArrayRegister>(random() % 3);
    const auto below = [&](std::size_t limit) {
      return static_cast<std::uint32_t>(random() % limit);
    };
    flip.row = below(kDim);
    flip.col = below(flip.which == hw::ArrayRegister::kActivation ? kDim - 1 : kDim);
    flip.bit = below(hw::bits_of(flip.which));
    const hw::ArrayCycles cycles = hw::array_cycles(array, args.m, args.n, args.k, false);
    const std::uint64_t cycle = random() % cycles.latency;

    std::vector<std::int32_t> right, expected, rtl;
    hw::gemm(product.into(right));
    const hw::GemmArgs model = product.into(expected);
    hw::gemm(model);
    const auto met = hw::array_flip_at(schedule, args.m, static_cast<std::int64_t>(cycle), flip);
    if (met) hw::apply_array_flip(model, array, schedule, *met);

    VerilatedDut<FlippingArray> dut({true, {}, 3});
    dut->overlap_i = static_cast<CData>(array.overlap);
    dut->a_unsigned_i = args.a_unsigned;
    idle_inputs(*dut);
    dut->flip_at(cycle, flip);
    const hw::GemmArgs gates = product.into(rtl);
    const ArrayFolds<kDim> folds(gates);
    static_cast<void>(
        ArrayCommand<FlippingArray, kDim>(dut, array.overlap, gates, folds, BackPressure{})
            .run(false));
    ASSERT_EQ(rtl, expected) << i << ": register " << static_cast<int>(flip.which) << " of ("
                             << flip.row << ", " << flip.col << "), bit " << flip.bit << ", cycle "
                             << cycle << " of " << args.m << " x " << args.n << " x " << args.k
                             << ", overlap " << static_cast<int>(array.overlap);
    ++tried[flip.which];
    changed[flip.which] += rtl == right ? 0 : 1;
  }
  for (const auto& [which, count] : tried) {
    EXPECT_GT(changed[which], count / 8) << static_cast<int>(which);
    EXPECT_LT(changed[which], count) << static_cast<int>(which);
  }
}

}  // namespace
}  // namespace systole::testbench
