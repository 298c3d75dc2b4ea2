#include "model/float/float_matrix.h"

#include <algorithm>

namespace systole::model {

template <typename T>
PackedMatrix<T>::PackedMatrix(const T* source, std::size_t k, std::size_t n, std::size_t row_stride,
                              std::size_t col_stride)
    : k_(k), n_(n), panels_((n + kPanel - 1) / kPanel * k * kPanel) {
  for (std::size_t j = 0; j < n; ++j) {
    T* panel = panels_.data() + j / kPanel * k * kPanel + j % kPanel;
    for (std::size_t i = 0; i < k; ++i) {
      panel[i * kPanel] = source[i * row_stride + j * col_stride];
    }
  }
}

template <typename T>
void PackedMatrix<T>::multiply(const T* x, std::size_t x_stride, std::size_t rows, T* out,
                               std::size_t out_stride) const {
  for (std::size_t first = 0; first < n_; first += kPanel) {
    const T* panel = panels_.data() + first * k_;
    const std::size_t columns = std::min(kPanel, n_ - first);
    std::size_t r = 0;
    for (; r + kRows <= rows; r += kRows) {
      multiply_panel<kRows>(x + r * x_stride, x_stride, panel, out + r * out_stride + first,
                            out_stride, columns);
    }
    for (; r < rows; ++r) {
      multiply_panel<1>(x + r * x_stride, x_stride, panel, out + r * out_stride + first, out_stride,
                        columns);
    }
  }
}

template <typename T>
template <std::size_t Rows>
void PackedMatrix<T>::multiply_panel(const T* x, std::size_t x_stride, const T* panel, T* out,
                                     std::size_t out_stride, std::size_t columns) const {
  // Constant trip counts, so that the compiler keeps the sums in vector registers.
  T sums[Rows][kPanel] = {};
  for (std::size_t i = 0; i < k_; ++i) {
    for (std::size_t r = 0; r < Rows; ++r) {
      const T factor = x[r * x_stride + i];
      for (std::size_t j = 0; j < kPanel; ++j) sums[r][j] += factor * panel[i * kPanel + j];
    }
  }
  for (std::size_t r = 0; r < Rows; ++r) std::copy_n(sums[r], columns, out + r * out_stride);
}

template class PackedMatrix<float>;
template class PackedMatrix<double>;

}  // namespace systole::model
