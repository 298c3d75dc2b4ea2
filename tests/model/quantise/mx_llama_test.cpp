#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "hw/number/weight_groups.h"
#include "model/integer/integer_model.h"
#include "model/integer/integer_network.h"
#include "model/quantise/llama_quantiser.h"
#include "support/input_error.h"
#include "support/network/tiny_llama.h"
#include "support/temp_directory.h"
#include "tests/model/network/spoilt_network.h"

/// Llamas whose blocks have weights of a format of MX.
namespace systole::model {
namespace {

using test::TinyLlama;

class MxLlama : public testing::Test {
 protected:
  static QuantiserOptions options_of() {
    QuantiserOptions options;
    options.datapath.residual_bits = 24;
    return options;
  }

  TempDirectory directory_;
  LlamaCheckpoint real_ =
      TinyLlama::load(TinyLlama::write(directory_.path("llama.safetensors"), {true, false, true}));
};

// Weights that are MXFP4 already, at the largest element that sets an output's scale.
TEST_F(MxLlama, KeepsBlocksThatItsWeightsHave) {
  QuantiserOptions options = options_of();
  options.weight_format = hw::WeightFormat::kMxFp4;
  for (FloatLlamaBlock& block : real_.blocks) {
    for (LlamaLinear* const layer : {&block.query, &block.key, &block.value, &block.proj,
                                     &block.gate, &block.up, &block.down}) {
      for (std::size_t i = 0; i < layer->weight.size(); ++i) {
        const std::size_t of = i / hw::kGroupWeights % 3;
        const int code = static_cast<int>(i % 37 == 0 ? 7 : (i * 11 + i / 32) % 16);
        layer->weight[i] = static_cast<float>(
            std::ldexp(hw::doubled_e2m1(static_cast<unsigned>(code)), -5 - static_cast<int>(of)));
      }
    }
  }
  std::vector<LayerLoss> losses;
  const IntegerLlama llama = quantise(real_, TinyLlama::texts(4, 20), options, {}, &losses);
  const LlamaLinear& real = real_.blocks[1].up;
  const IntegerLinear& up = llama.blocks[1].up;
  EXPECT_EQ(up.format, hw::WeightFormat::kMxFp4);
  for (std::size_t o = 0; o < up.outputs; ++o) {
    const float* const row = &real.weight[o * up.inputs];
    const double largest = std::fabs(*std::max_element(
        row, row + up.inputs, [](float a, float b) { return std::fabs(a) < std::fabs(b); }));
    for (std::size_t i = 0; i < up.inputs; ++i) {
      ASSERT_EQ(up.weight[o * up.inputs + i] * hw::mx_output_scale(largest), double{row[i]}) << i;
    }
  }
  for (const LayerLoss& loss : losses) {
    // Queries and keys have been balanced before.
    if (loss.name == "logits" || loss.name.find("attn.") != std::string::npos) continue;
    EXPECT_EQ(loss.weights, 0) << loss.name;
  }
}

TEST_F(MxLlama, HasEveryBitInAFile) {
  for (const hw::WeightFormat format : {hw::WeightFormat::kMxInt8, hw::WeightFormat::kMxFp4}) {
    QuantiserOptions options = options_of();
    options.weight_format = format;
    std::vector<LayerLoss> losses;
    const IntegerLlama llama = quantise(real_, TinyLlama::texts(4, 20), options, {}, &losses);
    EXPECT_EQ(llama.output.format, hw::WeightFormat::kInt8);
    for (const LayerLoss& loss : losses) {
      if (loss.name == "logits") continue;
      // Steps are up to a quarter of an element of E2M1; those of int8 1/64 to 1/128 of the
      // largest.
      EXPECT_LT(loss.weights, format == hw::WeightFormat::kMxFp4 ? 3e-2 : 4e-4) << loss.name;
    }
    const std::string a = directory_.path("a.safetensors"), b = directory_.path("b.safetensors");
    write_network(llama, "", a);
    const IntegerLlama again = load_integer_llama(a);
    write_network(again, "", b);
    EXPECT_TRUE(read_file(a) == read_file(b));
    EXPECT_EQ(again.blocks[1].down.format, format);
    EXPECT_EQ(again.blocks[1].down.groups, llama.blocks[1].down.groups);
    EXPECT_EQ(again.blocks[1].down.weight, llama.blocks[1].down.weight);
  }
}

TEST_F(MxLlama, RefusesWhatIsNoFormat) {
  IntegerLlama llama = quantise(real_, TinyLlama::texts(4, 20), options_of());
  group_weights(llama, hw::WeightFormat::kMxFp4, "test");
  const std::string good = directory_.path("good.safetensors");
  write_network(llama, "", good);
  const auto refuses = [&](const std::function<void(SpoiltNetwork&)>& spoil,
                           const std::string& what) {
    SpoiltNetwork network(good);
    spoil(network);
    const std::string to = directory_.path("spoilt.safetensors");
    expect_contains(input_error_of([&] { return load_integer_llama(network.write(to)); }),
                    "node 'blocks.0.mlp.up': " + what);
  };
  const std::string up = "blocks.0.mlp.up", scale = up + ".group_scale";
  refuses([&](SpoiltNetwork& n) { n.attributes(up)["format"] = "mxfp6"; },
          "'attributes': 'format': found \"mxfp6\", expected \"mxint8\" or \"mxfp4\"");
  refuses([&](SpoiltNetwork& n) { n.attributes(up)["format"] = 4; },
          "'attributes': 'format': expected a text");
  refuses([&](SpoiltNetwork& n) { n.attributes(up).erase("format"); },
          "input 'group_minimum': expected beside group_scale, or a format of MX");
  refuses([&](SpoiltNetwork& n) { n.node(up)["inputs"].push_back(scale); },
          "input 'group_minimum'");
  refuses([&](SpoiltNetwork& n) { n.node(up)["inputs"].erase(5); },
          "attribute 'format': of weights in groups, expected input 'group_scale'");
  refuses([&](SpoiltNetwork& n) { n.tensors.at(scale).data[2] = std::byte{255}; },
          "input 'group_scale': output 2, inputs from 0 on: 255 is NaN, expected 0 to 254");
  refuses([&](SpoiltNetwork& n) { n.tensors.at(up + ".weight").data[5] ^= std::byte{1}; },
          "input 'weight': output 0, inputs from 0 on: weight");
  refuses([&](SpoiltNetwork& n) { n.tensors.at(scale).data[0] = std::byte{140}; },
          "input 'weight': output 0, inputs from 0 on: weight");
  refuses(
      [&](SpoiltNetwork& n) {
        TensorData& all = n.tensors.at(scale);
        all.data.pop_back();
        all.shape = {all.data.size(), 1};
      },
      "input 'group_scale'");
}

}  // namespace
}  // namespace systole::model
