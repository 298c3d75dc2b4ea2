#include "testbench/rtl/array/accumulator_sram_rtl.h"

#include <random>
#include <stdexcept>
#include <string>

#include "Vaccumulator_sram_16x2.h"
#include "Vaccumulator_sram_16x2_checked.h"
#include "Vaccumulator_sram_4x1.h"
#include "Vaccumulator_sram_4x1_checked.h"
#include "Vaccumulator_sram_4x2.h"
#include "Vaccumulator_sram_4x2_checked.h"
#include "Vaccumulator_sram_8x2.h"
#include "Vaccumulator_sram_8x2_checked.h"
#include "base/error.h"
#include "testbench/rtl/drive/ports.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {
namespace {

constexpr std::uint32_t kBanks = 2;
constexpr std::uint64_t kRowsPerBank = 2048;
constexpr std::uint64_t kHang = 10'000;  // cycles in which nothing moves; random stalls are shorter

/// Whether the testbench holds a stream up in this cycle.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : random_(seed) {}
  bool operator()(unsigned per_mille) { return per_mille != 0 && random_() % 1000 < per_mille; }

 private:
  std::mt19937_64 random_;
};

/// Position in a stream of requests, and whether the next one is being offered.
struct Offer {
  std::size_t next = 0;
  bool valid = false;

  [[nodiscard]] bool remains(std::size_t size) const { return next < size; }
  void handshake(bool ready) {
    if (!valid || !ready) return;
    ++next;
    valid = false;
  }
};

struct Place {
  std::uint64_t bank, row;
};

Place place_of(std::uint64_t row, const hw::AccumulatorBanks& banks) {
  if (row >= banks.banks * banks.rows_per_bank) {
    throw std::out_of_range("AccumulatorSramRtl: no such row");
  }
  return {row / banks.rows_per_bank, row % banks.rows_per_bank};
}

}  // namespace

class AccumulatorSramRtl::Block {
 public:
  virtual ~Block() = default;
  virtual Cycles run(const hw::AccumulatorBanks& banks, const std::vector<Write>& writes,
                     const std::vector<Read>& reads, const BackPressure& pressure,
                     const Observer& observe) = 0;
  [[nodiscard]] virtual bool failed() const = 0;
};

namespace {

template <typename Model>
class VerilatedBlock final : public AccumulatorSramRtl::Block {
 public:
  using Write = AccumulatorSramRtl::Write;
  using Read = AccumulatorSramRtl::Read;

  VerilatedBlock(std::uint32_t cols, const RtlOptions& options) : cols_(cols), dut_(options) {
    dut_->write_valid_i = 0;
    dut_->read_valid_i = 0;
    dut_->data_ready_i = 1;
  }

  AccumulatorSramRtl::Cycles run(const hw::AccumulatorBanks& banks,
                                 const std::vector<Write>& writes, const std::vector<Read>& reads,
                                 const BackPressure& pressure,
                                 const AccumulatorSramRtl::Observer& observe) override {
    Chance chance(pressure.seed);
    AccumulatorSramRtl::Cycles result;
    Offer write;
    Offer read;
    std::size_t written = 0;
    std::size_t taken = 0;
    std::uint64_t idle = 0;
    for (std::uint64_t cycle = 0; written < writes.size() || taken < reads.size(); ++cycle) {
      // Rows that are withheld stand on the pins already: what is ready, is ready for them.
      const Write next_write = write.remains(writes.size()) ? writes[write.next] : Write{};
      const Read next_read = read.remains(reads.size()) ? reads[read.next] : Read{};
      if (write.remains(writes.size()) && !write.valid) {
        drive(next_write, place_of(next_write.row, banks));
        write.valid = cycle == 0 || !chance(pressure.input_per_mille);
      }
      if (read.remains(reads.size()) && !read.valid) {
        drive(place_of(next_read.row, banks));
        read.valid = cycle == 0 || !chance(pressure.input_per_mille);
      }
      dut_->write_valid_i = write.valid;
      dut_->read_valid_i = read.valid;
      dut_->data_ready_i = !chance(pressure.output_per_mille);
      if (dut_.view() != nullptr) dut_.view()->set_cycle(cycle + 1);
      dut_.settle();

      const AccumulatorSramRtl::Pins pins{write.valid,
                                          dut_->write_ready_o != 0,
                                          next_write.accumulate,
                                          read.valid,
                                          dut_->read_ready_o != 0,
                                          dut_->data_valid_o != 0,
                                          dut_->data_ready_i != 0,
                                          dut_->written_o != 0,
                                          next_write.row,
                                          next_read.row};
      if (observe) observe(pins);
      const bool refused = pins.data_valid && !pins.data_ready;
      if (written < writes.size()) {
        ++result.write.cycles;
        if (write.remains(writes.size()) && !write.valid && pins.write_ready) {
          ++result.write.stalled;
        }
      }
      if (taken < reads.size()) {
        ++result.read.cycles;
        const bool asks = read.remains(reads.size());
        if (refused || (asks && !read.valid && pins.read_ready)) ++result.read.stalled;
        if (!refused && asks && !pins.read_ready) ++result.waited;
      }
      const bool moved = pins.written || (pins.data_valid && pins.data_ready) ||
                         (write.valid && pins.write_ready) || (read.valid && pins.read_ready);
      idle = moved ? 0 : idle + 1;
      if (idle > kHang) throw std::runtime_error("accumulator_sram hangs");

      if (pins.written) ++written;
      if (pins.data_valid && pins.data_ready) {
        take(reads.at(taken), taken);
        ++taken;
      }
      write.handshake(pins.write_ready);
      read.handshake(pins.read_ready);
      dut_.tick();
    }
    dut_->write_valid_i = 0;
    dut_->read_valid_i = 0;
    return result;
  }

  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  void drive(const Write& write, Place place) {
    set(dut_->write_bank_i, place.bank);
    set(dut_->write_row_i, place.row);
    set(dut_->write_mask_i, write.mask & ((std::uint64_t{1} << cols_) - 1));
    set(dut_->accumulate_i, write.accumulate ? 1 : 0);
    for (std::size_t col = 0; col < cols_; ++col) {
      set_lane<32>(dut_->write_data_i, col, static_cast<std::uint32_t>(write.values[col]));
    }
  }
  void drive(Place place) {
    set(dut_->read_bank_i, place.bank);
    set(dut_->read_row_i, place.row);
  }
  void take(const Read& read, std::size_t index) {
    if (dut_.view() != nullptr) dut_.view()->set_beat(index * cols_, cols_);
    for (std::size_t col = 0; col < cols_; ++col) {
      read.values[col] = static_cast<std::int32_t>(get_lane<32>(dut_->data_o, col));
    }
  }
  template <typename Port>
  static void set(Port& port, std::uint64_t value) {
    port = static_cast<Port>(value);
  }

  std::size_t cols_;
  VerilatedDut<Model> dut_;
};

template <typename Fast, typename Checked>
std::unique_ptr<AccumulatorSramRtl::Block> make_block(std::uint32_t cols,
                                                      const RtlOptions& options) {
  if (options.use_checked()) return std::make_unique<VerilatedBlock<Checked>>(cols, options);
  return std::make_unique<VerilatedBlock<Fast>>(cols, options);
}

struct SramBuild {
  std::uint32_t cols, ports;
  std::unique_ptr<AccumulatorSramRtl::Block> (*make)(std::uint32_t, const RtlOptions&);
};

constexpr SramBuild kBuilds[] = {
    {4, 1, make_block<Vaccumulator_sram_4x1, Vaccumulator_sram_4x1_checked>},
    {4, 2, make_block<Vaccumulator_sram_4x2, Vaccumulator_sram_4x2_checked>},
    {8, 2, make_block<Vaccumulator_sram_8x2, Vaccumulator_sram_8x2_checked>},
    {16, 2, make_block<Vaccumulator_sram_16x2, Vaccumulator_sram_16x2_checked>},
};

}  // namespace

AccumulatorSramRtl::AccumulatorSramRtl(std::uint32_t cols, const hw::AccumulatorBanks& banks,
                                       const RtlOptions& options)
    : banks_(banks) {
  const auto text = [](std::uint64_t number) { return std::to_string(number); };
  std::string sizes;
  for (const SramBuild& build : kBuilds) {
    if (build.cols == cols && build.ports == banks.ports && banks.banks == kBanks &&
        banks.rows_per_bank <= kRowsPerBank) {
      block_ = build.make(cols, options);
      return;
    }
    sizes += (sizes.empty() ? "" : ", ") + text(build.cols) + " x " + text(build.ports);
  }
  throw hw::InputError("accumulator_sram as RTL: found " + text(cols) + " columns x " +
                       text(banks.ports) + " ports in " + text(banks.banks) + " banks of " +
                       text(banks.rows_per_bank) + " rows, expected " + sizes + " in " +
                       text(kBanks) + " banks of at most " + text(kRowsPerBank) + " rows");
}

AccumulatorSramRtl::~AccumulatorSramRtl() = default;

AccumulatorSramRtl::Cycles AccumulatorSramRtl::run(const std::vector<Write>& writes,
                                                   const std::vector<Read>& reads,
                                                   const BackPressure& pressure,
                                                   const Observer& observe) {
  return block_->run(banks_, writes, reads, pressure, observe);
}

bool AccumulatorSramRtl::failed() const { return block_->failed(); }

}  // namespace systole::testbench
