#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/data/dataset.h"
#include "model/float/float_vit.h"

namespace systole::model {

/// Takes the largest magnitudes of rows x cols values into `maxima`, one of each column. `layer`:
/// of the network, for errors. Throws InputError if a value is not finite.
template <typename Real>
void take_column_maxima(const Real* values, std::size_t rows, std::size_t cols, std::size_t layer,
                        std::vector<double>& maxima) {
  maxima.resize(cols, 0.0);
  for (std::size_t i = 0; i < rows * cols; ++i) {
    if (!std::isfinite(values[i])) {
      throw hw::InputError("calibration: block " + std::to_string(layer) +
                           ": an activation is not finite; the weights are unusable");
    }
    maxima[i % cols] = std::max(maxima[i % cols], std::fabs(double{values[i]}));
  }
}

/// The largest magnitude of every channel at every site of a network.
class Calibration final : public ActivationObserver {
 public:
  /// Throws InputError if a value is not finite.
  void observe(Site site, std::size_t layer, const double* values, std::size_t rows,
               std::size_t cols) override;

  /// Per channel; throws std::out_of_range if the site was never seen.
  [[nodiscard]] const std::vector<double>& channels(Site site, std::size_t layer) const {
    return maxima_.at({site, layer});
  }
  /// Over all channels.
  [[nodiscard]] double largest(Site site, std::size_t layer = 0) const;
  /// Over `count` channels from `first`.
  [[nodiscard]] double largest(Site site, std::size_t layer, std::size_t first,
                               std::size_t count) const;

 private:
  std::map<std::pair<Site, std::size_t>, std::vector<double>> maxima_;
};

/// Runs all pictures through the network.
[[nodiscard]] Calibration calibrate(const FloatVit& vit, const Dataset& data);

}  // namespace systole::model
