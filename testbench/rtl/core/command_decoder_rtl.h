#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hw/program/program.h"
#include "testbench/rtl/drive/rtl_counts.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// What a decoder says of a command.
struct DecodedCommand {
  bool legal = false, is_end = false, uses_chain = false;
  std::uint32_t chain = 0;     ///< position
  std::uint32_t operands = 0;  ///< the first of the table that it takes, if it takes any
  hw::Unit unit = hw::Unit::kStore;
  std::vector<hw::Range> ranges;  ///< sorted, see sort_ranges()
};

/// Drives the Verilated decoder of commands.
class CommandDecoderRtl {
 public:
  /// Tensor operands of a command, and bits of an address in main memory and in the core.
  static constexpr std::size_t kTensors = 4;
  static constexpr unsigned kDramBits = 40, kLocalBits = 24;

  virtual ~CommandDecoderRtl() = default;
  /// Decodes `command` (kCommandBytes bytes). `chain`: the record of the chain that it names, a
  /// multiple of eight bytes, or empty; `operands`: what it takes of the table.
  [[nodiscard]] virtual DecodedCommand decode(const std::uint8_t* command,
                                              const std::vector<std::uint8_t>& chain,
                                              const std::vector<hw::DramTile>& operands) = 0;
  /// For the waveform: what the model says of the next command.
  virtual void expect(const DecodedCommand& command) = 0;
  [[nodiscard]] virtual std::uint64_t cycles() const = 0;
  [[nodiscard]] virtual bool failed() const = 0;  ///< an assertion has fired
};

/// In a waveform the model's output is the number of ranges of the command.
inline constexpr std::size_t kDecoderViewWords = 1;
[[nodiscard]] std::unique_ptr<CommandDecoderRtl> make_command_decoder(
    const RtlOptions& options = {});

/// Ranges by space, then by their begins, ends and whether they are written. Empty ones are
/// dropped.
void sort_ranges(std::vector<hw::Range>& ranges);

/// Decodes all commands of a program from its image, and compares with hw::ranges_of() and the
/// like; an operation is a command. What the RTL should refuse it has to refuse.
void check_command_decoder(CommandDecoderRtl& decoder, const hw::Program& program,
                           RtlCounts& counts);

}  // namespace systole::testbench
