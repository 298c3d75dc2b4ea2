#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/data/dataset.h"
#include "model/format/safetensors.h"
#include "model/graph/graph.h"
#include "model/graph/reference.h"
#include "model/metadata/vit_shape.h"
#include "support/paths.h"

/// The vision models that come with Systole, their pictures and their golden results.
namespace systole::model {

inline constexpr std::array<const char*, 3> kVisionModels = {"vit17", "vit65", "vit17-post"};

/// Fine-tuned with fixed attention masks; "random" ones are the shuffled masks of the same size.
inline constexpr std::array<const char*, 6> kSparseModels = {"vit65-sparse80", "vit65-sparse90",
                                                             "vit65-sparse95", "vit65-sparse90-ae",
                                                             "vit65-random90", "vit65-random95"};

inline std::string checkpoint_path(const std::string& name) {
  return source_path("traces/models/" + name + ".safetensors");
}

inline std::string integer_model_path(const std::string& name) {
  return source_path("traces/models/" + name + ".int8.safetensors");
}

/// Products by the fast kernels: the values do not differ.
inline constexpr ReferenceOptions kFast{true, false};

/// A model as part of a test's name.
inline std::string model_test_name(const ::testing::TestParamInfo<const char*>& model) {
  std::string name = model.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// `split` is "test" (360 pictures) or "calib" (256).
inline Dataset digits(const std::string& split) {
  return load_images(source_path("traces/data/digits.safetensors"), {}, split);
}

inline Safetensors vision_golden() {
  return Safetensors::open(source_path("tests/golden/vit_integer.safetensors"));
}

/// Integer logits of the first `count` pictures, one after the other.
std::vector<std::int32_t> integer_logits(const Graph& graph, const VitShape& shape,
                                         const Dataset& data, std::size_t count,
                                         ReferenceOptions options);

/// Fraction of the pictures whose largest logit is their label.
double integer_accuracy(const std::vector<std::int32_t>& logits, const Dataset& data);

}  // namespace systole::model
