#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "hw/description/machine_rules.h"
#include "model/build/encoder_graph.h"
#include "model/integer/integer_model.h"
#include "model/model_files.h"
#include "support/network/linked_encoder.h"
#include "support/tlm/systemc_test.h"

/// Vision models with random masks and auto-encoders: whatever part of the link a machine has, or
/// none, the bytes are those of the reference.
namespace systole::testbench {
namespace {

using test::between;
using test::Random;
using test::Workload;

/// The first `query` rows of Q and of K, and all of V: a projection with its encoders folded in.
void cut_projection(model::IntegerLinear& qkv, std::uint32_t width, std::uint32_t query) {
  const auto cut = [&](auto& values, std::size_t per_output) {
    auto result = values;
    result.clear();
    for (std::uint32_t o = 0; o < 3 * width; ++o) {
      if (o < 2 * width && o % width >= query) continue;
      result.insert(result.end(), values.begin() + static_cast<std::ptrdiff_t>(o * per_output),
                    values.begin() + static_cast<std::ptrdiff_t>((o + 1) * per_output));
    }
    values = result;
  };
  cut(qkv.weight.edit(), qkv.inputs);
  cut(qkv.bias, 1);
  cut(qkv.factor, 1);
  qkv.outputs = 2 * query + width;
}

/// The smallest vision model with a random link and random masks in every block.
Workload linked_vit(Random& random, bool folded) {
  model::IntegerVit vit = model::load_integer_vit(model::find_model("vit17"));
  model::IntegerEncoder& encoder = vit.encoder;
  const std::uint32_t heads = encoder.shape.heads;
  const std::uint32_t latent = between(random, 1, heads - 1);
  vit.shape.encoder.latent_heads = latent;
  test::link_heads(random, encoder, latent, folded);
  const std::size_t tokens = vit.shape.tokens();
  for (model::IntegerBlock& block : encoder.blocks) {
    if (folded) {
      cut_projection(block.qkv, encoder.shape.width, latent * encoder.shape.head_width());
    }
    block.keep.resize(heads * tokens * tokens);
    for (std::size_t cell = 0; cell < block.keep.size(); ++cell) {
      block.keep[cell] = cell % tokens == 0 || between(random, 0, 5) == 0 ? 1 : 0;
    }
  }
  Workload workload{model::make_vit_graph(vit), {}};
  std::vector<std::uint8_t> pixels =
      test::random_bytes(random, workload.graph.tensors[input_tensor(workload.graph)].bytes());
  for (std::uint8_t& pixel : pixels) pixel &= 0x7f;
  workload.inputs.push_back(std::move(pixels));
  return workload;
}

/// Makes a decoder more than a mix of heads, which changes the output, or writes its latents again
/// before the heads run, which does not. Whether the output changes.
bool change_decoder(Random& random, model::Graph& graph) {
  const std::string layer = "blocks.0.attn.";
  const auto find = [&](const std::string& name) {
    return std::find_if(graph.nodes.begin(), graph.nodes.end(),
                        [&](const model::Node& node) { return node.name == layer + name; });
  };
  if (random() % 2 == 0) {
    find("decoder_q.bias")->stage()->stage.imm = {3, 1, -2000, 2000};
    return true;
  }
  model::Node copy;
  copy.name = "again";
  copy.stage()->stage = model::clamp_stage(8);
  copy.in = find("head0.context")->product()->b;
  copy.out = find("decoder_q")->in;
  copy.out.cols = copy.in.cols;
  graph.nodes.insert(find("head0.scores"), copy);
  return false;
}

/// ViTCoD's machine with parts of another size, or without them.
hw::Machine engines(Random& random) {
  hw::Machine machine = hw::find_machine("vitcod");
  hw::Machine::Attention& attention = machine.attention;
  const std::vector<std::uint32_t> lines = {0, 1, 3, 16};
  attention.encoder_lines = test::one_of(random, lines);
  attention.decoder_lines = test::one_of(random, lines);
  attention.query_kib = between(random, 1, 8);
  attention.key_kib = between(random, 1, 8);
  attention.value_kib = between(random, 1, 8);
  machine.accumulator.kib = 4 * between(random, 1, 10);
  return machine;
}

class LinkedVit : public test::SystemCTest {
 protected:
  /// The output, after a run in which every byte was as the reference has it, if `check`.
  static std::vector<std::vector<std::uint8_t>> run(const Workload& workload,
                                                    const hw::Machine& machine, bool check = true) {
    hw::validate(machine);
    const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
    SimulationOptions options;
    options.check = check;
    const SimulationResult result = workload.simulate(mapping, machine, options);
    EXPECT_EQ(result.check.mismatches, 0U) << result.check.first;
    return result.outputs;
  }
};

TEST_F(LinkedVit, GivesTheSameBytesWithAndWithoutAnyPartOfTheLink) {
  Random random(11);
  for (int i = 0; i < 6; ++i) {
    SCOPED_TRACE(i);
    const Workload workload = linked_vit(random, i % 3 == 2);
    const auto expected = run(workload, hw::find_machine("transformer"));
    EXPECT_EQ(run(workload, hw::find_machine("vitcod")), expected);
    for (int machines = 0; machines < 3; ++machines) {
      EXPECT_EQ(run(workload, engines(random)), expected);
    }
    if (HasFailure()) return;
  }
}

// The check knows the latents as they are in the end, so here outputs are compared.
TEST_F(LinkedVit, GivesTheSameBytesWhenADecoderIsMore) {
  Random random(12);
  for (int i = 0; i < 6; ++i) {
    SCOPED_TRACE(i);
    Workload workload = linked_vit(random, i % 3 == 2);
    const auto unchanged = run(workload, hw::find_machine("vitcod"));
    const bool changes = change_decoder(random, workload.graph);
    const auto expected = run(workload, hw::find_machine("tiny"), false);
    EXPECT_EQ(expected != unchanged, changes);
    EXPECT_EQ(run(workload, hw::find_machine("vitcod"), false), expected);
    EXPECT_EQ(run(workload, engines(random), false), expected);
  }
}

}  // namespace
}  // namespace systole::testbench
