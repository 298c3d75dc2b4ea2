#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "hw/machine/machine.h"
#include "hw/program/attention_check.h"
#include "hw/program/program.h"

namespace systole::hw {

/// What a message calls the units of a memory, e.g. "scratchpad bytes".
[[nodiscard]] const char* name_of(Space space);
/// In those units.
[[nodiscard]] std::uint64_t size_of(Space space, const Machine& machine, std::uint64_t dram_bytes);

/// Checks commands one by one, as a core does when it has fetched one and what it refers to:
/// chains, mixes, masks and operand tiles of `program`, which must outlive the check and be valid
/// themselves.
class CommandCheck {
 public:
  CommandCheck(const Program& program, const Machine& machine, std::uint64_t dram_bytes)
      : program_(program), machine_(machine), dram_bytes_(dram_bytes), masks_(program, machine) {}

  /// Throws InputError that names the rule which the command breaks: a range outside a memory of
  /// the machine; written rows that overlap; an unknown chain, mix or function; rows that a mix
  /// does not divide; an address that its bytes cannot hold. `index` is for the message.
  void run(const Command& command, std::size_t index);

  /// Throws InputError unless a program of `commands` commands may have this one at `index`: the
  /// last is kEnd, and no other.
  static void check_end(const Command& command, std::size_t index, std::size_t commands);

 private:
  [[noreturn]] void fail(const std::string& what) const;
  [[nodiscard]] std::function<void(const std::string& what)> failing() const {
    return [this](const std::string& what) { fail(what); };
  }
  void check(const cmd::End& end) const;
  void check(const cmd::Load& load) const;
  void check(const cmd::LoadAccumulator& load) const;
  void check(const cmd::Matmul& matmul) const;
  void check(const cmd::Store& store) const;
  void check(const cmd::Move& move) const;
  void check(const cmd::Attention& attention) const;
  void check(const cmd::HostCall& call) const;
  void check(const cmd::Loop& loop) const;
  void check_int4_activations(const cmd::Matmul& matmul) const;
  void check_result(const cmd::Result& result) const;
  void check_int4_result(const cmd::Result& result) const;
  void check_shape(std::uint32_t m, std::uint32_t n, std::uint32_t k = 1) const;
  void check_chain_index(std::size_t chain) const;
  void check_window_tile(const cmd::Load& load, bool sums) const;
  void check_pre(const cmd::Load& load, bool sums) const;
  void check_packed(const cmd::Load& load) const;
  void check_chain_use(const ChainUse& use, std::uint32_t n) const;
  void check_operand_tiles(const ChainUse& use, const Chain& chain, std::uint32_t n) const;
  void check_encoder(const cmd::Store& store) const;
  /// `address` has four bytes in a command.
  void check_near(const char* name, const DramTile& tile) const;
  /// Rows that overlap would make the result depend on the order in which rows are written.
  void check_written_rows(const char* name, std::uint64_t pitch, const WrittenRows& rows) const;
  /// Of an operand of the array, also if it has one row: the array's engines take no other.
  void check_pitch(const char* name, std::uint64_t pitch, std::uint64_t row) const;
  void check_range(const Range& range) const;

  const Program& program_;
  const Machine& machine_;
  std::uint64_t dram_bytes_;
  AttentionMaskCheck masks_;
  std::size_t index_ = 0;
  Opcode opcode_ = Opcode::kEnd;
};

}  // namespace systole::hw
