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

IntegerText tiny_integer_text(const TempDirectory& directory, const TinyText& file,
                              bool row_scales = false) {
  const TextCheckpoint real = load_text_checkpoint(file.write(directory.path("t.safetensors")));
  const std::string ids = TinyText::write_ids(directory.path("ids.safetensors"), 30, 11);
  QuantiserOptions options;
  options.row_scales = row_scales;
  return quantise(real, load_token_ids(ids, real.shape), options);
}

/// Of a classifier of texts with that function in its head.
IntegerText tiny_classifier(const TempDirectory& directory, HeadFunction function) {
  const TinyText file = TinyText::classifier();
  TextCheckpoint real = load_text_checkpoint(file.write(directory.path("t.safetensors")));
  real.head->function = function;
  const std::string ids = TinyText::write_ids(directory.path("ids.safetensors"), 30, 11);
  return quantise(real, load_token_ids(ids, real.shape));
}

TEST(IntegerNetworkOfTexts, HasEveryBitOfTheModel) {
  const TempDirectory directory;
  const IntegerText texts[] = {tiny_integer_text(directory, TinyText::bert("")),
                               tiny_integer_text(directory, TinyText::gpt2("")),
                               tiny_integer_text(directory, TinyText::bert(""), true),
                               tiny_integer_text(directory, TinyText::gpt2(""), true),
                               tiny_integer_text(directory, TinyText::classifier(""), true),
                               tiny_classifier(directory, HeadFunction::kTanh),
                               tiny_classifier(directory, HeadFunction::kRelu)};
  for (const IntegerText& text : texts) {
    const std::string first = directory.path("a"), network = directory.path("n.safetensors");
    save_integer_text(text, first);
    write_network(text, network);
    EXPECT_EQ(model_kind(network), ModelKind::kIntegerText);
    save_integer_text(load_integer_text(network), directory.path("b"));
    EXPECT_TRUE(read_file(directory.path("b")) == read_file(first));
    save_integer_text(load_integer_text(first), directory.path("c"));
    EXPECT_TRUE(read_file(directory.path("c")) == read_file(first));
    EXPECT_EQ(load_integer_text(first).shape.classes, text.head ? TinyText::kClasses : 0U);
  }
}

TEST(IntegerNetworkOfTexts, RefusesAnotherHead) {
  const TempDirectory directory;
  const std::string path = directory.path("n.safetensors");
  write_network(tiny_classifier(directory, HeadFunction::kTanh), path);
  const auto expect = [&](const std::string& part, const auto& spoil) {
    SpoiltNetwork network(path);
    spoil(network);
    const std::string other = directory.path("other.safetensors");
    expect_contains(input_error_of([&] { return load_integer_text(network.write(other)); }), part);
  };
  expect("node 'class_row': attribute 'row': expected 0, the first token",
         [](SpoiltNetwork& network) { network.attributes("class_row")["row"] = 1; });
  expect("node 'pooled': input 'x' (pooler): type is s8, expected s16",
         [](SpoiltNetwork& network) { network.document["tensors"]["pooler"]["type"] = "s8"; });
  expect("fraction_bits",
         [](SpoiltNetwork& network) { network.attributes("pooled")["fraction_bits"] = 12; });
  expect("head.tanh.argument", [](SpoiltNetwork& network) {
    network.attributes("pooled")["argument"] = {-1, 3};
  });
}

TEST(IntegerNetworkOfTexts, RefusesScalesOfSomeRows) {
  const TempDirectory directory;
  const std::string path = directory.path("n.safetensors");
  write_network(tiny_integer_text(directory, TinyText::classifier(""), true), path);
  const auto expect = [&](const std::string& part, const auto& spoil) {
    SpoiltNetwork network(path);
    spoil(network);
    const std::string other = directory.path("other.safetensors");
    expect_contains(input_error_of([&] { return load_integer_text(network.write(other)); }), part);
  };
  const auto types = [](const std::vector<std::string>& values, const char* type) {
    return [=](SpoiltNetwork& network) {
      for (const std::string& value : values) network.document["tensors"][value]["type"] = type;
    };
  };
  expect("node 'norm': norm: type is s8, expected s16 where rows have scales",
         types({"norm"}, "s8"));
  expect("node 'blocks.1.norm2': blocks.1.norm2: type is s8, expected s16",
         types({"blocks.1.norm2"}, "s8"));
  expect("blocks.0.mlp.gelu: type is s8, expected s16", types({"blocks.0.mlp.gelu"}, "s8"));
  expect("blocks.1.mlp.fc1: type is s8, expected s16", types({"blocks.1.mlp.fc1"}, "s8"));
  // Codes that are left out have wide values in their place.
  for (const char* const reader : {"blocks.0.mlp.fc1", "blocks.1.mlp.fc2", "pooler"}) {
    const std::string codes = std::string(reader) == "pooler" ? "class_codes"
                              : std::string(reader) == "blocks.0.mlp.fc1"
                                  ? "blocks.0.mlp.codes"
                                  : "blocks.1.mlp.gelu.codes";
    expect("type is s16, expected s8", [&](SpoiltNetwork& network) {
      network.node(reader)["inputs"][0] = network.node(codes)["inputs"][0];
    });
  }
}

TEST(IntegerNetworkOfTexts, RefusesRowScalesWhereOthersHaveNone) {
  const TempDirectory directory;
  const std::string path = directory.path("n.safetensors");
  write_network(tiny_integer_text(directory, TinyText::bert("")), path);
  SpoiltNetwork network(path);
  network.document["tensors"]["codes"] = {{"type", "s8"}, {"shape", {"tokens", TinyText::kHidden}}};
  network.document["nodes"].push_back({{"name", "codes"},
                                       {"op", "quantise_rows"},
                                       {"inputs", {"blocks.0.mlp.gelu"}},
                                       {"outputs", {"codes"}},
                                       {"attributes", nlohmann::json::object()}});
  network.node("blocks.0.mlp.fc2")["inputs"][0] = "codes";
  expect_contains(input_error_of([&] { return load_integer_text(network.write(path)); }),
                  "whether rows have scales is not that of the block after it");
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

}  // namespace
}  // namespace systole::model
