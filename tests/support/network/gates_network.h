#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "mapper/mapping.h"
#include "support/network/encoder_run.h"
#include "testbench/rtl/core/core_rtl.h"

/// Networks for the gates of a core: what goes into memory, what comes out, and what ran.
namespace systole::test {

/// Whether all sums begin at a row of the accumulator: the gates can do no others.
inline bool has_whole_rows(const hw::Program& program) {
  return std::all_of(
      program.commands.begin(), program.commands.end(), [](const hw::Command& command) {
        const auto* const matmul = command.as<hw::cmd::Matmul>();
        return matmul == nullptr || (matmul->c.address % testbench::CoreRtl::kSize == 0 &&
                                     matmul->c.pitch % testbench::CoreRtl::kSize == 0);
      });
}

/// Rows of a tensor in memory, one after the other.
struct TensorPlace {
  std::uint64_t address, pitch, rows, row_bytes;
};
inline TensorPlace place_of(const Workload& workload, const mapper::Mapping& mapping,
                            model::TensorId id) {
  const mapper::Location& place = mapping.tensors.at(id);
  const model::Tensor& tensor = workload.graph.tensors[id];
  return {place.address, place.pitch, tensor.rows, tensor.cols * hw::bytes_of(tensor.type)};
}

/// What memory holds before the first inference.
inline hw::MemoryImage image_of(const Workload& workload, const mapper::Mapping& mapping) {
  hw::MemoryImage image = mapping.image;
  const TensorPlace in = place_of(workload, mapping, testbench::input_tensor(workload.graph));
  for (std::uint64_t row = 0; row < in.rows; ++row) {
    const auto begin = workload.inputs[0].begin() + static_cast<std::ptrdiff_t>(row * in.row_bytes);
    image.push_back(
        {in.address + row * in.pitch, {begin, begin + static_cast<std::ptrdiff_t>(in.row_bytes)}});
  }
  return image;
}

/// Cycles from start to end that commands of a kind take in the gates and in the model.
struct KindCycles {
  std::uint64_t commands = 0, gates = 0, model = 0;
};

/// What networks that ran in the gates were made of.
struct GatesContents {
  std::size_t networks = 0, transposed = 0;
  std::map<hw::Opcode, KindCycles> kinds;
  std::set<hw::StageOp> stages;

  void add(const mapper::Mapping& mapping, const testbench::CoreRun& run,
           const testbench::SimulationResult& model) {
    ++networks;
    for (std::size_t c = 0; c < run.commands.size(); ++c) {
      const hw::Command& command = mapping.program.commands[c];
      KindCycles& kind = kinds[command.opcode()];
      ++kind.commands;
      kind.gates += run.commands[c].completed - run.commands[c].started;
      kind.model += model.traces.at(c).completed - model.traces.at(c).started;
      if (const auto* const matmul = command.as<hw::cmd::Matmul>()) {
        transposed += matmul->b_transposed ? 1 : 0;
      }
    }
    for (const hw::Chain& chain : mapping.program.chains) {
      for (const hw::Stage& stage : chain.stages) stages.insert(stage.op);
    }
  }

  void print() const {
    for (const auto& [opcode, kind] : kinds) {
      std::printf(
          "%s: %llu commands, gates %llu cycles, model %llu\n",
          std::string(hw::name_of(opcode)).c_str(), static_cast<unsigned long long>(kind.commands),
          static_cast<unsigned long long>(kind.gates), static_cast<unsigned long long>(kind.model));
    }
  }
};

}  // namespace systole::test
