#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <systemc>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/program/command_check.h"
#include "hw/program/program.h"
#include "hw/program/program_fetch.h"
#include "hw/program/program_image.h"
#include "hw/program/record_look.h"
#include "hw/program/record_store.h"
#include "tlm/common/time.h"
#include "tlm/common/value_queue.h"
#include "tlm/dma/dma_port.h"

namespace systole::tlm_model {

/// Reads a program from memory (hw/program/program_image.h) ahead of dispatch: commands in chunks
/// of core.fetch_commands, one chunk ahead, the first one together with the header. When a chunk
/// has arrived, it looks at its commands (hw/program/record_look.h) and requests what they refer to
/// and the core does not hold: tensor operands and mask entries, which the commands take along,
/// chains (core.chain_slots of them are held) and mixes (hw::kMixSlots). A record is not replaced
/// before all commands that use it have completed. Where the host sends the commands
/// (unroller.loops), it sends what they refer to with them.
///
/// Masks themselves are read by the attention unit when it needs them, which takes the time; the
/// plan of a command needs all of its mask at once, so the reader looks at it without taking time.
class ProgramReader : public sc_core::sc_module {
 public:
  struct Fetched {
    hw::Command command;
    std::uint32_t index = 0;
    std::uint64_t arrival = 0;  ///< cycle at which the core has it and all that it refers to
  };

  /// `port` is used by this module alone.
  ProgramReader(const sc_core::sc_module_name& name, const hw::Machine& machine, DmaPort& port);

  /// Reads the program whose header is at `address`, from now on. Nothing must be left of the one
  /// before.
  void start(std::uint64_t address);
  /// Waits for the next command, not for its arrival; after `end` there is none. A program that is
  /// none, or a command that the machine cannot execute, reads as `end`: see fault().
  [[nodiscard]] Fetched next();
  /// Whether next() does not wait.
  [[nodiscard]] bool has_next() const noexcept { return !queue_.empty(); }
  /// Notified when there is a next one.
  [[nodiscard]] const sc_core::sc_event& arrived() const noexcept { return arrived_; }

  /// A command is complete now: what it refers to may be replaced, unless others need it.
  void complete(const hw::Command& command);

  /// Actions of the queue, which outlives the run, refer to chains and mixes.
  void share_values(ValueQueue& values) noexcept { values_ = &values; }
  /// Returns when all of them are done.
  void await_values() {
    if (values_ != nullptr) values_->await();
  }

  /// What the commands fetched so far refer to: chains, mixes, masks, tensor operands.
  [[nodiscard]] const hw::Program& program() const noexcept { return program_; }
  /// Byte address of a command of the program.
  [[nodiscard]] std::uint64_t address_of(std::uint64_t index) const {
    return address_ + header_.command(index);
  }
  /// What is wrong with the program; empty: nothing so far.
  [[nodiscard]] const std::string& fault() const noexcept { return fault_; }

 private:
  /// A chunk as it was read last, so that the same bytes are checked once.
  struct Chunk {
    std::uint64_t hash = 0;        ///< of its bytes
    std::uint64_t generation = 0;  ///< of the records that they were checked with
  };

  void run();
  void read_program();
  /// Reads `bytes` from `offset` after the header's first byte; returns the cycle of arrival.
  std::uint64_t read(std::uint64_t offset, std::size_t bytes, std::vector<std::uint8_t>& into,
                     std::uint64_t not_before = 0);
  void take_header(const std::vector<std::uint8_t>& bytes);
  /// Decodes and passes on the commands from `first` on.
  void take_chunk(std::uint32_t first, std::uint64_t arrival, const std::uint8_t* bytes,
                  std::size_t count);
  void check(const hw::Command& command, std::uint32_t index);
  /// Reads what a command refers to, unless it is held; returns the cycle from which the command
  /// can be dispatched.
  std::uint64_t read_referred(const hw::Command& command);
  std::uint64_t read_operands(const hw::Command& command);
  std::uint64_t read_mask(std::uint32_t index);
  std::uint64_t hold_chain(std::uint32_t index);
  std::uint64_t hold_mix(std::uint32_t index);

  /// Where a record is, the bytes that were decoded last, and how to decode others.
  struct Table {
    std::uint64_t offset;
    std::size_t stride;
    std::vector<std::uint8_t>& held;
    std::function<void(const std::vector<std::uint8_t>& bytes)> take;
  };
  std::uint64_t hold(hw::RecordStore& store, std::uint32_t index, const Table& table);
  /// Reads an entry, or entries, of a table for the command that is looked at.
  std::uint64_t read_entries(std::uint64_t offset, std::size_t bytes,
                             std::vector<std::uint8_t>& into);

  const hw::Machine machine_;
  const bool host_sends_;  ///< the commands, and what they refer to
  const Clock clock_;
  DmaPort& port_;
  std::uint64_t address_ = 0;
  hw::ProgramHeader header_;
  hw::Program program_;
  hw::RecordStore chains_, mixes_;
  hw::RecordLook look_;
  std::vector<std::vector<std::uint8_t>> chain_bytes_, mix_bytes_;  ///< as decoded last
  std::uint64_t generation_ = 1;                                    ///< changes when a record does
  std::unique_ptr<hw::CommandCheck> check_;
  std::uint64_t checked_with_ = 0;  ///< generation_ of `check_`
  std::vector<Chunk> chunks_;
  std::vector<hw::Command> decoded_;  ///< the last chunk
  std::deque<Fetched> queue_;
  std::uint32_t begun_ = 0;  ///< chunks whose first command was taken
  std::string fault_;
  ValueQueue* values_ = nullptr;
  sc_core::sc_event started_, arrived_, taken_, completed_;
};

}  // namespace systole::tlm_model
