#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "hw/array/accumulator.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// rtl/array/systole_accumulator_sram.sv, driven on all of its streams at once. Contract:
/// hw/array/accumulator.h.
class AccumulatorSramRtl {
 public:
  virtual ~AccumulatorSramRtl() = default;

  /// One row of the machine's accumulator, `cols` values.
  struct Write {
    std::uint64_t row = 0;
    const std::int32_t* values = nullptr;
    bool accumulate = false;
    std::uint32_t mask = 0xffffffff;  ///< bit c: column c is written
  };
  struct Read {
    std::uint64_t row = 0;
    std::int32_t* values = nullptr;  ///< where the data go
  };

  struct Cycles {
    RtlCycles write;           ///< until the last row is written
    RtlCycles read;            ///< until the last data are taken
    std::uint64_t waited = 0;  ///< of `read`: no port was left
  };

  /// The handshakes of one cycle. Row numbers are those of the machine; one that is not valid is
  /// the next to come, or 0 after the last.
  struct Pins {
    bool write_valid, write_ready, accumulate;
    bool read_valid, read_ready;
    bool data_valid, data_ready;
    bool written;
    std::uint64_t write_row, read_row;
  };
  using Observer = std::function<void(const Pins&)>;

  /// Both streams begin in the same cycle, with their first row, and the operation ends with the
  /// last row written and the last data taken. `pressure`: the input side withholds rows to write
  /// and to read, each on its own; the output side refuses data. Throws std::out_of_range for a row
  /// outside the banks, std::runtime_error if the memory stops moving.
  virtual Cycles run(const std::vector<Write>& writes, const std::vector<Read>& reads,
                     const BackPressure& pressure = {}, const Observer& observe = {}) = 0;
  [[nodiscard]] virtual bool failed() const = 0;  ///< an assertion has fired
};

/// `cols` and `banks.ports` choose the build. It stores 2 banks of 2048 rows; a machine with
/// shorter banks uses the beginning of each. Throws InputError for anything else.
[[nodiscard]] std::unique_ptr<AccumulatorSramRtl> make_accumulator_sram(
    std::uint32_t cols, const hw::AccumulatorBanks& banks, const RtlOptions& options = {});

}  // namespace systole::testbench
