#include "model/mask/sparsify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/printable.h"

namespace systole::model {
namespace {

/// How far a row's sum may be from 1: the maps are averages of rounded numbers.
constexpr double kSumTolerance = 1e-3;
/// Steps of theta per unit.
constexpr double kThetaSteps = 1U << 20U;

bool is_float(FileDtype dtype) {
  return dtype == FileDtype::kF16 || dtype == FileDtype::kF32 || dtype == FileDtype::kF64;
}

/// What is wrong with a row of attention; empty if nothing is.
std::string row_problem(const std::vector<double>& attention) {
  for (std::size_t key = 0; key < attention.size(); ++key) {
    if (!std::isfinite(attention[key]) || attention[key] < 0.0) {
      return fmt::format("key {}: attention is {}, expected a number from 0 to 1", key,
                         attention[key]);
    }
  }
  const double sum = std::accumulate(attention.begin(), attention.end(), 0.0);
  if (std::fabs(sum - 1.0) <= kSumTolerance) return "";
  return fmt::format("attention sums to {:.6g}, expected 1 within {}", sum, kSumTolerance);
}

void require_theta(double theta) {
  if (!(theta > 0.0 && theta <= kMaxTheta)) throw std::invalid_argument("theta is out of range");
}

/// The theta at which `kept` of `cells` cells come closest to a sparsity; `of` is what the maps are
/// of, for errors.
template <typename Kept>
double nearest_theta(const RankedMaps& maps, double sparsity, std::size_t cells,
                     const std::string& of, const Kept& kept) {
  if (!(sparsity >= 0.0 && sparsity < 1.0)) {
    throw hw::InputError(fmt::format("sparsity: found {}, expected 0 to less than 1", sparsity));
  }
  const auto sparsity_at = [&](std::uint32_t step) {
    return 1.0 - static_cast<double>(kept(step / kThetaSteps)) / static_cast<double>(cells);
  };
  std::uint32_t sparser = 1, denser = static_cast<std::uint32_t>(kMaxTheta * kThetaSteps);
  if (sparsity_at(sparser) < sparsity) {
    throw hw::InputError(
        fmt::format("{}: {}sparsity {}: the sparsest mask by theta and margin {} has {:.6f}, "
                    "expected at most that",
                    hw::printable(maps.path()), of, sparsity, maps.margin(), sparsity_at(sparser)));
  }
  // The sparsity falls as theta grows: at `sparser` it is at least the wanted one.
  while (denser - sparser > 1) {
    const std::uint32_t middle = sparser + (denser - sparser) / 2;
    (sparsity_at(middle) >= sparsity ? sparser : denser) = middle;
  }
  const bool keep_more = sparsity - sparsity_at(denser) < sparsity_at(sparser) - sparsity;
  return (keep_more ? denser : sparser) / kThetaSteps;
}

}  // namespace

RankedMaps::RankedMaps(const Npy& array, std::size_t margin)
    : shape_(attention_shape(array)), path_(array.path()), margin_(margin) {
  if (!is_float(array.dtype())) {
    throw hw::InputError(fmt::format("{}: elements are {}, expected attention as F16, F32 or F64",
                                     hw::printable(path_), dtype_name(array.dtype())));
  }
  for (std::size_t row = 0; row < rows(); ++row) {
    take_row(row, array.numbers(row * shape_.keys, shape_.keys));
  }
}

RankedMaps::RankedMaps(const AttentionShape& shape, const std::vector<double>& attention,
                       std::string name, std::size_t margin)
    : shape_(shape), path_(std::move(name)), margin_(margin) {
  if (attention.size() != shape_.cells()) {
    throw std::invalid_argument("RankedMaps: another number of cells than the shape has");
  }
  for (std::size_t row = 0; row < rows(); ++row) {
    const auto begin = attention.begin() + static_cast<std::ptrdiff_t>(row * shape_.keys);
    take_row(row, {begin, begin + static_cast<std::ptrdiff_t>(shape_.keys)});
  }
}

void RankedMaps::take_row(std::size_t row, const std::vector<double>& attention) {
  const std::string problem = row_problem(attention);
  if (!problem.empty()) {
    throw hw::InputError(
        fmt::format("{}: {}: {}", hw::printable(path_), row_text(shape_, row), problem));
  }
  if (row == 0) {
    order_.resize(shape_.cells());
    sums_.resize(shape_.cells());
    cls_rank_.resize(rows());
  }
  rank(row, attention);
}

void RankedMaps::rank(std::size_t row, const std::vector<double>& attention) {
  std::uint16_t* const order = order_.data() + row * shape_.keys;
  std::iota(order, order + shape_.keys, std::uint16_t{0});
  std::sort(order, order + shape_.keys, [&](std::uint16_t a, std::uint16_t b) {
    return attention[a] != attention[b] ? attention[a] > attention[b] : a < b;
  });
  double sum = 0.0;
  for (std::size_t i = 0; i < shape_.keys; ++i) {
    sum += attention[order[i]];
    sums_[row * shape_.keys + i] = sum;
  }
  cls_rank_[row] = static_cast<std::uint16_t>(std::find(order, order + shape_.keys, 0) - order);
}

std::size_t RankedMaps::row_kept(std::size_t row, double theta) const {
  const double* const begin = sums_.data() + row * shape_.keys;
  const double* const end = begin + shape_.keys;
  // Up to the entry that reaches theta, and the margin after it.
  const auto reaching = static_cast<std::size_t>(std::lower_bound(begin, end, theta) - begin);
  return std::min(reaching + 1 + margin_, shape_.keys);
}

AttentionMask RankedMaps::mask(double theta, bool cls) const {
  return mask(std::vector<double>(heads(), theta), cls);
}

AttentionMask RankedMaps::mask(const std::vector<double>& thetas, bool cls) const {
  if (thetas.size() != heads()) throw std::invalid_argument("a theta for each head is expected");
  for (const double theta : thetas) require_theta(theta);
  AttentionMask mask(shape_);
  for (std::size_t row = 0; row < rows(); ++row) {
    const std::size_t first = row * shape_.keys;
    const bool whole = cls && row % shape_.queries == 0;
    const std::size_t count = whole ? shape_.keys : row_kept(row, thetas[row / shape_.queries]);
    for (std::size_t i = 0; i < count; ++i) mask.keep(first + order_[first + i]);
    if (cls) mask.keep(first);
  }
  return mask;
}

std::size_t RankedMaps::kept_count(double theta, bool cls) const {
  std::size_t kept = 0;
  for (std::size_t head = 0; head < heads(); ++head) kept += kept_count(theta, cls, head);
  return kept;
}

std::size_t RankedMaps::kept_count(double theta, bool cls, std::size_t head) const {
  require_theta(theta);
  std::size_t kept = 0;
  for (std::size_t row = head * shape_.queries; row < (head + 1) * shape_.queries; ++row) {
    const bool whole = cls && row % shape_.queries == 0;
    const std::size_t count = whole ? shape_.keys : row_kept(row, theta);
    kept += count + (cls && cls_rank_[row] >= count ? 1 : 0);
  }
  return kept;
}

double find_theta(const RankedMaps& maps, double sparsity, bool cls) {
  return nearest_theta(maps, sparsity, maps.shape().cells(), "",
                       [&](double theta) { return maps.kept_count(theta, cls); });
}

std::vector<double> find_head_thetas(const RankedMaps& maps, double sparsity, bool cls) {
  const AttentionShape& shape = maps.shape();
  std::vector<double> thetas;
  for (std::size_t head = 0; head < maps.heads(); ++head) {
    const std::string of =
        fmt::format("layer {}, head {}: ", head / shape.heads, head % shape.heads);
    thetas.push_back(nearest_theta(maps, sparsity, shape.head_cells(), of, [&](double theta) {
      return maps.kept_count(theta, cls, head);
    }));
  }
  return thetas;
}

}  // namespace systole::model
