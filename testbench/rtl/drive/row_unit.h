#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "testbench/rtl/drive/ports.h"
#include "testbench/rtl/drive/rtl_options.h"
#include "testbench/rtl/drive/stream.h"

/// What the testbenches of the units that pass over whole rows have in common.
namespace systole::testbench {

/// Rows in the order in which a unit of two or three passes wants their beats
/// (rtl/common/systole_row_sequencer.sv): two passes over one row after the other, or in every
/// interval the first pass of a row, the second of the row before and the third of the row before
/// that.
[[nodiscard]] inline std::vector<std::size_t> row_order(std::size_t rows, std::size_t passes) {
  std::vector<std::size_t> order;
  const std::size_t rows_apart = passes == 2 ? 0 : 1;
  for (std::size_t interval = 0; interval < rows + (passes - 1) * rows_apart; ++interval) {
    for (std::size_t pass = 0; pass < passes; ++pass) {
      const std::size_t behind = pass * rows_apart;
      if (interval >= behind && interval - behind < rows) order.push_back(interval - behind);
    }
  }
  return order;
}

/// Sends `rows` rows of `cols` words through a row unit, in place. `drive_lane(lane, column)` sets
/// the other operands of an element, `take_row(row)` reads what comes with the last beat of a row.
/// Lanes beyond the end of a row carry junk. Throws std::runtime_error if the unit hangs, marks
/// another beat as the last of a row, or lets something out of a lane beyond the end.
template <typename Dut, typename DriveLane, typename TakeRow>
RtlCycles run_rows(Dut& dut, std::size_t lanes, std::int32_t* x, std::size_t cols, std::size_t rows,
                   std::size_t passes, DriveLane drive_lane, TakeRow take_row,
                   const BackPressure& pressure) {
  constexpr std::uint32_t kJunk = 0x5a5a5a5a;
  const std::size_t beats = (cols + lanes - 1) / lanes;
  const std::vector<std::size_t> order = row_order(rows, passes);
  using Rows = std::decay_t<decltype(dut->rows_i)>;
  using Cols = std::decay_t<decltype(dut->cols_i)>;
  dut->rows_i = static_cast<Rows>(rows);
  dut->cols_i = static_cast<Cols>(cols);

  const auto drive = [&](std::size_t beat) {
    const std::size_t first = beat % beats * lanes;
    const std::int32_t* const values = x + order[beat / beats] * cols;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const std::size_t column = first + lane;
      const bool used = column < cols;
      set_lane<32>(dut->data_i, lane, used ? static_cast<std::uint32_t>(values[column]) : kJunk);
      if (used) drive_lane(lane, column);
    }
  };
  const auto collect = [&](std::size_t beat) {
    const std::size_t row = beat / beats;
    const std::size_t first = beat % beats * lanes;
    if (dut.view() != nullptr) {
      dut.view()->set_beat(row * cols + first, cols - first < lanes ? cols - first : lanes);
    }
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const auto value = static_cast<std::int32_t>(get_lane<32>(dut->data_o, lane));
      if (first + lane < cols) {
        x[row * cols + first + lane] = value;
      } else if (value != 0) {
        throw std::runtime_error("RTL unit: a masked lane is not 0");
      }
    }
    const bool last = beat % beats == beats - 1;
    if ((dut->last_o != 0) != last) throw std::runtime_error("RTL unit: wrong end of a row");
    if (last) take_row(row);
  };
  return run_stream(dut, order.size() * beats, rows * beats, drive, collect, pressure);
}

}  // namespace systole::testbench
