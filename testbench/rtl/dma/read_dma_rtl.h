#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "hw/dma/read_dma.h"
#include "testbench/rtl/drive/rtl_check.h"
#include "testbench/rtl/drive/rtl_counts.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// What rtl/dma/systole_read_dma.sv is built for.
struct ReadDmaSize {
  std::uint32_t beat_bytes, request_bytes, outstanding, commands;
  bool late_sums = false;  ///< requests for the accumulator end with hw::ReadMemory::placed
};
inline constexpr std::array<ReadDmaSize, 2> kReadDmaSizes = {
    {{16, 64, 16, 8, true}, {4, 16, 4, 4, false}}};

/// What the port of a size has to do with these keys.
[[nodiscard]] hw::ReadParams read_params(const ReadDmaSize& size, hw::SlotOrder slots,
                                         std::uint32_t row_bytes);

/// Drives the Verilated reading port.
class ReadDmaRtl {
 public:
  struct Run {
    hw::ReadSchedule schedule;
    std::vector<hw::LocalWrite> writes;  ///< as they came, without their sources
    std::vector<std::uint8_t> local;     ///< the local memory afterwards
    std::uint64_t cycles = 0;
  };

  virtual ~ReadDmaRtl() = default;
  /// Runs the commands from reset on, every cycle, with a ReadSide at its AXI4 port. `local`: what
  /// the local memory holds before. `expected`: for the waveform, or null. Throws
  /// std::runtime_error on a breach of the protocol, or if the RTL hangs.
  virtual Run run(const std::vector<hw::RowRead>& commands, const hw::ReadParams& params,
                  const hw::ReadMemory& memory, const std::vector<std::uint8_t>& bytes,
                  std::vector<std::uint8_t> local, const hw::ReadSchedule* expected) = 0;
  [[nodiscard]] virtual bool error() const = 0;   ///< a response of the last run was no OKAY
  [[nodiscard]] virtual bool failed() const = 0;  ///< an assertion has fired
};

/// In a waveform the model's outputs are of the request that issued last: its address, its cycle of
/// issue and the one with which it is done.
inline constexpr std::size_t kReadDmaViewWords = 3;
[[nodiscard]] std::unique_ptr<ReadDmaRtl> make_read_dma(const ReadDmaSize& size,
                                                        const RtlOptions& options = {});

/// The writes of all requests in the order of their cycles, of which each has one at most.
[[nodiscard]] std::vector<hw::LocalWrite> all_writes(const std::vector<hw::ReadRequest>& requests,
                                                     std::uint64_t beat_bytes);
/// A local memory after such writes of `bytes`, the memory from address 0 on.
[[nodiscard]] std::vector<std::uint8_t> written(const std::vector<hw::LocalWrite>& writes,
                                                const std::vector<std::uint8_t>& bytes,
                                                std::vector<std::uint8_t> local);

/// Compares requests but for their bytes: what asks, for what, issued and done when.
void check_requests(RtlCheck& check, const std::vector<hw::ReadRequest>& found,
                    const std::vector<hw::ReadRequest>& expected);
/// Compares writes but for their sources.
void check_writes(RtlCheck& check, const std::vector<hw::LocalWrite>& found,
                  const std::vector<hw::LocalWrite>& expected);

/// Runs the commands and compares requests, times, writes and bytes with hw::read_schedule(); an
/// operation is a command. `make_memory` is called for each side, and must give the same memory.
void check_read_dma(ReadDmaRtl& dma, const std::vector<hw::RowRead>& commands,
                    const ReadDmaSize& size, const hw::ReadParams& params,
                    const std::function<hw::ReadMemory()>& make_memory,
                    const std::vector<std::uint8_t>& bytes, std::size_t local_bytes,
                    RtlCounts& counts);

}  // namespace systole::testbench
