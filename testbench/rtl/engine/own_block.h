#pragma once

#include <verilated_config.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

#include "hw/array/accumulator.h"
#include "hw/machine/machine.h"
#include "hw/machine/matrix_unit.h"
#include "testbench/rtl/drive/rtl_counts.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// What the driver of a block has to know of the machine beyond the block's sizes.
struct OwnArguments {
  hw::ArrayOverlap overlap = hw::ArrayOverlap::kNone;
  hw::AccumulatorBanks banks = {};
  hw::MatrixUnit matrix = {};
};

/// A block that is a user's own RTL, in a shared library that `systole rtl add` builds. The library
/// has what was Verilated, and the driver of the block for it; all else is the program's.
struct OwnBlock {
  static constexpr std::size_t kMostSizes = 17;

  const char* program;    ///< version and commit of the program whose headers it was built with
  const char* verilator;  ///< VERILATOR_VERSION
  const char* block;      ///< as its manifest says
  std::array<std::uint32_t, kMostSizes> sizes;  ///< in the order of the block's, the others 0
  const char* folder;                           ///< of its manifest
  bool checked;                                 ///< has assertions and can write waveforms
  /// A new driver, a pointer to the interface of the block's drivers.
  void* (*make)(const OwnArguments& arguments, const RtlOptions& options);
};

/// Name of the OwnBlock in the library.
inline constexpr const char* kOwnBlockSymbol = "systole_own_block";

/// A size that a block has, of the machine: name in manifests, machine key, value.
struct OwnSize {
  const char* name;
  const char* machine_key;
  std::uint64_t value;
};

/// The user's RTL for a block of the machine, or null. Its folder becomes the source in `counts`.
/// Throws InputError if it is RTL of another block than `block`, or has other sizes.
[[nodiscard]] const OwnBlock* find_own(const RtlOptions& options, const std::string& of_machine,
                                       const std::string& block,
                                       std::initializer_list<OwnSize> sizes, RtlCounts& counts);

/// Throws InputError if a waveform is asked for that it cannot write.
void expect_waves(const OwnBlock& own, const RtlOptions& options);

/// Its driver. `Interface` is that of the block's drivers.
template <typename Interface>
[[nodiscard]] std::unique_ptr<Interface> make_own(const OwnBlock& own,
                                                  const OwnArguments& arguments,
                                                  const RtlOptions& options) {
  expect_waves(own, options);
  return std::unique_ptr<Interface>(static_cast<Interface*>(own.make(arguments, options)));
}

}  // namespace systole::testbench
