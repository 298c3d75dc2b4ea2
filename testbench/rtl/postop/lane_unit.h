#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "hw/postop/postop.h"
#include "testbench/rtl/drive/ports.h"
#include "testbench/rtl/drive/rtl_options.h"
#include "testbench/rtl/drive/stream.h"
#include "testbench/rtl/drive/verilated_dut.h"

/// What the drivers of the units with lanes have in common.
namespace systole::testbench {

/// The build of `lanes` lanes: `Unit<Model>` derives from `Interface` and is constructed from the
/// lanes and the options. Throws InputError for lanes that are not built; `Checked64` may be void.
template <typename Interface, template <typename> class Unit, typename Fast4, typename Checked4,
          typename Fast16, typename Checked16, typename Checked64 = void>
std::unique_ptr<Interface> make_lane_unit(const char* block, std::uint32_t lanes,
                                          const RtlOptions& options) {
  const bool checked = options.use_checked();
  if (lanes == 4 && checked) return std::make_unique<Unit<Checked4>>(lanes, options);
  if (lanes == 4) return std::make_unique<Unit<Fast4>>(lanes, options);
  if (lanes == 16 && checked) return std::make_unique<Unit<Checked16>>(lanes, options);
  if (lanes == 16) return std::make_unique<Unit<Fast16>>(lanes, options);
  if constexpr (!std::is_void_v<Checked64>) {
    if (lanes == 64) return std::make_unique<Unit<Checked64>>(lanes, options);
  }
  throw hw::InputError(std::string(block) + " RTL: " + std::to_string(lanes) + " lanes, expected " +
                       (std::is_void_v<Checked64> ? "4 or 16" : "4, 16 or 64"));
}

/// A signed value on a pin of Bits bits: Verilator wants the bits above to be clear.
template <unsigned Bits>
[[nodiscard]] constexpr std::uint64_t pin(std::int64_t value) {
  return static_cast<std::uint64_t>(value) & ((std::uint64_t{1} << Bits) - 1);
}

/// Words of a tile, [rows][cols], that a unit replaces.
struct LaneTile {
  std::int32_t* x;
  std::size_t rows, cols;
};

/// The tile of a chain in `out`, as it is before the chain.
inline LaneTile copy_of(const hw::ChainOperands& operands, std::int32_t* out) {
  for (std::size_t row = 0; row < operands.rows; ++row) {
    std::copy_n(operands.accumulator + row * operands.accumulator_pitch, operands.cols,
                out + row * operands.cols);
  }
  return {out, operands.rows, operands.cols};
}

/// Rows in the order in which a unit of one, two or three passes wants their beats
/// (rtl/common/systole_row_sequencer.sv): two passes over one row after the other, or in every
/// interval the first pass of a row, the second of the row before and the third of the row before
/// that.
[[nodiscard]] inline std::vector<std::size_t> row_order(std::size_t rows, std::size_t passes) {
  std::vector<std::size_t> order;
  const std::size_t rows_apart = passes == 2 ? 0 : 1;
  for (std::size_t interval = 0; interval < rows + (passes - 1) * rows_apart; ++interval) {
    for (std::size_t pass = 0; pass < passes; ++pass) {
      const std::size_t late = pass * rows_apart;
      if (interval >= late && interval - late < rows) order.push_back(interval - late);
    }
  }
  return order;
}

/// What a unit takes or gives beside the words of its lanes: nothing.
struct NoLane {
  void operator()(std::size_t /*lane*/, std::size_t /*row*/, std::size_t /*column*/) const {}
};
struct NoRow {
  void operator()(std::size_t /*row*/) const {}
};

/// A unit of one pass has a lane mask, the others know rows.
template <typename Model, typename = void>
inline constexpr bool kHasMask = false;
template <typename Model>
inline constexpr bool kHasMask<Model, std::void_t<decltype(std::declval<Model&>().mask_i)>> = true;

/// Sends a tile through a unit that passes `passes` times over each row, in place. Rows begin with
/// a beat of their own; `drive_lane(lane, row, column)` sets the other operands of an element,
/// `take_row(row)` reads what comes with the last beat of a row. Lanes beyond the end of a row
/// carry junk. Throws std::runtime_error if the unit hangs, forgets the lane mask, marks another
/// beat as the last of a row, or lets something out of a lane beyond the end.
template <typename Model, typename DriveLane = NoLane, typename TakeRow = NoRow,
          typename Operands = NoOperands>
RtlCycles run_lanes(VerilatedDut<Model>& dut, std::size_t lanes, const LaneTile& tile,
                    std::size_t passes, const BackPressure& pressure, DriveLane drive_lane = {},
                    TakeRow take_row = {}, Operands operands = {}) {
  constexpr std::uint32_t kJunk = 0x5a5a5a5a;
  const std::size_t beats = (tile.cols + lanes - 1) / lanes;
  const std::vector<std::size_t> order = row_order(tile.rows, passes);
  const auto first_of = [=](std::size_t beat) { return beat % beats * lanes; };
  const auto filled = [=](std::size_t beat) { return std::min(lanes, tile.cols - first_of(beat)); };
  const auto mask_of = [=](std::size_t beat) { return ~std::uint64_t{0} >> (64 - filled(beat)); };
  if constexpr (!kHasMask<Model>) {
    dut->rows_i = static_cast<std::decay_t<decltype(dut->rows_i)>>(tile.rows);
    dut->cols_i = static_cast<std::decay_t<decltype(dut->cols_i)>>(tile.cols);
  }
  const auto drive = [&](std::size_t beat) {
    if constexpr (kHasMask<Model>) {
      dut->mask_i = static_cast<std::decay_t<decltype(dut->mask_i)>>(mask_of(beat));
    }
    const std::size_t row = order[beat / beats];
    const std::int32_t* const values = tile.x + row * tile.cols + first_of(beat);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const bool used = lane < filled(beat);
      set_lane<32>(dut->data_i, lane, used ? static_cast<std::uint32_t>(values[lane]) : kJunk);
      if (used) drive_lane(lane, row, first_of(beat) + lane);
    }
  };
  const auto collect = [&](std::size_t beat) {
    const std::size_t place = beat / beats * tile.cols + first_of(beat);
    dut.show_beat(place, filled(beat));
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const auto value = static_cast<std::int32_t>(get_lane<32>(dut->data_o, lane));
      if (lane < filled(beat)) {
        tile.x[place + lane] = value;
      } else if (value != 0) {
        throw std::runtime_error("RTL unit: a masked lane is not 0");
      }
    }
    const bool last = beat % beats == beats - 1;
    if constexpr (kHasMask<Model>) {
      if (dut->mask_o != mask_of(beat)) throw std::runtime_error("RTL unit: wrong lane mask");
    } else {
      if ((dut->last_o != 0) != last) throw std::runtime_error("RTL unit: wrong end of a row");
    }
    if (last) take_row(beat / beats);
  };
  return run_stream(dut, order.size() * beats, tile.rows * beats, drive, collect, pressure,
                    std::move(operands));
}

}  // namespace systole::testbench
