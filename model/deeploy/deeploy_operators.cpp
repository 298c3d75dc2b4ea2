#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <utility>

#include "base/error.h"
#include "hw/function/deeploy.h"
#include "model/deeploy/deeploy_network.h"
#include "model/format/tensor_view.h"

namespace systole::model {
namespace {

namespace deeploy = hw::deeploy;
using Shape = std::vector<std::size_t>;

/// Sums and products stay below this, so that nothing overflows 64 bits.
constexpr double kMostSum = 4e18;
/// Of constants that are attributes: as of all values.
constexpr std::int64_t kMostAttribute = std::numeric_limits<std::int32_t>::max();

void require(bool holds, const std::string& what) {
  if (!holds) throw hw::InputError(what);
}

std::size_t count(const Shape& shape) {
  std::size_t elements = 1;
  for (const std::size_t size : shape) {
    require(size == 0 || elements <= kMostDeeployElements / size,
            fmt::format("more than {} elements", kMostDeeployElements));
    elements *= size;
  }
  return elements;
}

double largest(const IntegerTensor& tensor) {
  std::int64_t most = 0;
  for (const std::int64_t value : tensor.values) most = std::max(most, std::abs(value));
  return static_cast<double>(most);
}

/// The operands and attributes of a node.
class Operation {
 public:
  Operation(const DeeployNode& node, const std::vector<const IntegerTensor*>& operands)
      : node_(node), operands_(operands) {}

  [[nodiscard]] IntegerTensor run();

 private:
  [[nodiscard]] std::size_t operands() const { return operands_.size(); }
  [[nodiscard]] const IntegerTensor& in(std::size_t i) const {
    require(i < operands_.size(), fmt::format("{} inputs, expected {}", operands_.size(), i + 1));
    return *operands_[i];
  }

  [[nodiscard]] std::int64_t number(const char* key) const {
    const bool has = node_.attributes.is_object() && node_.attributes.contains(key) &&
                     node_.attributes[key].is_number_integer();
    require(has, fmt::format("attribute '{}': expected a whole number", key));
    const auto value = node_.attributes[key].get<std::int64_t>();
    require(value >= -kMostAttribute && value <= kMostAttribute,
            fmt::format("attribute '{}': beyond 32 bits", key));
    return value;
  }
  [[nodiscard]] std::int64_t positive(const char* key) const {
    const std::int64_t value = number(key);
    require(value > 0, fmt::format("attribute '{}': found {}, expected 1 or more", key, value));
    return value;
  }
  /// Of a divisor that is a power of two.
  [[nodiscard]] unsigned shift(const char* key) const {
    const std::int64_t value = positive(key);
    require((value & (value - 1)) == 0,
            fmt::format("attribute '{}': found {}, expected a power of two", key, value));
    return hw::bit_length(static_cast<std::uint64_t>(value)) - 1;
  }
  [[nodiscard]] std::vector<std::size_t> sizes(const char* key, std::size_t length) const {
    std::vector<std::size_t> sizes;
    const bool has = node_.attributes.is_object() && node_.attributes.contains(key) &&
                     node_.attributes[key].is_array();
    require(has, fmt::format("attribute '{}': expected a list", key));
    for (const auto& entry : node_.attributes[key]) {
      require(entry.is_number_unsigned() && entry.get<std::uint64_t>() < kMostDeeployElements,
              fmt::format("attribute '{}': expected whole numbers from 0", key));
      sizes.push_back(entry.get<std::size_t>());
    }
    require(sizes.size() == length,
            fmt::format("attribute '{}': {} numbers, expected {}", key, sizes.size(), length));
    return sizes;
  }
  /// An axis of a tensor with `rank` of them; negative ones count from the last.
  [[nodiscard]] std::size_t axis(std::int64_t value, std::size_t rank) const {
    const auto axes = static_cast<std::int64_t>(rank);
    require(value >= -axes && value < axes,
            fmt::format("axis {}, expected -{} to {}", value, axes, axes - 1));
    return static_cast<std::size_t>(value < 0 ? value + axes : value);
  }

  /// Row by row, along the last axis.
  template <typename Function>
  [[nodiscard]] IntegerTensor rows(Function function) const {
    IntegerTensor result = in(0);
    require(!result.shape.empty() && result.shape.back() != 0, "expected rows");
    const std::size_t n = result.shape.back();
    require(n <= kMostRow && largest(result) <= kMostOfRow, "rows that are too long or too large");
    for (std::size_t at = 0; at < result.values.size(); at += n) function(&result.values[at], n);
    return result;
  }
  template <typename Function>
  [[nodiscard]] IntegerTensor each(Function function) const {
    IntegerTensor result = in(0);
    for (std::int64_t& value : result.values) value = function(value);
    return result;
  }
  /// Pairs of elements; axes of one element are repeated.
  template <typename Function>
  [[nodiscard]] IntegerTensor pairs(Function function) const;
  /// Index of an element of `shape` in a tensor of shape `from`, whose axes of one element repeat.
  [[nodiscard]] static std::vector<std::size_t> steps(const Shape& from, const Shape& to);

  [[nodiscard]] IntegerTensor product(bool transposed, const IntegerTensor* bias) const;
  [[nodiscard]] IntegerTensor convolution() const;
  [[nodiscard]] IntegerTensor maximum() const;
  [[nodiscard]] IntegerTensor transposed() const;
  [[nodiscard]] IntegerTensor reshaped() const;
  [[nodiscard]] IntegerTensor joined() const;
  [[nodiscard]] IntegerTensor gathered() const;
  [[nodiscard]] IntegerTensor mean() const;
  [[nodiscard]] IntegerTensor requantised() const;
  [[nodiscard]] IntegerTensor normalised(bool centred) const;
  [[nodiscard]] IntegerTensor softmax() const;
  [[nodiscard]] IntegerTensor gelu() const;
  [[nodiscard]] IntegerTensor hardswish() const;
  [[nodiscard]] IntegerTensor divided() const;

  /// So long and so large may rows be that are summed in squares.
  static constexpr std::size_t kMostRow = std::size_t{1} << 14;
  static constexpr double kMostOfRow = 1 << 23;

  const DeeployNode& node_;
  const std::vector<const IntegerTensor*>& operands_;

 public:
  using Compute = std::function<IntegerTensor(const Operation&)>;
  static const std::vector<std::pair<std::string, Compute>>& table();
};

std::vector<std::size_t> Operation::steps(const Shape& from, const Shape& to) {
  require(from.size() <= to.size(), "shapes that do not go together");
  std::vector<std::size_t> steps(to.size(), 0);
  std::size_t step = 1;
  for (std::size_t i = from.size(); i-- > 0;) {
    const std::size_t axis = to.size() - from.size() + i;
    require(from[i] == to[axis] || from[i] == 1,
            fmt::format("shapes {} and {} do not go together", shape_text(from), shape_text(to)));
    if (from[i] != 1) steps[axis] = step;
    step *= from[i];
  }
  return steps;
}

template <typename Function>
IntegerTensor Operation::pairs(Function function) const {
  const IntegerTensor &a = in(0), &b = in(1);
  Shape shape = a.shape.size() < b.shape.size() ? b.shape : a.shape;
  for (const Shape* other : {&a.shape, &b.shape}) {
    for (std::size_t i = 0; i < other->size(); ++i) {
      std::size_t& size = shape[shape.size() - other->size() + i];
      size = std::max(size, (*other)[i]);
    }
  }
  const std::vector<std::size_t> a_steps = steps(a.shape, shape), b_steps = steps(b.shape, shape);
  IntegerTensor result{shape, std::vector<std::int64_t>(count(shape))};
  std::vector<std::size_t> at(shape.size(), 0);
  for (std::int64_t& value : result.values) {
    std::size_t ai = 0, bi = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      ai += at[i] * a_steps[i];
      bi += at[i] * b_steps[i];
    }
    value = function(a.values[ai], b.values[bi]);
    for (std::size_t i = shape.size(); i-- > 0 && ++at[i] == shape[i];) at[i] = 0;
  }
  return result;
}

IntegerTensor Operation::product(bool transposed, const IntegerTensor* bias) const {
  const IntegerTensor &a = in(0), &b = in(1);
  require(a.shape.size() >= 2 && b.shape.size() >= 2, "expected matrices");
  const std::size_t m = a.shape[a.shape.size() - 2], k = a.shape.back();
  const std::size_t rows = b.shape[b.shape.size() - 2], cols = b.shape.back();
  const std::size_t n = transposed ? rows : cols;
  require(k == (transposed ? cols : rows),
          fmt::format("{} times {}", shape_text(a.shape), shape_text(b.shape)));
  require(largest(a) * largest(b) * static_cast<double>(k) < kMostSum, "sums beyond 64 bits");
  const Shape a_outer(a.shape.begin(), a.shape.end() - 2);
  const Shape b_outer(b.shape.begin(), b.shape.end() - 2);
  require(b_outer.empty() || b_outer == a_outer, "another number of matrices");
  Shape shape = a_outer;
  shape.insert(shape.end(), {m, n});
  IntegerTensor c{shape, std::vector<std::int64_t>(count(shape), 0)};
  require(bias == nullptr || bias->values.size() == n, "another number of biases");
  for (std::size_t matrix = 0; matrix < count(a_outer); ++matrix) {
    const std::int64_t* const left = a.values.data() + matrix * m * k;
    const std::int64_t* const right = b.values.data() + (b_outer.empty() ? 0 : matrix * k * n);
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        std::int64_t sum = bias == nullptr ? 0 : bias->values[j];
        for (std::size_t p = 0; p < k; ++p) {
          sum += left[i * k + p] * right[transposed ? j * k + p : p * n + j];
        }
        c.values[(matrix * m + i) * n + j] = sum;
      }
    }
  }
  return c;
}

/// Pictures [1, channels, height, width].
IntegerTensor Operation::convolution() const {
  const IntegerTensor &x = in(0), &w = in(1);
  require(operands() == 2 && x.shape.size() == 4 && w.shape.size() == 4 && x.shape[0] == 1 &&
              number("group") == 1 && x.shape[1] == w.shape[1],
          "expected one picture, weights for its channels, no bias and one group");
  const Shape strides = sizes("strides", 2), pads = sizes("pads", 4);
  require(strides[0] != 0 && strides[1] != 0 && sizes("dilations", 2) == Shape{1, 1},
          "expected strides from 1 and no dilation");
  const std::size_t channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  const std::size_t rows = w.shape[2], cols = w.shape[3];
  require(height + pads[0] + pads[2] >= rows && width + pads[1] + pads[3] >= cols,
          "a window that does not fit");
  require(largest(x) * largest(w) * static_cast<double>(channels * rows * cols) < kMostSum,
          "sums beyond 64 bits");
  const Shape shape{1, w.shape[0], (height + pads[0] + pads[2] - rows) / strides[0] + 1,
                    (width + pads[1] + pads[3] - cols) / strides[1] + 1};
  IntegerTensor result{shape, {}};
  result.values.reserve(count(shape));
  for (std::size_t o = 0; o < shape[1]; ++o) {
    for (std::size_t y = 0; y < shape[2]; ++y) {
      for (std::size_t at = 0; at < shape[3]; ++at) {
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < rows; ++i) {
          const std::size_t py = y * strides[0] + i;
          if (py < pads[0] || py - pads[0] >= height) continue;
          for (std::size_t j = 0; j < cols; ++j) {
            const std::size_t px = at * strides[1] + j;
            if (px < pads[1] || px - pads[1] >= width) continue;
            for (std::size_t c = 0; c < channels; ++c) {
              sum += x.values[(c * height + py - pads[0]) * width + px - pads[1]] *
                     w.values[((o * channels + c) * rows + i) * cols + j];
            }
          }
        }
        result.values.push_back(sum);
      }
    }
  }
  return result;
}

IntegerTensor Operation::maximum() const {
  const IntegerTensor& x = in(0);
  const Shape kernel = sizes("kernel_shape", 2), strides = sizes("strides", 2);
  require(x.shape.size() == 4 && sizes("pads", 4) == Shape(4, 0) && strides[0] != 0 &&
              strides[1] != 0 && kernel[0] != 0 && kernel[1] != 0 && x.shape[2] >= kernel[0] &&
              x.shape[3] >= kernel[1],
          "expected pictures without padding that the window fits");
  const Shape shape{x.shape[0], x.shape[1], (x.shape[2] - kernel[0]) / strides[0] + 1,
                    (x.shape[3] - kernel[1]) / strides[1] + 1};
  IntegerTensor result{shape, {}};
  for (std::size_t plane = 0; plane < shape[0] * shape[1]; ++plane) {
    for (std::size_t y = 0; y < shape[2]; ++y) {
      for (std::size_t at = 0; at < shape[3]; ++at) {
        std::int64_t most = std::numeric_limits<std::int64_t>::min();
        for (std::size_t i = 0; i < kernel[0] * kernel[1]; ++i) {
          const std::size_t row = plane * x.shape[2] + y * strides[0] + i / kernel[1];
          most = std::max(most, x.values[row * x.shape[3] + at * strides[1] + i % kernel[1]]);
        }
        result.values.push_back(most);
      }
    }
  }
  return result;
}

IntegerTensor Operation::transposed() const {
  const IntegerTensor& x = in(0);
  const Shape order = sizes("perm", x.shape.size());
  Shape steps(x.shape.size()), sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) require(sorted[i] == i, "no order of the axes");
  std::size_t step = 1;
  for (std::size_t i = x.shape.size(); i-- > 0; step *= x.shape[i]) steps[i] = step;
  IntegerTensor result;
  for (const std::size_t from : order) result.shape.push_back(x.shape[from]);
  Shape at(order.size(), 0);
  for (std::size_t n = 0; n < x.values.size(); ++n) {
    std::size_t index = 0;
    for (std::size_t i = 0; i < order.size(); ++i) index += at[i] * steps[order[i]];
    result.values.push_back(x.values[index]);
    for (std::size_t i = order.size(); i-- > 0 && ++at[i] == result.shape[i];) at[i] = 0;
  }
  return result;
}

IntegerTensor Operation::reshaped() const {
  IntegerTensor result{{}, in(0).values};
  std::size_t known = 1;
  std::ptrdiff_t open = -1;
  for (const std::int64_t size : in(1).values) {
    require(size >= -1 && size <= static_cast<std::int64_t>(kMostDeeployElements),
            fmt::format("a size of {}", size));
    if (size < 0) open = static_cast<std::ptrdiff_t>(result.shape.size());
    const std::size_t kept =
        result.shape.size() < in(0).shape.size() ? in(0).shape[result.shape.size()] : 1;
    result.shape.push_back(size < 0 ? 1 : size == 0 ? kept : static_cast<std::size_t>(size));
    known = count(result.shape);
  }
  if (open >= 0 && known != 0) {
    result.shape[static_cast<std::size_t>(open)] = result.values.size() / known;
  }
  require(count(result.shape) == result.values.size(),
          fmt::format("{} as {}", shape_text(in(0).shape), shape_text(result.shape)));
  return result;
}

IntegerTensor Operation::joined() const {
  const std::size_t along = axis(number("axis"), in(0).shape.size());
  IntegerTensor result{in(0).shape, {}};
  result.shape[along] = 0;
  std::size_t outer = 1;
  for (std::size_t i = 0; i < along; ++i) outer *= in(0).shape[i];
  for (std::size_t i = 0; i < operands(); ++i) {
    Shape like = in(i).shape;
    require(like.size() == result.shape.size(), "another number of axes");
    result.shape[along] += like[along];
    like[along] = in(0).shape[along];
    require(like == in(0).shape, "shapes that differ in another axis");
  }
  for (std::size_t part = 0; part < outer; ++part) {
    for (std::size_t i = 0; i < operands(); ++i) {
      const std::size_t size = in(i).values.size() / outer;
      const auto from = in(i).values.begin() + static_cast<std::ptrdiff_t>(part * size);
      result.values.insert(result.values.end(), from, from + static_cast<std::ptrdiff_t>(size));
    }
  }
  return result;
}

/// One index, whose axis goes.
IntegerTensor Operation::gathered() const {
  const std::size_t along = axis(number("axis"), in(0).shape.size());
  require(in(1).values.size() == 1, "expected one index");
  const std::size_t size = in(0).shape[along];
  const std::int64_t index = in(1).values[0];
  require(index >= 0 && static_cast<std::size_t>(index) < size,
          fmt::format("index {} of {}", index, size));
  std::size_t inner = 1;
  for (std::size_t i = along + 1; i < in(0).shape.size(); ++i) inner *= in(0).shape[i];
  IntegerTensor result{in(0).shape, {}};
  result.shape.erase(result.shape.begin() + static_cast<std::ptrdiff_t>(along));
  for (std::size_t at = static_cast<std::size_t>(index) * inner; at < in(0).values.size();
       at += size * inner) {
    const auto from = in(0).values.begin() + static_cast<std::ptrdiff_t>(at);
    result.values.insert(result.values.end(), from, from + static_cast<std::ptrdiff_t>(inner));
  }
  return result;
}

IntegerTensor Operation::mean() const {
  const Shape axes = sizes("axes", 1);
  require(number("keepdims") == 0, "expected no 'keepdims'");
  const std::size_t along = axis(static_cast<std::int64_t>(axes[0]), in(0).shape.size());
  const std::size_t size = in(0).shape[along];
  std::size_t inner = 1;
  for (std::size_t i = along + 1; i < in(0).shape.size(); ++i) inner *= in(0).shape[i];
  IntegerTensor result{in(0).shape, {}};
  result.shape.erase(result.shape.begin() + static_cast<std::ptrdiff_t>(along));
  for (std::size_t first = 0; first < in(0).values.size(); first += size * inner) {
    for (std::size_t i = 0; i < inner; ++i) {
      std::int64_t sum = 0;
      for (std::size_t j = 0; j < size; ++j) sum += in(0).values[first + j * inner + i];
      result.values.push_back(deeploy::mean(sum, static_cast<std::int64_t>(size)));
    }
  }
  return result;
}

/// Factors and addends are one for all, or one for each channel of a picture.
IntegerTensor Operation::requantised() const {
  const std::int64_t is_signed = number("signed");
  const hw::IntRange range = deeploy::range_of_levels(positive("n_levels_out"), is_signed != 0);
  const unsigned by = shift("div");
  IntegerTensor result = in(0);
  const std::vector<std::size_t> mul = steps(in(1).shape, result.shape);
  const std::vector<std::size_t> add = steps(in(2).shape, result.shape);
  std::vector<std::size_t> at(result.shape.size(), 0);
  for (std::int64_t& value : result.values) {
    std::size_t m = 0, a = 0;
    for (std::size_t i = 0; i < at.size(); ++i) {
      m += at[i] * mul[i];
      a += at[i] * add[i];
    }
    value = deeploy::requantise(value, in(1).values[m], in(2).values[a], by, range);
    for (std::size_t i = at.size(); i-- > 0 && ++at[i] == result.shape[i];) at[i] = 0;
  }
  return result;
}

IntegerTensor Operation::normalised(bool centred) const {
  const unsigned by = shift("D");
  return rows([&](std::int64_t* x, std::size_t n) {
    require(in(1).values.size() == n && (!centred || in(2).values.size() == n),
            "weights of another length");
    if (centred) {
      deeploy::layer_norm_row(x, n, in(1).values.data(), in(2).values.data(), by);
    } else {
      deeploy::rms_norm_row(x, n, in(1).values.data(), by);
    }
  });
}

IntegerTensor Operation::softmax() const {
  const deeploy::SoftmaxPolynomial exp{number("coeffA"), number("coeffB"), number("coeffC"),
                                       positive("log2")};
  const std::int64_t levels = positive("n_levels");
  const double p = static_cast<double>(exp.log2) + std::abs(static_cast<double>(exp.b));
  const double e =
      std::abs(static_cast<double>(exp.a)) * p * p + std::abs(static_cast<double>(exp.c));
  require(e * static_cast<double>(levels) < 1e14, "coefficients that are too large");
  return rows([&](std::int64_t* x, std::size_t n) { deeploy::softmax_row(x, n, exp, levels); });
}

IntegerTensor Operation::gelu() const {
  const std::int64_t b = number("b"), one = number("one");
  require(b < 0 && b >= -(1 << 15) && std::abs(one) <= 1 << 29, "constants out of range");
  return each([&](std::int64_t x) { return deeploy::gelu(x, b, one); });
}

IntegerTensor Operation::hardswish() const {
  const std::int64_t sixth = number("one_over_six"), three = number("three");
  const std::int64_t six = positive("six");
  require(std::abs(static_cast<double>(sixth)) * static_cast<double>(six) < 1e9,
          "constants out of range");
  return each([&](std::int64_t x) { return deeploy::hardswish(x, sixth, three, six); });
}

/// By a constant: a factor that is rounded down once.
IntegerTensor Operation::divided() const {
  const std::int64_t delta = positive("Delta"), eta = positive("eta");
  const std::int64_t eps = number("eps"), y = positive("y");
  require(eps >= 0, "attribute 'eps': expected 0 or more");
  require(static_cast<double>(eta) * static_cast<double>(y) < kMostSum, "constants out of range");
  const std::int64_t factor = delta * eta / (eta * y + eps);
  require(static_cast<double>(factor) * largest(in(0)) < kMostSum, "a product beyond 64 bits");
  return each([&](std::int64_t x) { return x * factor; });
}

const std::vector<std::pair<std::string, Operation::Compute>>& Operation::table() {
  using Of = const Operation&;
  static const std::vector<std::pair<std::string, Compute>> table = {
      {"add", [](Of of) { return of.pairs([](std::int64_t a, std::int64_t b) { return a + b; }); }},
      {"concat", [](Of of) { return of.joined(); }},
      {"conv", [](Of of) { return of.convolution(); }},
      {"gather", [](Of of) { return of.gathered(); }},
      {"gemm",
       [](Of of) {
         require(of.number("transA") == 0 && of.number("alpha") == 1 && of.number("beta") == 1,
                 "expected no transposed A and factors of 1");
         return of.product(of.number("transB") != 0, &of.in(2));
       }},
      {"i_gelu", [](Of of) { return of.gelu(); }},
      {"i_hardswish", [](Of of) { return of.hardswish(); }},
      {"i_layer_norm", [](Of of) { return of.normalised(true); }},
      {"i_rms_norm", [](Of of) { return of.normalised(false); }},
      {"i_softmax", [](Of of) { return of.softmax(); }},
      {"integer_mean", [](Of of) { return of.mean(); }},
      {"ita_max",
       [](Of of) {
         const std::int64_t levels = of.positive("n_levels");
         return of.rows(
             [&](std::int64_t* x, std::size_t n) { deeploy::ita_max_row(x, n, levels); });
       }},
      {"ita_partial_max",
       [](Of of) {
         const std::int64_t levels = of.positive("n_levels");
         const auto width = static_cast<std::size_t>(of.positive("group_width"));
         return of.rows([&](std::int64_t* x, std::size_t n) {
           deeploy::ita_partial_max_row(x, n, width, levels);
         });
       }},
      {"mat_mul", [](Of of) { return of.product(false, nullptr); }},
      {"max_pool", [](Of of) { return of.maximum(); }},
      {"mul", [](Of of) { return of.pairs([](std::int64_t a, std::int64_t b) { return a * b; }); }},
      {"requant_shift", [](Of of) { return of.requantised(); }},
      {"reshape", [](Of of) { return of.reshaped(); }},
      {"transpose", [](Of of) { return of.transposed(); }},
      {"true_integer_div", [](Of of) { return of.divided(); }}};
  return table;
}

IntegerTensor Operation::run() {
  for (const auto& [name, compute] : table()) {
    if (name == node_.op) return compute(*this);
  }
  throw hw::InputError("op " + node_.op + " is not supported");
}

}  // namespace

const std::vector<std::string>& deeploy_operators() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& [name, compute] : Operation::table()) all.push_back(name);
    return all;
  }();
  return names;
}

IntegerTensor compute(const DeeployNode& node, const std::vector<const IntegerTensor*>& operands) {
  return Operation(node, operands).run();
}

}  // namespace systole::model
