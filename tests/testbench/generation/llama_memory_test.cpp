#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "hw/description/machine_file.h"
#include "model/integer/integer_model.h"
#include "model/integer/integer_network.h"
#include "model/seeded/seeded_llama.h"
#include "support/temp_directory.h"
#include "testbench/common/child_process.h"
#include "testbench/generation/llama_generation.h"

namespace systole::testbench {
namespace {

/// Of this process, in bytes, by a name in /proc/self/status.
std::uint64_t status_of(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kib = 0;
    if (word == name + ":" && status >> kib) return kib << 10U;
  }
  return 0;
}

/// Weights in memory, at their bits.
std::uint64_t weight_bytes(const model::IntegerLlama& llama) {
  std::uint64_t bytes = llama.output.weight.size() + llama.word.size();
  for (const model::IntegerLlamaBlock& block : llama.blocks) {
    for (const model::IntegerLinear* const layer :
         {&block.query, &block.key, &block.value, &block.proj, &block.gate, &block.up,
          &block.down}) {
      bytes += layer->grouped() ? hw::packed_bytes(layer->format, layer->inputs, layer->outputs)
                                : layer->weight.size();
    }
  }
  return bytes;
}

/// Megabytes that all else may take: graphs, commands, what tiles are made of, libraries, groups of
/// weights. A copy of the weights would be more.
double most_beside(hw::WeightFormat format) { return format == hw::WeightFormat::kInt8 ? 24 : 36; }

struct Peak {
  std::uint64_t bytes = 0, weights = 0, tokens = 0, chunk = 0;
};

class LlamaMemory : public testing::TestWithParam<hw::WeightFormat> {};

// A network in a file that writes a text: the memory of the simulated machine has the weights, and
// nothing else of the process does. Two programs have them in their own tiles.
TEST_P(LlamaMemory, HoldsTheWeightsOnce) {
  if (::mallinfo2().uordblks == 0) GTEST_SKIP() << "a sanitizer has memory of its own";
  hw::Machine machine = hw::find_machine("transformer");
  machine.datapath.residual_bits = 24;
  machine.postop.row_statistics = 4096;
  machine.dma.expander_lanes = 16;
  const TempDirectory directory;
  const std::string path = directory.path("llama.safetensors");
  // In a process of its own: what it frees would be there for the other one.
  (void)in_child([&] {
    model::LlamaShape shape;
    shape.layers = 4;
    shape.width = 1024;
    shape.heads = 16;
    shape.kv_heads = 4;
    shape.head_width = 64;
    shape.hidden = 4096;
    shape.vocabulary = 8192;
    shape.positions = 64;
    shape.rope_base = 1000;
    shape.tied = true;
    // Of scales of each row alone are there files; what the numbers mean does not matter here.
    model::IntegerLlama llama =
        model::make_seeded_llama("seeded", shape, 16, 5, machine.datapath, true, false);
    llama.row_scales = llama.context_scales = true;
    llama.logit_scale = 1.0;
    llama.word_factor.assign(shape.vocabulary, {1, 0});
    if (GetParam() != hw::WeightFormat::kInt8) model::group_weights(llama, GetParam(), "test");
    model::write_network(llama, "", path);
    return 0;
  });
  const Peak peak = in_child([&] {
    const std::uint64_t before = status_of("VmRSS");
    const model::IntegerLlama llama = model::load_integer_llama(path);
    LlamaTask task;
    task.prompt = {3, 7, 40, 22, 1, 9};
    task.tokens = 3;
    const LlamaGeneration generation = generate(machine, llama, task);
    return Peak{status_of("VmHWM") - before, weight_bytes(llama), generation.tokens.size(),
                generation.chunk};
  });
  EXPECT_EQ(peak.tokens, 3U);
  EXPECT_EQ(peak.chunk, 6U);
  const auto megabytes = [](std::uint64_t bytes) { return static_cast<double>(bytes) * 1e-6; };
  const double weights = megabytes(peak.weights), beside = megabytes(peak.bytes) - weights;
  RecordProperty("peak_over_weights", std::to_string(1.0 + beside / weights));
  EXPECT_LT(beside, most_beside(GetParam())) << weights << " MB of weights";
  EXPECT_GT(beside, 0.0) << "and the machine's memory has them";
}

INSTANTIATE_TEST_SUITE_P(Formats, LlamaMemory,
                         testing::Values(hw::WeightFormat::kInt8, hw::WeightFormat::kGroups));

}  // namespace
}  // namespace systole::testbench
