#pragma once

#include <cstdint>

#include "hw/description/machine_file.h"
#include "hw/number/half.h"
#include "model/float/gpt.h"
#include "support/tlm/fresh_kernel.h"
#include "testbench/generation/generation.h"

namespace systole::test {

/// Odd in every size: heads of 24, five of them; weights that make a difference.
inline model::Gpt odd_gpt() {
  model::TextShape shape = model::gpt_shape("kjv");
  shape.encoder.layers = 2;
  shape.encoder.width = 120;
  shape.encoder.heads = 5;
  shape.encoder.hidden = 200;
  shape.vocabulary = 77;
  shape.positions = 100;
  model::Gpt gpt = model::seeded_gpt("odd", shape, 11);
  for (model::GptLayer& layer : gpt.layers) {
    for (auto* linear : {&layer.query, &layer.key, &layer.value, &layer.fc1}) {
      for (hw::Half& weight : linear->weight) weight = hw::half_mul(weight, hw::to_half(8.0));
    }
  }
  return gpt;
}

/// A ring of so many cores.
inline hw::Machine machine_with(std::uint32_t cores, const char* preset = "dfx") {
  hw::Machine machine = hw::find_machine(preset);
  machine.dfx.cores = cores;
  return machine;
}

/// generate() that may be called again in the same process.
inline testbench::Generation generate_once(const hw::Machine& machine,
                                           const testbench::GenerationTask& task) {
  testbench::Generation generation = testbench::generate(machine, task);
  fresh_kernel();
  return generation;
}

}  // namespace systole::test
