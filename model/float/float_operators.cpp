#include "model/float/float_operators.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "base/error.h"
#include "base/printable.h"
#include "model/network/network_ops.h"
#include "model/network/network_shapes.h"

namespace systole::model {
namespace {

constexpr std::array<std::string_view, 8> kFloatOps = {
    "normalise", "convolution", "max_pool", "average_pool", "pad", "relu", "add", "divide"};

/// Where a window moves: of an operator with `stride` and `padding`.
struct FloatWindow {
  std::int64_t rows, cols, stride;
  hw::Padding padding;

  FloatWindow(const NetworkNode& node, std::int64_t height, std::int64_t width)
      : rows(height),
        cols(width),
        stride(node.attributes.value("stride", std::int64_t{1})),
        padding(padding_of(node)) {}
};

/// of(c, top, left) for every place of `result`.
template <typename Of>
void fill_places(FloatPicture& result, const FloatWindow& window, Of of) {
  auto to = result.values.begin();
  for (std::int64_t c = 0; c < result.channels; ++c) {
    for (std::int64_t y = 0; y < result.height; ++y) {
      for (std::int64_t x = 0; x < result.width; ++x) {
        *to++ =
            of(c, y * window.stride - window.padding.top, x * window.stride - window.padding.left);
      }
    }
  }
}

}  // namespace

bool is_convolutional(const NetworkDocument& document) {
  return !document.is_integer() &&
         std::any_of(document.nodes.begin(), document.nodes.end(),
                     [](const NetworkNode& node) { return is_picture_op(node.op->name); });
}

FloatOperators::FloatOperators(const NetworkFile& file) : file_(file) {
  const NetworkDocument& document = file.document();
  const std::string place = hw::printable(file.path());
  if (document.inputs.size() != 1 || document.outputs.size() != 1) {
    throw hw::InputError(fmt::format("{}: found {} inputs and {} outputs, expected one of each",
                                     place, document.inputs.size(), document.outputs.size()));
  }
  const std::string& input = document.inputs.front();
  const NetworkShape shape = file.shape_of(input);
  for (const NetworkNode& node : document.nodes) {
    if (std::find(kFloatOps.begin(), kFloatOps.end(), node.op->name) == kFloatOps.end()) {
      file.fail(node,
                fmt::format("op '{}': expected {}", node.op->name, fmt::join(kFloatOps, ", ")));
    }
    if (node.is("normalise") && node.inputs[0] == input) normalise_ = &node;
    if (node.is("normalise") != (node.inputs[0] == input)) {
      file.fail(node, "input 'x': expected a normalise, and it alone, of the network's picture");
    }
    for (const std::string& name : node.inputs) {
      if (file.constants().has(name)) constants_[name] = file.reals(name);
    }
  }
  if (normalise_ == nullptr || shape.size() != 3 || shape[1] != shape[2]) {
    throw hw::InputError(
        fmt::format("{}: input '{}': expected a square picture and a normalise "
                    "that reads it",
                    place, hw::printable(input)));
  }
  for (const char* const list : {"mean", "deviation"}) {
    if (normalise_->attributes.at(list).size() == static_cast<std::size_t>(shape[0])) continue;
    file.fail(*normalise_, fmt::format("attribute '{}': {} numbers, expected {}", list,
                                       normalise_->attributes.at(list).size(), shape[0]));
  }
}

PictureFormat FloatOperators::format() const {
  const NetworkShape picture = file_.shape_of(file_.document().inputs.front());
  const NetworkShape result = file_.shape_of(file_.document().outputs.front());
  PictureFormat format;
  format.channels = static_cast<std::uint32_t>(picture[0]);
  format.side = static_cast<std::uint32_t>(picture[1]);
  format.levels = normalise_->attributes.value("levels", kByteLevels);
  format.classes = static_cast<std::uint32_t>(result[0]);
  return format;
}

FloatPicture FloatOperators::empty_result(const NetworkNode& node) const {
  const NetworkShape shape = file_.shape_of(node.output);
  FloatPicture result{shape[0], shape[1], shape[2], {}};
  result.values.resize(static_cast<std::size_t>(shape[0] * shape[1] * shape[2]));
  return result;
}

FloatPicture FloatOperators::convolve(const NetworkNode& node, const FloatPicture& x) const {
  const std::vector<std::size_t>& shape = file_.constants().tensor(node.inputs[1]).shape;
  const std::vector<double>& weights = constants_.at(node.inputs[1]);
  const auto rows = static_cast<std::int64_t>(shape[2]), cols = static_cast<std::int64_t>(shape[3]);
  const auto ins = static_cast<std::int64_t>(shape[1]);
  const std::int64_t outs =
      static_cast<std::int64_t>(shape[0]) / node.attributes.value("groups", std::int64_t{1});
  FloatPicture result = empty_result(node);
  fill_places(result, FloatWindow(node, rows, cols), [&](auto o, auto top, auto left) {
    double sum =
        node.inputs.size() > 2 ? constants_.at(node.inputs[2])[static_cast<std::size_t>(o)] : 0.0;
    auto weight = weights.begin() + o * ins * rows * cols;
    for (std::int64_t c = o / outs * ins; c < (o / outs + 1) * ins; ++c) {
      for (std::int64_t y = top; y < top + rows; ++y) {
        for (std::int64_t px = left; px < left + cols; ++px) sum += *weight++ * x.at(c, y, px);
      }
    }
    return sum;
  });
  return result;
}

FloatPicture FloatOperators::compute(const NetworkNode& node,
                                     const std::map<std::string, FloatPicture>& values) const {
  const FloatPicture& x = values.at(node.inputs[0]);
  if (node.is("convolution")) return convolve(node, x);
  FloatPicture result = empty_result(node);
  if (node.is("normalise")) {
    const double rescale = node.attributes.at("rescale").get<double>();
    const auto mean = node.attributes.at("mean").get<std::vector<double>>();
    const auto deviation = node.attributes.at("deviation").get<std::vector<double>>();
    const std::size_t pixels = x.values.size() / mean.size();
    for (std::size_t i = 0; i < x.values.size(); ++i) {
      result.values[i] = (x.values[i] * rescale - mean[i / pixels]) / deviation[i / pixels];
    }
  } else if (node.is("relu")) {
    std::transform(x.values.begin(), x.values.end(), result.values.begin(),
                   [](double value) { return std::max(value, 0.0); });
  } else if (node.is("add")) {
    const FloatPicture& b = values.at(node.inputs[1]);
    std::transform(x.values.begin(), x.values.end(), b.values.begin(), result.values.begin(),
                   [](double left, double right) { return left + right; });
  } else if (node.is("divide")) {
    const FloatPicture& b = values.at(node.inputs[1]);
    std::transform(x.values.begin(), x.values.end(), b.values.begin(), result.values.begin(),
                   [](double left, double right) { return left / right; });
  } else if (node.is("pad")) {
    fill_places(result, FloatWindow(node, 1, 1),
                [&](auto c, auto y, auto px) { return x.at(c, y, px); });
  } else {
    const bool maximum = node.is("max_pool");
    const FloatWindow window(node, node.attributes.at("rows").get<std::int64_t>(),
                             node.attributes.at("cols").get<std::int64_t>());
    fill_places(result, window, [&](auto c, auto top, auto left) {
      double largest = std::numeric_limits<double>::lowest(), sum = 0.0;
      for (std::int64_t y = top; y < top + window.rows; ++y) {
        for (std::int64_t px = left; px < left + window.cols; ++px) {
          sum += x.at(c, y, px);
          const bool inside = y >= 0 && y < x.height && px >= 0 && px < x.width;
          if (inside) largest = std::max(largest, x.at(c, y, px));
        }
      }
      return maximum ? largest : sum / static_cast<double>(window.rows * window.cols);
    });
  }
  return result;
}

std::map<std::string, FloatPicture> FloatOperators::run(const Image& image) const {
  std::map<std::string, FloatPicture> values;
  values[file_.document().inputs.front()] = {static_cast<std::int64_t>(image.channels),
                                             static_cast<std::int64_t>(image.height),
                                             static_cast<std::int64_t>(image.width),
                                             {image.values.begin(), image.values.end()}};
  for (const NetworkNode& node : file_.document().nodes)
    values[node.output] = compute(node, values);
  return values;
}

}  // namespace systole::model
