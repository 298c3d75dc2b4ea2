#include "model/checkpoint/normalisation.h"

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "model/data/image.h"
#include "model/metadata/config_file.h"

namespace systole::model {
namespace {

// Far beyond what is published, and no product of them overflows.
constexpr double kLeast = 1e-6, kLargest = 1e6;

struct Normalisation {
  double rescale = 1.0 / 255.0;
  std::vector<double> mean, deviation;  ///< per channel
};

/// Nothing if the key is absent, or null as Hugging Face's files may have it.
const nlohmann::json* find(const ConfigFile& config, const char* key) {
  const auto found = config.values.find(key);
  return found == config.values.end() || found->is_null() ? nullptr : &*found;
}

bool flag(const ConfigFile& config, const char* key) {
  const nlohmann::json* const found = find(config, key);
  if (found == nullptr) return true;
  if (!found->is_boolean()) config.fail(key, "true or false");
  return found->get<bool>();
}

double number(const ConfigFile& config, const std::string& key, const nlohmann::json& found,
              double lowest) {
  const double value = found.is_number() ? found.get<double>() : lowest - 1;
  if (value < lowest || value > kLargest) {
    config.fail(key, fmt::format("a number from {} to {}", lowest, kLargest));
  }
  return value;
}

/// A number for each channel; `values` stay as they are if the key is absent.
void read_channels(const ConfigFile& config, const char* key, double lowest,
                   std::vector<double>& values) {
  const nlohmann::json* const found = find(config, key);
  if (found == nullptr) return;
  if (!found->is_array() || found->size() != values.size()) {
    config.fail(key, fmt::format("a list of {}, one for each channel of the patch embedding",
                                 values.size()));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = number(config, fmt::format("{}[{}]", key, i), (*found)[i], lowest);
  }
}

Normalisation read_normalisation(const std::optional<ConfigFile>& config, std::size_t channels) {
  constexpr double kUsual = 0.5;
  Normalisation result;
  result.mean.assign(channels, kUsual);
  result.deviation.assign(channels, kUsual);
  if (!config) return result;
  const nlohmann::json* const rescale = find(*config, "rescale_factor");
  if (rescale != nullptr) result.rescale = number(*config, "rescale_factor", *rescale, kLeast);
  if (!flag(*config, "do_rescale")) result.rescale = 1.0;
  read_channels(*config, "image_mean", -kLargest, result.mean);
  read_channels(*config, "image_std", kLeast, result.deviation);
  if (!flag(*config, "do_normalize")) {
    result.mean.assign(channels, 0.0);
    result.deviation.assign(channels, 1.0);
  }
  return result;
}

}  // namespace

void fold_normalisation(VitCheckpoint& checkpoint) {
  VitShape& shape = checkpoint.shape;
  const std::optional<ConfigFile> config = config_beside(checkpoint.path, kPreprocessorFile);
  if (!config && shape.channels == 1 && shape.levels == kDigitLevels) return;
  shape.levels = kByteLevels;
  const Normalisation normalisation = read_normalisation(config, shape.channels);
  // A byte is code + offset, for a gain of 1.
  const double offset = sample_code(kByteLevels).offset;
  FloatLinear& layer = checkpoint.patch_embed;
  const std::size_t plane = std::size_t{shape.patch} * shape.patch;
  for (std::size_t o = 0; o < layer.outputs; ++o) {
    for (std::size_t i = 0; i < layer.inputs; ++i) {
      const double deviation = normalisation.deviation[i / plane];
      const double centre = offset * normalisation.rescale - normalisation.mean[i / plane];
      double& weight = layer.weight[o * layer.inputs + i];
      layer.bias[o] += weight * centre / deviation;
      weight *= kInputSteps * normalisation.rescale / deviation;
    }
  }
}

}  // namespace systole::model
