#include "model/quantise/calibration.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"

namespace systole::model {

void Calibration::observe(Site site, std::size_t layer, const double* values, std::size_t rows,
                          std::size_t cols) {
  take_column_maxima(values, rows, cols, layer, maxima_[{site, layer}]);
}

double Calibration::largest(Site site, std::size_t layer) const {
  return largest(site, layer, 0, channels(site, layer).size());
}

double Calibration::largest(Site site, std::size_t layer, std::size_t first,
                            std::size_t count) const {
  const auto begin = channels(site, layer).begin() + static_cast<std::ptrdiff_t>(first);
  return *std::max_element(begin, begin + static_cast<std::ptrdiff_t>(count));
}

Calibration calibrate(const FloatVit& vit, const Dataset& data) {
  Calibration calibration;
  for (std::size_t i = 0; i < data.count; ++i) {
    static_cast<void>(vit.logits(patches_of(data, i, vit.shape()), &calibration));
  }
  return calibration;
}

}  // namespace systole::model
