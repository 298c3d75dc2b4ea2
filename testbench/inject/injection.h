#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/array/array_flip.h"
#include "hw/program/program.h"
#include "tlm/common/stored_use.h"

/// Soft errors: a bit of a running machine that flips.
namespace systole::testbench {

/// What holds the bit.
enum class FaultTarget : std::uint8_t {
  kScratchpad,
  kAccumulator,
  kWeights,           ///< operands of products that do not change, in DRAM
  kParameters,        ///< biases, multipliers and tables of chains, and constant addends, in DRAM
  kCommands,          ///< the binary program in DRAM: commands, micro-code, operand addresses
  kArrayWeights,      ///< registers of the array (hw/array/array_flip.h): weights in use
  kArrayActivations,  ///< ... activations passed to the right
  kArraySums,         ///< ... sums passed down
};
inline constexpr std::array kFaultTargets = {
    FaultTarget::kScratchpad,       FaultTarget::kAccumulator, FaultTarget::kWeights,
    FaultTarget::kParameters,       FaultTarget::kCommands,    FaultTarget::kArrayWeights,
    FaultTarget::kArrayActivations, FaultTarget::kArraySums};
[[nodiscard]] std::string_view name_of(FaultTarget target);
/// Throws InputError for an unknown name.
[[nodiscard]] FaultTarget fault_target(std::string_view name);
/// Bits of the words by which bit positions are counted: of a sum, a parameter or a register of the
/// array, else of a byte.
[[nodiscard]] std::uint32_t word_bits(FaultTarget target);
/// The register that a target has in each element of the array; nothing: it is in a memory.
[[nodiscard]] std::optional<hw::ArrayRegister> array_register(FaultTarget target);
/// Bits that an address of the target has: of a byte, or of a register.
[[nodiscard]] std::uint32_t bits_per_address(FaultTarget target);

/// A bit that flips at the begin of a cycle, counted from the core's start.
struct Injection {
  FaultTarget target = FaultTarget::kScratchpad;
  std::uint32_t picture = 0;  ///< inference
  std::uint64_t cycle = 0;
  std::uint64_t address = 0;  ///< byte of its memory, or row * array.cols + column of an element
  std::uint32_t bit = 0;      ///< below bits_per_address()
  std::uint32_t flips = 1;    ///< 2: the neighbour `bit ^ 1` as well; 1 in the array

  /// Of a target in a memory.
  [[nodiscard]] hw::Space space() const;
  [[nodiscard]] std::uint8_t mask() const {
    const unsigned second = flips == 2 ? 1U << (bit ^ 1U) : 0U;
    return static_cast<std::uint8_t>(1U << bit | second);
  }
  /// Bit of the word of word_bits() that the address belongs to.
  [[nodiscard]] std::uint32_t bit_of_word() const {
    const std::uint32_t addresses = word_bits(target) / bits_per_address(target);
    return static_cast<std::uint32_t>(address % addresses) * 8 + bit;
  }
};

/// What became of it.
enum class FaultOutcome : std::uint8_t {
  kMasked,     ///< the outputs are those without it
  kCorrected,  ///< by the memory's code
  kLogits,     ///< other outputs, the same class
  kClass,      ///< another class
  kDetected,   ///< the memory's code, the command check or the bus reported an error
  kHang,       ///< the core had not ended when the watchdog did
};
inline constexpr std::array kFaultOutcomes = {FaultOutcome::kMasked,   FaultOutcome::kCorrected,
                                              FaultOutcome::kLogits,   FaultOutcome::kClass,
                                              FaultOutcome::kDetected, FaultOutcome::kHang};
[[nodiscard]] std::string_view name_of(FaultOutcome outcome);

/// How a flip of stored bits meets the steps of a run (tlm/common/stored_use.h).
struct FlipPlan {
  enum class Fate : std::uint8_t {
    kRead,         ///< something reads the flipped bits: the rest of the run decides
    kOverwritten,  ///< they are replaced before anything reads them
    kUnused,       ///< nothing uses them any more
    kDetected,     ///< the code of the memory reports them at the next read
    kCorrected,    ///< ... corrects them
  };
  /// Flips the bits before a step, or between the parts of its matmul.
  struct Toggle {
    std::uint64_t step = 0;
    tlm_model::MatmulSplit split;
  };
  static constexpr std::size_t kToggles = 4;

  Fate fate = Fate::kUnused;
  std::uint8_t toggles = 0;
  std::array<Toggle, kToggles> toggle;
  std::uint64_t earliest = 0;  ///< the first step before which the bits may flip
  bool in_array = false;       ///< of a register: the product of the first toggle's step has
  hw::ArrayFlip array;         ///< this flip
};

/// One injection and what it did. Plain data: it crosses processes.
struct InjectionResult {
  Injection injection;
  FlipPlan plan;
  FaultOutcome outcome = FaultOutcome::kMasked;
  bool ended_early = false;   ///< the process that ran it did: a defect of this program
  bool simulated = false;     ///< else the uses of the bit alone say that it is masked
  std::int32_t label = -1;    ///< class; -1: the network has none, or there are no outputs
  std::uint64_t hash = 0;     ///< of the outputs, FNV-1a; 0: none
  std::uint64_t changed = 0;  ///< bytes of the outputs that differ
};

}  // namespace systole::testbench
