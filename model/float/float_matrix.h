#pragma once

#include <cstddef>
#include <vector>

namespace systole::model {

/// The right-hand side of a matrix product of T, float or double, stored in panels of columns.
/// Every sum runs over the common dimension in ascending order, so that results do not depend on
/// vector width or blocking.
template <typename T>
class PackedMatrix {
 public:
  /// k x n elements; element (i, j) is source[i * row_stride + j * col_stride].
  PackedMatrix(const T* source, std::size_t k, std::size_t n, std::size_t row_stride,
               std::size_t col_stride);

  [[nodiscard]] std::size_t k() const { return k_; }

  /// out (rows x n) = x (rows x k) times this matrix; the strides are in elements between rows.
  void multiply(const T* x, std::size_t x_stride, std::size_t rows, T* out,
                std::size_t out_stride) const;

 private:
  static constexpr std::size_t kPanel = 8;
  static constexpr std::size_t kRows = 2;

  /// `Rows` rows of the product for one panel.
  template <std::size_t Rows>
  void multiply_panel(const T* x, std::size_t x_stride, const T* panel, T* out,
                      std::size_t out_stride, std::size_t columns) const;

  std::size_t k_;
  std::size_t n_;
  std::vector<T> panels_;  ///< [ceil(n / kPanel)][k][kPanel], zeros beyond column n
};

extern template class PackedMatrix<float>;
extern template class PackedMatrix<double>;

}  // namespace systole::model
