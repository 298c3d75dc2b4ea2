#include "model/integer/integer_network.h"

#include <gtest/gtest.h>

#include "model/checkpoint/text_checkpoint.h"
#include "model/checkpoint/vit_checkpoint.h"
#include "model/integer/integer_model.h"
#include "model/quantise/quantiser.h"
#include "model/seeded/shapes.h"
#include "support/network/tiny_text.h"
#include "tests/model/network/spoilt_network.h"
#include "tests/model/vision.h"
#include "tests/support/input_error.h"

namespace systole::model {
namespace {

using Net = SpoiltNetwork;
using test::TinyText;

class IntegerNetwork : public ::testing::TestWithParam<const char*> {};

TEST_P(IntegerNetwork, HasEveryBitOfTheModel) {
  const TempDirectory directory;
  const std::string original = integer_model_path(GetParam());
  const std::string network = directory.path("n.safetensors"), copy = directory.path("c");
  write_network(load_integer_vit(original), network);
  EXPECT_EQ(model_kind(network), ModelKind::kIntegerVit);
  save_integer_vit(load_integer_vit(network), copy);
  EXPECT_TRUE(read_file(copy) == read_file(original));
}

INSTANTIATE_TEST_SUITE_P(EmbeddedModels, IntegerNetwork, ::testing::ValuesIn(kVisionModels),
                         model_test_name);
INSTANTIATE_TEST_SUITE_P(SparseModels, IntegerNetwork, ::testing::ValuesIn(kSparseModels),
                         model_test_name);

TEST(IntegerNetworkOfAVisionModel, HasFoldedEncoders) {
  const TempDirectory directory;
  QuantiserOptions options;
  options.fold_encoders = true;
  const IntegerVit vit =
      quantise(load_vit_checkpoint(checkpoint_path("vit65-sparse90-ae")), digits("calib"), options);
  ASSERT_TRUE(vit.encoder.folded_encoders);
  const std::string a = directory.path("a"), network = directory.path("n"), b = directory.path("b");
  save_integer_vit(vit, a);
  write_network(vit, network);
  save_integer_vit(load_integer_vit(network), b);
  EXPECT_TRUE(read_file(a) == read_file(b));
}

IntegerText tiny_integer_text(const TempDirectory& directory, const TinyText& file) {
  const TextCheckpoint real = load_text_checkpoint(file.write(directory.path("t.safetensors")));
  const std::string ids = TinyText::write_ids(directory.path("ids.safetensors"), 30, 11);
  return quantise(real, load_token_ids(ids, real.shape));
}

TEST(IntegerNetworkOfTexts, HasEveryBitOfTheModel) {
  for (const TinyText& file : {TinyText::bert(""), TinyText::gpt2("")}) {
    const TempDirectory directory;
    const IntegerText text = tiny_integer_text(directory, file);
    const std::string first = directory.path("a"), network = directory.path("n.safetensors");
    save_integer_text(text, first);
    write_network(text, network);
    EXPECT_EQ(model_kind(network), ModelKind::kIntegerText);
    save_integer_text(load_integer_text(network), directory.path("b"));
    EXPECT_TRUE(read_file(directory.path("b")) == read_file(first));
  }
}

TEST(IntegerNetworkOfTexts, RefusesAnAutoEncoder) {
  const TempDirectory directory;
  const IntegerText text = tiny_integer_text(directory, TinyText::gpt2(""));
  const std::string path = directory.path("n.safetensors");
  write_network(text, path);
  SpoiltNetwork network(path);
  const std::size_t heads = text.encoder.shape.heads, width = text.encoder.shape.width;
  for (std::uint32_t i = 0; i < text.encoder.shape.layers; ++i) {
    const std::string prefix = "blocks." + std::to_string(i) + ".attn.";
    for (const std::string part : {"query", "key"}) {
      const std::string name = prefix + part + ".mix";
      network.set(make_tensor(name + ".w", FileDtype::kI8, {heads, heads},
                              std::vector<std::int8_t>(heads * heads, 1)));
      for (const char* const words : {".b", ".m"}) {
        network.set(make_tensor(name + words, FileDtype::kI32, {heads},
                                std::vector<std::int32_t>(heads, 1)));
      }
      network.set(
          make_tensor(name + ".s", FileDtype::kI8, {heads}, std::vector<std::int8_t>(heads, 1)));
      network.document["tensors"][name] = {{"type", "s8"}, {"shape", {"tokens", width}}};
      network.document["nodes"].push_back(
          {{"name", name},
           {"op", "head_mix"},
           {"inputs", {prefix + part, name + ".w", name + ".b", name + ".m", name + ".s"}},
           {"outputs", {name}},
           {"attributes", nlohmann::json::object()}});
      network.node(prefix + "context")["inputs"][part == "query" ? 0 : 1] = name;
    }
  }
  expect_contains(input_error_of([&] { return load_integer_text(network.write(path)); }),
                  "the blocks have an auto-encoder, expected one in a vision model alone");
}

TEST(IntegerNetworkOfTexts, AddsTypeZeroToThePositions) {
  const TempDirectory directory;
  const IntegerText text = tiny_integer_text(directory, TinyText::bert(""));
  const std::string path = directory.path("n.safetensors");
  write_network(text, path);
  // Each type 3 more: that of type 0 goes to the positions, and the others are as far from it.
  SpoiltNetwork network(path);
  TensorData& types = network.tensors.at("token_type.table");
  std::vector<std::int32_t> values(types.data.size() / sizeof(std::int32_t));
  std::memcpy(values.data(), types.data.data(), types.data.size());
  for (std::int32_t& value : values) value += 3;
  network.set(make_tensor("token_type.table", types.dtype, types.shape, values));
  const IntegerText moved = load_integer_text(network.write(path));
  EXPECT_EQ(moved.token_type, text.token_type);
  for (std::size_t i = 0; i < text.position.size(); ++i) {
    ASSERT_EQ(moved.position[i], text.position[i] + 3);
  }
}

TEST(IntegerNetworkOfLayers, HasEveryBitOfTheSeededOnes) {
  for (const bool post : {false, true}) {
    const TempDirectory directory;
    const EncoderShape shape{2, 48, 3, 96, post, 0, !post};
    const IntegerLayers layers{"tiny", "seeded", make_seeded_layers(shape, 5, 1), 5, 0.25};
    const std::string a = directory.path("a.safetensors"), b = directory.path("b.safetensors");
    write_network(layers, a);
    EXPECT_EQ(model_kind(a), ModelKind::kIntegerLayers);
    const IntegerLayers again = load_integer_layers(a);
    EXPECT_TRUE(again.encoder.shape == shape);
    EXPECT_EQ(again.length, 5U);
    EXPECT_EQ(again.embedding_scale, 0.25);
    write_network(again, b);
    EXPECT_TRUE(read_file(a) == read_file(b));
  }
}

/// Graphs that are right by themselves, but of no network that is known.
const std::vector<NetworkFault>& strangers() {
  static const std::vector<NetworkFault> faults = {
      {"OtherValues", [](Net& n) { n.node("blocks.1.attn.value")["inputs"][0] = "blocks.0.norm1"; },
       "node 'blocks.1.attn.value': input 'blocks.0.norm1': expected 'blocks.1.norm1', as in a "
       "Transformer block"},
      {"OtherKeys", [](Net& n) { n.node("blocks.1.attn.key")["inputs"][0] = "blocks.0.norm1"; },
       "node 'blocks.1.attn.key': input 'blocks.0.norm1': expected 'blocks.1.norm1'"},
      {"SkippedResidual",
       [](Net& n) { n.node("blocks.1.mlp.residual")["inputs"][0] = "blocks.0.mlp.residual"; },
       "expected 'blocks.0.mlp.residual', as in a Transformer block"},
      {"NormOfAnotherStream",
       [](Net& n) { n.node("blocks.1.norm2")["inputs"][0] = "blocks.0.mlp.residual"; },
       "node 'blocks.1.norm2': input 'blocks.0.mlp.residual': expected 'blocks.1.attn.residual'"},
      {"QueryOfAnotherNorm",
       [](Net& n) {
         for (const char* const part : {"query", "key", "value"}) {
           n.node(std::string("blocks.1.attn.") + part)["inputs"][0] = "blocks.0.norm2";
         }
         n.node("blocks.2.norm1")["inputs"][0] = "blocks.1.mlp.residual";
       },
       "no node reads its output"},
      {"BranchFirst",
       [](Net& n) {
         n.node("blocks.1.mlp.residual")["inputs"] = {"blocks.1.mlp.fc2", "blocks.1.attn.residual"};
       },
       "node 'blocks.1.mlp.residual': input 'b': expected the output of linear"},
      {"FactorOfAPreNormBlock",
       [](Net& n) {
         n.attributes("blocks.1.mlp.residual")["factor"] = {1, 0};
       },
       "attribute 'factor': expected none in a pre-norm block"},
      {"OneBlockIsCausal", [](Net& n) { n.attributes("blocks.2.attn.context")["causal"] = true; },
       "node 'blocks.2.attn.context': attribute 'causal' is not that of the block after it"},
      {"OneBlockHasOtherHeads", [](Net& n) { n.attributes("blocks.0.attn.context")["heads"] = 2; },
       "node 'blocks.0.attn.context': attribute 'heads' is not that of the block after it"},
      {"OneBlockHasAnotherCode",
       [](Net& n) {
         n.attributes("blocks.0.attn.context")["exp_to_code"] = {3, 4};
       },
       "node 'blocks.0.attn.context': attribute 'exp_to_code': is not that of the block after it"},
      {"AllBlocksAreCausal",
       [](Net& n) {
         for (int i = 0; i < 4; ++i) {
           n.attributes("blocks." + std::to_string(i) + ".attn.context")["causal"] = true;
         }
       },
       "node 'patches': causal blocks after it, expected others"},
      {"AnotherRow", [](Net& n) { n.attributes("class_row")["row"] = 1; },
       "node 'class_row': attribute 'row': expected 0, the class token"},
      {"OtherLevels", [](Net& n) { n.attributes("patches")["levels"] = 16; },
       "node 'patches': attribute 'levels': 16, expected 17 or 256"},
      {"NoScale", [](Net& n) { n.document["tensors"]["norm"].erase("scale"); },
       "norm.scale: expected a positive number"},
      {"ShiftTooFar", [](Net& n) { n.attributes("norm")["shift"] = 63; },
       "node 'norm': 'attributes': 'shift': found 63, expected a whole number from 0 to 62"},
      {"NoBlock", [](Net& n) { n.node("norm")["inputs"][0] = "embedding"; },
       "no node reads its output"},
  };
  return faults;
}

class StrangeNetwork : public ::testing::TestWithParam<NetworkFault> {};

TEST_P(StrangeNetwork, IsRefusedAtItsNode) {
  const TempDirectory directory;
  const std::string path = directory.path("n.safetensors");
  write_network(load_integer_vit(integer_model_path("vit17")), path);
  SpoiltNetwork network(path);
  GetParam().spoil(network);
  const std::string text = input_error_of([&] { return load_integer_vit(network.write(path)); });
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  EXPECT_EQ(text.find(path), 0U) << text;
  expect_contains(text, GetParam().hint);
}

INSTANTIATE_TEST_SUITE_P(Graphs, StrangeNetwork, ::testing::ValuesIn(strangers()), fault_name);

}  // namespace
}  // namespace systole::model
