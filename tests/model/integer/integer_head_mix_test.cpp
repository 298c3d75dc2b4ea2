#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <stdexcept>

#include "model/build/encoder_graph.h"
#include "model/float/float_vit.h"
#include "model/format/safetensors.h"
#include "model/graph/graph_builder.h"
#include "model/graph/graph_check.h"
#include "model/graph/reference.h"
#include "model/integer/head_mix.h"
#include "model/integer/integer_model.h"
#include "model/quantise/quantiser.h"
#include "tests/model/tiny_pictures.h"
#include "tests/model/tiny_vit.h"
#include "tests/support/input_error.h"
#include "tests/support/temp_directory.h"

namespace systole::model {
namespace {

TEST(AcrossHeads, IsTheKroneckerProductWithTheIdentity) {
  IntegerLinear coefficients;
  coefficients.inputs = 3;
  coefficients.outputs = 2;
  coefficients.weight = {1, 2, 3, -4, -5, -6};
  coefficients.bias = {70, -80};
  coefficients.factor = {{9, 1}, {10, 2}};
  const IntegerLinear layer = across_heads(coefficients, 4);
  ASSERT_EQ(layer.inputs, 12U);
  ASSERT_EQ(layer.outputs, 8U);
  ASSERT_EQ(layer.weight.size(), 96U);
  for (std::size_t a = 0; a < 2; ++a) {
    for (std::size_t f = 0; f < 4; ++f) {
      EXPECT_EQ(layer.bias[a * 4 + f], coefficients.bias[a]);
      EXPECT_EQ(layer.factor[a * 4 + f], coefficients.factor[a]);
      for (std::size_t h = 0; h < 3; ++h) {
        for (std::size_t g = 0; g < 4; ++g) {
          EXPECT_EQ(layer.weight[(a * 4 + f) * 12 + h * 4 + g],
                    f == g ? coefficients.weight[a * 3 + h] : 0);
        }
      }
    }
  }
}

/// A tiny network with an auto-encoder from 2 heads of 4 features to 1.
class LinkedVit : public ::testing::Test {
 protected:
  LinkedVit() { tiny_.add_auto_encoder(); }

  VitCheckpoint checkpoint() {
    return load_vit_checkpoint(tiny_.write(directory_.path("tiny.safetensors")));
  }
  IntegerVit integer(bool fold) {
    QuantiserOptions options;
    options.fold_encoders = fold;
    return quantise(checkpoint(), tiny_pictures(), options);
  }
  void expect_error(const std::string& part) {
    const std::string text = input_error_of([&] { checkpoint(); });
    EXPECT_EQ(text.find(directory_.path("tiny.safetensors") + ": "), 0U) << text;
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }

  TempDirectory directory_;
  TinyVit tiny_;
};

TEST_F(LinkedVit, ReadsTheCoefficients) {
  tiny_.set("blocks.0.attn.encoder_k.weight", 1, 0.25F);
  tiny_.set("blocks.0.attn.decoder_q.bias", 1, -0.5F);
  const VitCheckpoint read = checkpoint();
  EXPECT_EQ(read.shape.encoder.latent_heads, 1U);
  EXPECT_EQ(read.blocks[0].key_link.encoder.weight[1], 0.25);
  EXPECT_EQ(read.blocks[0].query_link.decoder.bias[1], -0.5);
  EXPECT_EQ(read.blocks[0].query_link.encoder.inputs, 2U);
  EXPECT_EQ(read.blocks[0].query_link.encoder.outputs, 1U);
}

TEST_F(LinkedVit, RefusesCheckpointsThatContradictThemselves) {
  tiny_.metadata["ae"] = "2";
  expect_error("metadata 'ae': 2, expected 0 to 1");
  tiny_.metadata["ae"] = "0";
  expect_error("'blocks.0.attn.decoder_k.bias': not part of the network");
  tiny_.metadata["ae"] = "1";
  tiny_.tensor("blocks.0.attn.encoder_q.weight").shape = {2, 1};
  expect_error("'blocks.0.attn.encoder_q.weight': shape is [2, 1], expected [1, 2]");
  tiny_.tensor("blocks.0.attn.encoder_q.weight").shape = {1, 2};
  tiny_.set("blocks.0.attn.encoder_q.bias", 0, std::numeric_limits<float>::infinity());
  expect_error("tensor 'blocks.0.attn.encoder_q.bias': element 0 is not finite");
  tiny_.set("blocks.0.attn.encoder_q.bias", 0, 0.0F);
  tiny_.remove("blocks.0.attn.decoder_k.bias");
  expect_error("'blocks.0.attn.decoder_k.bias': missing");
  tiny_.remove("blocks.0.attn.decoder_q.weight");
  expect_error("metadata 'ae': 1, but tensor 'blocks.0.attn.decoder_q.weight' is missing");
}

TEST_F(LinkedVit, OneHeadHasNothingToCompress) {
  tiny_.metadata["h"] = "1";
  expect_error("metadata 'ae': 1, expected 0 to 0");
}

/// Keeps the last picture's values at every site.
class Recorder final : public ActivationObserver {
 public:
  void observe(Site site, std::size_t, const double* values, std::size_t rows,
               std::size_t cols) override {
    at[site].assign(values, values + rows * cols);
  }
  std::map<Site, std::vector<double>> at;
};

TEST_F(LinkedVit, EncodesAndDecodesEveryFeatureAcrossHeads) {
  const FloatVit vit(checkpoint());
  Recorder seen;
  static_cast<void>(vit.logits(patches_of(tiny_pictures(), 1, vit.shape()), &seen));
  const FloatBlock block = checkpoint().blocks[0];
  const auto check = [&](const FloatLink& link, std::size_t first, Site latent, Site decoded) {
    ASSERT_EQ(seen.at[latent].size(), 5U * 4U);
    ASSERT_EQ(seen.at[decoded].size(), 5U * 8U);
    for (std::size_t t = 0; t < 5; ++t) {
      for (std::size_t f = 0; f < 4; ++f) {
        double z = link.encoder.bias[0];
        for (std::size_t h = 0; h < 2; ++h) {
          z += link.encoder.weight[h] * seen.at[Site::kQkv][t * 24 + first + h * 4 + f];
        }
        EXPECT_NEAR(seen.at[latent][t * 4 + f], z, 1e-12);
        for (std::size_t h = 0; h < 2; ++h) {
          EXPECT_NEAR(seen.at[decoded][t * 8 + h * 4 + f],
                      link.decoder.weight[h] * z + link.decoder.bias[h], 1e-12);
        }
      }
    }
  };
  check(block.query_link, 0, Site::kLatentQuery, Site::kDecodedQuery);
  check(block.key_link, 8, Site::kLatentKey, Site::kDecodedKey);
}

TEST_F(LinkedVit, FoldingTheEncoderPreservesTheFunction) {
  const FloatVit plain(checkpoint());
  const VitCheckpoint folded_checkpoint = fold_encoders(checkpoint());
  EXPECT_EQ(folded_checkpoint.blocks[0].qkv.outputs, 2U * 4U + 8U);
  const FloatVit folded(folded_checkpoint);
  const Dataset data = tiny_pictures();
  for (std::size_t i = 0; i < data.count; ++i) {
    const std::vector<std::int32_t> patches = patches_of(data, i, plain.shape());
    Recorder plain_sites;
    Recorder folded_sites;
    const std::vector<double> expected = plain.logits(patches, &plain_sites);
    const std::vector<double> found = folded.logits(patches, &folded_sites);
    for (std::size_t c = 0; c < expected.size(); ++c) EXPECT_NEAR(found[c], expected[c], 1e-9);
    for (const Site site : {Site::kLatentQuery, Site::kDecodedKey, Site::kContext}) {
      ASSERT_EQ(folded_sites.at[site].size(), plain_sites.at[site].size());
      for (std::size_t v = 0; v < plain_sites.at[site].size(); ++v) {
        EXPECT_NEAR(folded_sites.at[site][v], plain_sites.at[site][v], 1e-9);
      }
    }
  }
}

TEST_F(LinkedVit, FoldingNeedsAnAutoEncoder) {
  TinyVit plain;
  const std::string path = plain.write(directory_.path("plain.safetensors"));
  QuantiserOptions options;
  options.fold_encoders = true;
  EXPECT_EQ(
      input_error_of([&] { return quantise(load_vit_checkpoint(path), tiny_pictures(), options); }),
      path + ": folding the encoder: the attention has no auto-encoder");
}

/// y = clamp((W x + bias) * factor) of one feature across heads.
std::int32_t apply(const IntegerLinear& layer, std::size_t output,
                   const std::vector<std::int32_t>& x) {
  std::int64_t sum = layer.bias[output];
  for (std::size_t i = 0; i < x.size(); ++i) sum += layer.weight[output * x.size() + i] * x[i];
  return static_cast<std::int32_t>(
      hw::requantise(sum, layer.factor[output], hw::Rounding::kHalfUp, hw::symmetric_range(8)));
}

TEST_F(LinkedVit, GraphComputesTheCompactCoefficients) {
  const IntegerVit vit = integer(false);
  const Graph graph = make_vit_graph(vit);
  check_graph(graph);
  Reference reference(graph);
  reference.set_input("patches", patches_of(tiny_pictures(), 3, vit.shape));
  reference.run();
  const std::vector<std::int32_t> qkv = reference.values("blocks.0.attn.qkv.requantise");
  const auto check = [&](const IntegerHeadMix& link, const std::string& operand,
                         std::size_t first) {
    const std::string prefix = "blocks.0.attn.";
    const auto latent = reference.values(prefix + "encoder_" + operand + ".requantise");
    const auto decoded = reference.values(prefix + "decoder_" + operand + ".requantise");
    for (std::size_t t = 0; t < 5; ++t) {
      for (std::size_t f = 0; f < 4; ++f) {
        const std::int32_t z =
            apply(link.encoder, 0, {qkv[t * 24 + first + f], qkv[t * 24 + first + 4 + f]});
        EXPECT_EQ(latent[t * 4 + f], z);
        for (std::size_t h = 0; h < 2; ++h) {
          EXPECT_EQ(decoded[t * 8 + h * 4 + f], apply(link.decoder, h, {z}));
        }
      }
    }
  };
  check(vit.encoder.blocks[0].query_link, "q", 0);
  check(vit.encoder.blocks[0].key_link, "k", 8);
}

TEST_F(LinkedVit, FoldedGraphProjectsToTheLatentHeads) {
  const IntegerVit vit = integer(true);
  const Graph graph = make_vit_graph(vit);
  check_graph(graph);
  EXPECT_EQ(graph.tensors[find_tensor(graph, "blocks.0.attn.qkv.weight")].cols, 16U);
  EXPECT_EQ(graph.tensors[find_tensor(graph, "blocks.0.attn.decoder_q.weight")].rows, 4U);
  EXPECT_THROW(static_cast<void>(find_tensor(graph, "blocks.0.attn.encoder_q.weight")),
               std::out_of_range);
  EXPECT_EQ(vit.encoder.blocks[0].query_link.latent_scale, vit.encoder.blocks[0].scales.query);
  Reference reference(graph);
  reference.set_input("patches", patches_of(tiny_pictures(), 3, vit.shape));
  EXPECT_NO_THROW(reference.run());
}

TEST_F(LinkedVit, IntegerModelsSurviveARoundTrip) {
  for (const bool fold : {false, true}) {
    const IntegerVit vit = integer(fold);
    const std::string path = directory_.path("tiny.int8.safetensors");
    save_integer_vit(vit, path);
    const IntegerVit again = load_integer_vit(path);
    EXPECT_EQ(again.encoder.folded_encoders, fold);
    EXPECT_EQ(again.encoder.blocks[0].query_link.encoder.outputs, fold ? 0U : 1U);
    EXPECT_EQ(again.encoder.blocks[0].key_link.decoder.weight,
              vit.encoder.blocks[0].key_link.decoder.weight);
    const std::string copy = directory_.path("copy.safetensors");
    save_integer_vit(again, copy);
    EXPECT_EQ(read_file(copy), read_file(path));
  }
}

TEST_F(LinkedVit, HostileIntegerModels) {
  const std::string path = directory_.path("tiny.int8.safetensors");
  const auto error = [&](bool fold, auto spoil) {
    IntegerVit vit = integer(fold);
    spoil(vit);
    save_integer_vit(vit, path);
    const std::string text = input_error_of([&] { return load_integer_vit(path); });
    EXPECT_EQ(text.find(path + ": "), 0U) << text;
    return text.substr(path.size());
  };
  const auto link = [](IntegerVit& vit) -> IntegerHeadMix& {
    return vit.encoder.blocks[0].query_link;
  };
  EXPECT_EQ(error(false, [&](IntegerVit& vit) { link(vit).encoder.weight.edit()[1] = -128; }),
            ": blocks.0.attn.encoder_q.weight: -128, expected -127 to 127");
  EXPECT_EQ(error(true, [&](IntegerVit& vit) { link(vit).decoder.factor[0].multiplier = -1; }),
            ": blocks.0.attn.decoder_q.multiplier: -1, expected 0 to 65535");
  EXPECT_EQ(error(false, [&](IntegerVit& vit) { link(vit).latent_scale = 0; }),
            ": blocks.0.attn.encoder_q.scale: expected a positive number");
  EXPECT_EQ(error(true, [&](IntegerVit& vit) { link(vit).scale = -1; }),
            ": blocks.0.attn.decoder_q.scale: expected a positive number");
}

TEST_F(LinkedVit, MetadataThatLieAboutFolding) {
  const std::string path = directory_.path("tiny.int8.safetensors");
  const auto error = [&](const IntegerVit& vit) {
    save_integer_vit(vit, path);
    std::vector<TensorData> tensors;
    std::map<std::string, std::string> metadata;
    {
      const Safetensors file = Safetensors::open(path);
      metadata = file.metadata();
      for (const std::string& name : file.names()) {
        const TensorView& view = file.tensor(name);
        tensors.push_back({name, view.dtype, view.shape, {view.data, view.data + view.bytes}});
      }
    }
    metadata["ae_folded"] = "1";
    write_safetensors(path, tensors, metadata);
    return input_error_of([&] { return load_integer_vit(path); });
  };
  EXPECT_NE(error(integer(false)).find("expected [16, 8]"), std::string::npos);
  const TinyVit plain;
  const VitCheckpoint without =
      load_vit_checkpoint(plain.write(directory_.path("plain.safetensors")));
  EXPECT_EQ(error(quantise(without, tiny_pictures())),
            path + ": metadata 'ae_folded': 1, expected 0 to 0");
}

}  // namespace
}  // namespace systole::model
