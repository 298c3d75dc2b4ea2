#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "testbench/rtl/drive/ports.h"
#include "testbench/rtl/drive/rtl_options.h"
#include "testbench/rtl/drive/stream.h"

/// What the testbenches of the units with lanes have in common.
namespace systole::testbench {

/// The Verilated classes of one block: those that Makefile.verilator builds.
template <typename Fast4, typename Checked4, typename Fast16, typename Checked16>
struct LaneBuilds {};

/// The build of `lanes` lanes behind its interface: `Block<Model>` derives from `Interface` and is
/// constructed from the lanes and the options. Throws InputError for lanes that are not built.
template <typename Interface, template <typename> class Block, typename Fast4, typename Checked4,
          typename Fast16, typename Checked16>
std::unique_ptr<Interface> make_lane_unit(LaneBuilds<Fast4, Checked4, Fast16, Checked16>,
                                          const std::string& name, std::uint32_t lanes,
                                          const RtlOptions& options) {
  const bool checked = options.use_checked();
  if (lanes == 4 && checked) return std::make_unique<Block<Checked4>>(lanes, options);
  if (lanes == 4) return std::make_unique<Block<Fast4>>(lanes, options);
  if (lanes == 16 && checked) return std::make_unique<Block<Checked16>>(lanes, options);
  if (lanes == 16) return std::make_unique<Block<Fast16>>(lanes, options);
  throw hw::InputError(name + " RTL: " + std::to_string(lanes) + " lanes, expected 4 or 16");
}

/// A signed value on a pin of Bits bits: Verilator wants the bits above to be clear.
template <unsigned Bits>
[[nodiscard]] constexpr std::uint64_t pin(std::int64_t value) {
  return static_cast<std::uint64_t>(value) & ((std::uint64_t{1} << Bits) - 1);
}

/// Sends `rows` rows of `cols` words through an elementwise unit, in place. Rows begin with a beat
/// of their own; `drive_lane(lane, column)` sets the other operands of an element. Lanes beyond the
/// end of a row carry junk. Throws std::runtime_error if the unit hangs or forgets the lane mask.
template <typename Dut, typename DriveLane, typename Operands = NoOperands>
RtlCycles run_elements(Dut& dut, std::size_t lanes, std::int32_t* x, std::size_t cols,
                       std::size_t rows, DriveLane drive_lane, const BackPressure& pressure,
                       Operands operands = {}) {
  constexpr std::uint32_t kJunk = 0x5a5a5a5a;
  const std::size_t beats = (cols + lanes - 1) / lanes;
  const auto first_of = [=](std::size_t beat) { return beat % beats * lanes; };
  const auto filled = [=](std::size_t beat) {
    const std::size_t rest = cols - first_of(beat);
    return rest < lanes ? rest : lanes;
  };
  const auto row_of = [=](std::size_t beat) { return x + beat / beats * cols; };
  const auto mask_of = [=](std::size_t beat) { return (std::uint32_t{1} << filled(beat)) - 1; };

  const auto drive = [&](std::size_t beat) {
    using Mask = std::decay_t<decltype(dut->mask_i)>;
    dut->mask_i = static_cast<Mask>(mask_of(beat));
    const std::int32_t* const values = row_of(beat) + first_of(beat);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const bool used = lane < filled(beat);
      set_lane<32>(dut->data_i, lane, used ? static_cast<std::uint32_t>(values[lane]) : kJunk);
      if (used) drive_lane(lane, first_of(beat) + lane);
    }
  };
  const auto collect = [&](std::size_t beat) {
    if (dut->mask_o != mask_of(beat)) throw std::runtime_error("RTL unit: wrong lane mask");
    std::int32_t* const values = row_of(beat) + first_of(beat);
    if (dut.view() != nullptr) {
      dut.view()->set_beat(static_cast<std::size_t>(values - x), filled(beat));
    }
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const auto value = static_cast<std::int32_t>(get_lane<32>(dut->data_o, lane));
      if (lane < filled(beat)) {
        values[lane] = value;
      } else if (value != 0) {
        throw std::runtime_error("RTL unit: a masked lane is not 0");
      }
    }
  };
  return run_stream(dut, rows * beats, rows * beats, drive, collect, pressure, std::move(operands));
}

}  // namespace systole::testbench
