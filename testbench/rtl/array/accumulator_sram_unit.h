#pragma once

#include <stdexcept>
#include <string>

#include "base/error.h"
#include "testbench/rtl/array/accumulator_sram_rtl.h"
#include "testbench/rtl/drive/back_pressure.h"
#include "testbench/rtl/drive/ports.h"
#include "testbench/rtl/drive/verilated_dut.h"

/// Drives rtl/array/systole_accumulator_sram.sv, or RTL with its ports.
namespace systole::testbench {

inline constexpr std::uint32_t kSramBanks = 2;
inline constexpr std::uint64_t kSramRowsPerBank = 2048;

/// Rows that go over a stream, one after the other.
class AccumulatorStream {
 public:
  explicit AccumulatorStream(std::size_t size) : size_(size) {}

  [[nodiscard]] bool remains() const { return next_ < size_; }
  [[nodiscard]] std::size_t next() const { return next_; }
  [[nodiscard]] bool offered() const { return beat_.offered(); }
  void offer(BackPressureInjector* injector) {
    beat_.offer(remains(), injector, [] {});
  }
  void take(bool ready) { next_ += beat_.take(ready) ? 1 : 0; }

 private:
  std::size_t size_, next_ = 0;
  OfferedBeat beat_;
};

struct AccumulatorPlace {
  std::uint64_t bank, row;
};

inline AccumulatorPlace place_of(std::uint64_t row, const hw::AccumulatorBanks& banks) {
  if (row >= banks.banks * banks.rows_per_bank) {
    throw std::out_of_range("AccumulatorSramRtl: no such row");
  }
  return {row / banks.rows_per_bank, row % banks.rows_per_bank};
}

template <typename Model>
class AccumulatorSramUnit final : public AccumulatorSramRtl {
 public:
  AccumulatorSramUnit(std::uint32_t cols, const hw::AccumulatorBanks& banks,
                      const RtlOptions& options)
      : cols_(cols), banks_(banks), dut_(options) {
    dut_->write_valid_i = 0;
    dut_->read_valid_i = 0;
    dut_->data_ready_i = 1;
  }

  Cycles run(const std::vector<Write>& writes, const std::vector<Read>& reads,
             const BackPressure& pressure, const Observer& observe) override {
    BackPressureInjector injector(pressure);
    Cycles result;
    AccumulatorStream write(writes.size()), read(reads.size());
    std::size_t written = 0;
    std::size_t taken = 0;
    for (std::uint64_t cycle = 0; written < writes.size() || taken < reads.size(); ++cycle) {
      // Rows that are withheld are on the pins already: what is ready, is ready for them.
      const Write next_write = write.remains() ? writes[write.next()] : Write{};
      const Read next_read = read.remains() ? reads[read.next()] : Read{};
      if (write.remains() && !write.offered()) drive(next_write, place_of(next_write.row, banks_));
      if (read.remains() && !read.offered()) drive(place_of(next_read.row, banks_));
      BackPressureInjector* const from_the_second = cycle == 0 ? nullptr : &injector;
      write.offer(from_the_second);
      read.offer(from_the_second);
      dut_->write_valid_i = write.offered();
      dut_->read_valid_i = read.offered();
      dut_->data_ready_i = !injector.refuses();
      dut_.show_cycle(cycle + 1);
      dut_.settle();

      const Pins pins{write.offered(),         dut_->write_ready_o != 0,
                      next_write.accumulate,   read.offered(),
                      dut_->read_ready_o != 0, dut_->data_valid_o != 0,
                      dut_->data_ready_i != 0, dut_->written_o != 0,
                      next_write.row,          next_read.row};
      if (observe) observe(pins);
      const bool refused = pins.data_valid && !pins.data_ready;
      if (written < writes.size()) {
        ++result.write.cycles;
        if (write.remains() && !write.offered() && pins.write_ready) {
          ++result.write.stalled;
        }
      }
      if (taken < reads.size()) {
        ++result.read.cycles;
        const bool asks = read.remains();
        if (refused || (asks && !read.offered() && pins.read_ready)) ++result.read.stalled;
        if (!refused && asks && !pins.read_ready) ++result.waited;
      }
      const bool moved = pins.written || (pins.data_valid && pins.data_ready) ||
                         (write.offered() && pins.write_ready) ||
                         (read.offered() && pins.read_ready);

      if (pins.written) ++written;
      if (pins.data_valid && pins.data_ready) {
        take(reads.at(taken), taken);
        ++taken;
      }
      write.take(pins.write_ready);
      read.take(pins.read_ready);
      dut_.end_cycle(moved);
    }
    dut_->write_valid_i = 0;
    dut_->read_valid_i = 0;
    dut_.end_operation();
    return result;
  }

  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  void drive(const Write& write, AccumulatorPlace place) {
    set(dut_->write_bank_i, place.bank);
    set(dut_->write_row_i, place.row);
    set(dut_->write_mask_i, write.mask & ((std::uint64_t{1} << cols_) - 1));
    set(dut_->accumulate_i, write.accumulate ? 1 : 0);
    for (std::size_t col = 0; col < cols_; ++col) {
      set_lane<32>(dut_->write_data_i, col, static_cast<std::uint32_t>(write.values[col]));
    }
  }
  void drive(AccumulatorPlace place) {
    set(dut_->read_bank_i, place.bank);
    set(dut_->read_row_i, place.row);
  }
  void take(const Read& read, std::size_t index) {
    dut_.show_beat(index * cols_, cols_);
    for (std::size_t col = 0; col < cols_; ++col) {
      read.values[col] = static_cast<std::int32_t>(get_lane<32>(dut_->data_o, col));
    }
  }
  template <typename Port>
  static void set(Port& port, std::uint64_t value) {
    port = static_cast<Port>(value);
  }

  std::size_t cols_;
  hw::AccumulatorBanks banks_;
  VerilatedDut<Model> dut_;
};

}  // namespace systole::testbench
