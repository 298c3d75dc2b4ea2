#pragma once

#include <string>

#include "model/data/dataset.h"
#include "model/float/float_operators.h"
#include "model/network/network_writer.h"
#include "model/quantise/quantiser_options.h"

namespace systole::model {

/// A convolutional network of integers, by post-training quantisation (model/quantise/quantiser.h):
/// every activation has 8 bits and the scale of its calibrated maximum / 127; a value that only a
/// ReLU reads has that of the ReLU's result. Sums are made in 16 bits with the stream's headroom
/// and then rounded to 8. The network's result, if a convolution gives it, has 16 bits' worth of
/// scale in 32.
///
/// Throws InputError, with node and quantity, for what the datapath cannot represent, options that
/// are of other networks, and an empty calibration set.
struct QuantisedOperators {
  NetworkWriter writer;
  std::string output;
};
[[nodiscard]] QuantisedOperators quantise(const FloatOperators& network, const Dataset& calibration,
                                          const std::string& name,
                                          const QuantiserOptions& options = {});

}  // namespace systole::model
