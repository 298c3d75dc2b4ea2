#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "hw/machine/machine.h"
#include "hw/number/dtype.h"
#include "hw/number/int4.h"
#include "hw/program/program.h"
#include "mapper/mapping.h"
#include "model/graph/graph.h"

namespace systole::mapper {

/// A matrix in DRAM that a host writes before, or reads after, an inference.
struct TensorPlace {
  std::string name;
  hw::DType type = hw::DType::kS8;
  std::uint64_t address = 0;
  std::uint32_t pitch = 0;  ///< bytes from one row to the next
  std::uint32_t rows = 0, cols = 0;
  bool int4 = false;  ///< its s8 are stored as int4, in pairs along a row (hw/number/int4.h)

  /// Of a row in memory.
  [[nodiscard]] std::size_t row_bytes() const {
    return hw::stored_bytes<std::size_t>(cols, int4, hw::bytes_of(type));
  }
  /// Of the values, each of which is a whole number of them.
  [[nodiscard]] std::size_t bytes() const { return std::size_t{rows} * cols * hw::bytes_of(type); }
};

/// Where a tensor of the graph resides, which must be in DRAM.
[[nodiscard]] TensorPlace place_of(const model::Graph& graph, const Mapping& mapping,
                                   model::TensorId tensor);

/// All that a machine needs to run a network, without the network.
struct LoadableProgram {
  std::string network;
  std::uint64_t macs = 0;  ///< multiply-accumulates of the network in an inference
  hw::Machine machine;     ///< that it was made for, or that was given
  hw::Program program;
  std::uint64_t address = 0;  ///< of the program's header in memory
  hw::MemoryImage image;      ///< constants, masks and the program
  TensorPlace input, output;
};

/// Writes a program as a safetensors file, whole or not at all:
///
/// | part                      | content                                                          |
/// |---------------------------|------------------------------------------------------------------|
/// | tensor `memory.ADDRESS`   | U8: what memory holds from that address (hexadecimal) on, else 0 |
/// | tensor `program.ADDRESS`  | the same for the program (hw/program/program_image.h)            |
/// | metadata `format`         | `systole-program 1`                                              |
/// | metadata `network`        | name                                                             |
/// | metadata `macs`           | of an inference, those that masks prune included                 |
/// | metadata `machine`        | the machine file (docs/machine.md)                               |
/// | metadata `tensors`        | JSON: TensorPlace of input and output                            |
/// | metadata `operators`      | JSON: hw::Operator, for reports                                  |
/// | metadata `functions`      | JSON: hw::HostFunction, software of the host                     |
///
/// Throws InputError if the file cannot be written, or the graph has not one input and one output.
void write_program(const std::string& path, const std::string& network, const hw::Machine& machine,
                   const model::Graph& graph, const Mapping& mapping);

/// Reads it back and checks it for `machine`, or for its own if that is null. Throws InputError
/// that names the file and what is wrong.
[[nodiscard]] LoadableProgram read_program(const std::string& path,
                                           const hw::Machine* machine = nullptr);

}  // namespace systole::mapper
