#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "hw/dma/read_dma.h"

/// The cycle contract of fetching the commands of a program (hw/program/program_image.h): when each
/// has arrived. rtl/core/systole_command_fetch.sv and tlm/core/program_reader.h meet it.
namespace systole::hw {

/// Chunks of commands are read one after the other, the first together with the header. One is
/// asked for when the one before it has arrived, all of its commands have been looked at, if a
/// reader of chains does so, and the last command of the chunk before that is out.
class FetchSchedule {
 public:
  /// A program of `commands` commands, the last of which is `end`, at `address`; `chunk`: commands
  /// that one fetch brings (core.fetch_commands). The port reads the whole first chunk, however
  /// short the program is.
  FetchSchedule(const ReadParams& port, ReadMemory memory, std::uint32_t chunk,
                std::uint64_t address, std::uint32_t commands)
      : port_(port, std::move(memory)), chunk_(chunk), address_(address), commands_(commands) {}

  /// Begins in cycle `cycle`, from which the first request can issue.
  void start(std::uint64_t cycle);
  /// The cycle from which a command can go out. Those before it must be out.
  [[nodiscard]] std::uint64_t arrival(std::uint32_t index);
  /// Command `index` is out, and the next one can follow from `cycle` on.
  void is_out(std::uint32_t index, std::uint64_t cycle);

  /// All commands so far have been looked at before `cycle`.
  void is_looked(std::uint64_t cycle) { looked_ = cycle; }

  /// Reads a record, from `offset` bytes after the header's first one on, for a command that is
  /// looked at, so no chunk is in flight. The port can start it from `cycle` on. Returns the cycle
  /// with which it is there.
  [[nodiscard]] std::uint64_t record(std::uint64_t offset, std::uint64_t bytes,
                                     std::uint64_t cycle);

  [[nodiscard]] const std::vector<ReadRequest>& requests() const { return requests_; }

 private:
  [[nodiscard]] ReadTimes read(std::uint64_t offset, std::uint64_t bytes, std::uint64_t cycle);
  /// The cycle from which the next chunk can be asked for; the one before must have arrived.
  [[nodiscard]] std::uint64_t chunk_wanted() const;
  void read_chunk();

  ReadPort port_;
  const std::uint32_t chunk_;
  const std::uint64_t address_;
  const std::uint32_t commands_;
  std::uint64_t free_ = 0;  ///< cycle from which the port can start a read
  std::uint64_t looked_ = 0;
  std::vector<std::uint64_t> arrivals_;  ///< of chunks
  std::vector<std::uint64_t> out_;       ///< by chunk that is out: cycle
  std::vector<ReadRequest> requests_;
};

}  // namespace systole::hw
