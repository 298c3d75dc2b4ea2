#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/data/image.h"
#include "model/network/network_document.h"

namespace systole::model {

/// A picture of real numbers, plane after plane.
struct FloatPicture {
  std::int64_t channels = 0, height = 0, width = 0;
  std::vector<double> values;

  /// 0 outside of the picture.
  [[nodiscard]] double at(std::int64_t c, std::int64_t y, std::int64_t x) const {
    const bool inside = y >= 0 && y < height && x >= 0 && x < width;
    return inside ? values[static_cast<std::size_t>((c * height + y) * width + x)] : 0.0;
  }
};

/// A convolutional network of real numbers: of `normalise`, `convolution`, `max_pool`,
/// `average_pool`, `pad`, `relu` and `add`, from one picture to one result.
class FloatOperators {
 public:
  /// `file` outlives this object. Throws InputError that names the node for another operator,
  /// another input than a square picture of u8, and several results.
  explicit FloatOperators(const NetworkFile& file);

  [[nodiscard]] const NetworkFile& file() const { return file_; }
  /// What the network reads: levels as its `normalise` says, a class for each value of the result.
  [[nodiscard]] PictureFormat format() const;
  /// The node that normalises the picture, which every such network has.
  [[nodiscard]] const NetworkNode& normalise() const { return *normalise_; }

  /// The result of every node, by its name. `image` has samples 0 to levels - 1.
  [[nodiscard]] std::map<std::string, FloatPicture> run(const Image& image) const;

 private:
  [[nodiscard]] FloatPicture compute(const NetworkNode& node,
                                     const std::map<std::string, FloatPicture>& values) const;
  [[nodiscard]] FloatPicture convolve(const NetworkNode& node, const FloatPicture& x) const;
  [[nodiscard]] FloatPicture empty_result(const NetworkNode& node) const;

  const NetworkFile& file_;
  const NetworkNode* normalise_ = nullptr;
  std::map<std::string, std::vector<double>> constants_;
};

/// Whether a network file holds such a network: real numbers, and one of its operators on pictures.
[[nodiscard]] bool is_convolutional(const NetworkDocument& document);

}  // namespace systole::model
