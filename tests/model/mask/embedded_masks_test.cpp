#include <gtest/gtest.h>

#include <string>

#include "model/checkpoint/vit_checkpoint.h"
#include "model/mask/sparsify.h"
#include "support/paths.h"
#include "tests/model/vision.h"

/// The masks of the models that come with Systole, made again from the attention that is kept.
namespace systole::model {
namespace {

struct MaskCase {
  const char* model;
  double sparsity;
  std::size_t margin;
};

class EmbeddedMasks : public ::testing::TestWithParam<MaskCase> {};

TEST_P(EmbeddedMasks, AreThoseOfTheRule) {
  const auto& [model, sparsity, margin] = GetParam();
  const RankedMaps maps(Npy::open(source_path("traces/data/vit65_attention.npy")), margin);
  const double theta = find_theta(maps, sparsity, true);
  const std::string path = checkpoint_path(model);
  EXPECT_EQ(theta, std::stod(Safetensors::open(path).metadata().at("theta")));
  const AttentionMask mask = maps.mask(theta, true);
  std::size_t cell = 0;
  for (const FloatBlock& block : load_vit_checkpoint(path).blocks) {
    for (const std::uint8_t kept : block.keep) {
      ASSERT_EQ(mask.kept(cell), kept != 0) << cell;
      ++cell;
    }
  }
  EXPECT_EQ(cell, mask.shape().cells());
}

INSTANTIATE_TEST_SUITE_P(Models, EmbeddedMasks,
                         ::testing::Values(MaskCase{"vit65-sparse80", 0.80, 1},
                                           MaskCase{"vit65-sparse90", 0.90, 1},
                                           MaskCase{"vit65-sparse95", 0.95, 0}),
                         [](const auto& model) {
                           return model_test_name({model.param.model, model.index});
                         });

}  // namespace
}  // namespace systole::model
