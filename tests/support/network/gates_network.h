#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "mapper/mapping.h"
#include "mapper/program_file.h"
#include "support/network/encoder_run.h"
#include "testbench/rtl/core/core_rtl.h"

/// Networks for the gates of a core: what goes into memory, what comes out, and what ran.
namespace systole::test {

/// What memory holds before the first inference.
inline hw::MemoryImage image_of(const Workload& workload, const mapper::Mapping& mapping) {
  hw::MemoryImage image = mapping.image;
  const mapper::TensorPlace in =
      mapper::place_of(workload.graph, mapping, testbench::input_tensor(workload.graph));
  for (std::uint64_t row = 0; row < in.rows; ++row) {
    const auto begin =
        workload.inputs[0].begin() + static_cast<std::ptrdiff_t>(row * in.row_bytes());
    image.push_back(
        {in.address + row * in.pitch,
         std::vector<std::uint8_t>(begin, begin + static_cast<std::ptrdiff_t>(in.row_bytes()))});
  }
  return image;
}

/// What networks that ran in the gates were made of.
struct GatesContents {
  std::size_t networks = 0, transposed = 0;
  std::size_t staged = 0;       ///< loads with stages
  std::size_t beside_rows = 0;  ///< products whose sums do not all begin at rows of the accumulator
  std::map<hw::Opcode, std::size_t> commands;
  std::set<hw::StageOp> stages;

  void add(const mapper::Mapping& mapping) {
    ++networks;
    for (const hw::Command& command : mapping.program.commands) {
      ++commands[command.opcode()];
      const auto* const load = command.as<hw::cmd::Load>();
      staged += load != nullptr && load->pre ? 1 : 0;
      if (const auto* const matmul = command.as<hw::cmd::Matmul>()) {
        transposed += matmul->b_transposed ? 1 : 0;
        const std::uint32_t lanes = testbench::kTinyCore.lanes;
        beside_rows += matmul->c.address % lanes != 0 || matmul->c.pitch % lanes != 0 ? 1 : 0;
      }
    }
    for (const hw::Chain& chain : mapping.program.chains) {
      for (const hw::Stage& stage : chain.stages) stages.insert(stage.op);
    }
  }
};

}  // namespace systole::test
