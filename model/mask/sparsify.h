#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/format/npy.h"
#include "model/mask/attention_mask.h"

namespace systole::model {

/// From this theta on every cell is kept. Up to 1 it is a share of a row's attention.
inline constexpr double kMaxTheta = 2.0;

/// Entries of a row that the authors of ViTCoD keep beyond those that reach theta.
inline constexpr std::size_t kPublishedMargin = 1;

/// Average post-softmax attention maps, every row ranked by attention: what every mask of them, for
/// any theta, is read from.
///
/// The rule (ViTCoD, HPCA 2023, as its authors apply it): in each row take the largest entries
/// until their sum reaches theta, and `margin` more. The sums are 64-bit floats, added from the
/// largest entry down; of equal entries that of the lower key goes first. So the mask depends on
/// nothing but the maps, theta and margin. A CLS token, if the model has one (query 0 and key 0),
/// can be kept as a whole.
class RankedMaps {
 public:
  /// Reads an array of floats [layers, heads, queries, keys]. Throws InputError for another type or
  /// shape, for attention that is not a number, infinite or negative, and for a row whose sum is
  /// not 1 within 1e-3.
  explicit RankedMaps(const Npy& array, std::size_t margin = kPublishedMargin);
  /// The same of numbers [layers, heads, queries, keys]; `name` is what errors say. Throws
  /// std::invalid_argument for another number of them.
  RankedMaps(const AttentionShape& shape, const std::vector<double>& attention, std::string name,
             std::size_t margin = kPublishedMargin);

  [[nodiscard]] const AttentionShape& shape() const { return shape_; }
  [[nodiscard]] std::size_t margin() const { return margin_; }
  /// Name of the file, for errors.
  [[nodiscard]] const std::string& path() const { return path_; }

  /// The mask for theta, in 0 (excluded) to kMaxTheta; std::invalid_argument if it is not. With
  /// `cls`, row 0 and column 0 of every head are kept.
  [[nodiscard]] AttentionMask mask(double theta, bool cls) const;
  /// The same with a theta for each head, layer by layer; std::invalid_argument also for another
  /// number of them.
  [[nodiscard]] AttentionMask mask(const std::vector<double>& thetas, bool cls) const;
  /// The number of cells which that mask keeps, in all heads or in one of layers x heads.
  [[nodiscard]] std::size_t kept_count(double theta, bool cls) const;
  [[nodiscard]] std::size_t kept_count(double theta, bool cls, std::size_t head) const;

  [[nodiscard]] std::size_t heads() const { return shape_.layers * shape_.heads; }

 private:
  [[nodiscard]] std::size_t rows() const { return heads() * shape_.queries; }
  [[nodiscard]] std::size_t row_kept(std::size_t row, double theta) const;
  void take_row(std::size_t row, const std::vector<double>& attention);
  void rank(std::size_t row, const std::vector<double>& attention);

  AttentionShape shape_;
  std::string path_;
  std::size_t margin_;
  std::vector<std::uint16_t> order_;     ///< [rows][keys] keys by falling attention
  std::vector<double> sums_;             ///< [rows][keys] attention of that key and those before it
  std::vector<std::uint16_t> cls_rank_;  ///< [rows] place of key 0 in that order
};

/// The theta whose mask comes closest to pruning the fraction `sparsity` of all cells, to 2^-20:
/// theta is a multiple of that, found by bisection. Of two equally close it is that of the sparser
/// mask. Throws InputError if `sparsity` is not in 0 to 1 (excluded) or above what the rule, which
/// keeps 1 + margin entries of a row at the least, can reach.
double find_theta(const RankedMaps& maps, double sparsity, bool cls);

/// The same for every head by itself: the theta of each head whose cells come closest to that
/// fraction. Throws InputError as find_theta(), if one head cannot reach it.
std::vector<double> find_head_thetas(const RankedMaps& maps, double sparsity, bool cls);

}  // namespace systole::model
