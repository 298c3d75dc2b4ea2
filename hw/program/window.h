#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

namespace systole::hw {

/// What a load makes of the pixels under a window.
enum class Gather : std::uint16_t {
  kPatches = 1,  ///< they stand one after the other: im2col
  kMaximum = 2,  ///< channel by channel the largest; padding does not count
  kSum = 3,      ///< channel by channel the sum; padding counts as zeros
};

[[nodiscard]] std::string_view name_of(Gather gather);

/// Pixels around a picture, of each side.
struct Padding {
  std::uint8_t top = 0, left = 0, bottom = 0, right = 0;

  [[nodiscard]] static constexpr Padding on_all_sides(std::uint8_t pixels) {
    return {pixels, pixels, pixels, pixels};
  }
  /// Rows above and below the picture, columns beside it.
  [[nodiscard]] std::uint32_t rows() const { return std::uint32_t{top} + bottom; }
  [[nodiscard]] std::uint32_t cols() const { return std::uint32_t{left} + right; }

  [[nodiscard]] auto key() const { return std::make_tuple(top, left, bottom, right); }
  [[nodiscard]] bool operator==(const Padding& other) const { return key() == other.key(); }
  [[nodiscard]] bool operator!=(const Padding& other) const { return !(*this == other); }
  [[nodiscard]] bool operator<(const Padding& other) const { return key() < other.key(); }
};

/// A window that moves over a picture, a tensor with a row for each of its height x width pixels
/// and a column for each channel. What it gathers is a matrix with a row for each of its places,
/// from left to right and from top to bottom.
struct Window {
  Gather gather = Gather::kPatches;
  std::uint16_t kernel_rows = 1, kernel_cols = 1;
  std::uint16_t stride = 1;  ///< in both directions
  Padding padding;
  std::uint32_t height = 0, width = 0;  ///< of the picture
  std::uint32_t channels = 0;

  [[nodiscard]] std::uint64_t out_height() const {
    return (std::uint64_t{height} + padding.rows() - kernel_rows) / stride + 1;
  }
  [[nodiscard]] std::uint64_t out_width() const {
    return (std::uint64_t{width} + padding.cols() - kernel_cols) / stride + 1;
  }
  [[nodiscard]] std::uint64_t pixels() const { return std::uint64_t{kernel_rows} * kernel_cols; }
  /// Rows and columns of what it gathers.
  [[nodiscard]] std::uint64_t rows() const { return out_height() * out_width(); }
  [[nodiscard]] std::uint64_t cols() const {
    return gather == Gather::kPatches ? pixels() * channels : channels;
  }

  [[nodiscard]] auto key() const {
    return std::make_tuple(gather, kernel_rows, kernel_cols, stride, padding, height, width,
                           channels);
  }
  [[nodiscard]] bool operator==(const Window& other) const { return key() == other.key(); }
  [[nodiscard]] bool operator<(const Window& other) const { return key() < other.key(); }
};

/// Longest side of a picture, of a window and of padding, in pixels, and most channels.
inline constexpr std::uint32_t kMaxPictureSide = 1U << 15;
inline constexpr std::uint32_t kMaxWindowSide = 255;
inline constexpr std::uint32_t kMaxPictureChannels = 1U << 16;

/// Throws InputError that says which rule the window breaks: sides and channels from 1 to the
/// limits above, a stride from 1, a window that fits; of maxima, padding narrower than it on every
/// side, so that no window sees padding alone.
void check_window(const Window& window);

/// A tile of what a window gathers: from row `row` and column `col` on.
struct WindowTile {
  Window window;
  std::uint32_t row = 0, col = 0;

  [[nodiscard]] bool operator==(const WindowTile& other) const {
    return window == other.window && row == other.row && col == other.col;
  }
};

/// Bytes that follow each other in memory, of pixels `pitch` apart whose channels have a byte each.
struct WindowRun {
  std::uint64_t offset = 0;  ///< from the picture's first byte
  std::uint32_t col = 0;     ///< where they belong in the tile's row; 0 where they are reduced
  std::uint32_t bytes = 0;
};

/// Calls visit(WindowRun) for what row `row` of a tile with `cols` columns reads, in the order of
/// its columns. Neighbouring pixels are one run where nothing is between them. Padding is no run:
/// the bytes of the row that none covers are zeros.
template <typename Visit>
void for_each_run(const WindowTile& tile, std::uint64_t row, std::uint32_t cols,
                  std::uint64_t pitch, Visit visit) {
  const Window& window = tile.window;
  const std::uint64_t place = tile.row + row, out_width = window.out_width();
  const Padding& padding = window.padding;
  const auto top = static_cast<std::int64_t>(place / out_width * window.stride) - padding.top;
  const auto left = static_cast<std::int64_t>(place % out_width * window.stride) - padding.left;
  const auto offset_of = [&](std::uint32_t pixel, std::uint32_t channel) {
    const std::int64_t y = top + pixel / window.kernel_cols, x = left + pixel % window.kernel_cols;
    const bool inside = y >= 0 && y < window.height && x >= 0 && x < window.width;
    return inside ? std::optional<std::uint64_t>(
                        static_cast<std::uint64_t>(y * window.width + x) * pitch + channel)
                  : std::nullopt;
  };
  if (window.gather != Gather::kPatches) {
    for (std::uint32_t pixel = 0; pixel < window.pixels(); ++pixel) {
      if (const auto offset = offset_of(pixel, tile.col)) visit(WindowRun{*offset, 0, cols});
    }
    return;
  }
  WindowRun run;
  for (std::uint32_t at = 0; at < cols;) {
    const std::uint32_t channel = (tile.col + at) % window.channels;
    const std::uint32_t bytes = std::min(window.channels - channel, cols - at);
    const auto offset = offset_of((tile.col + at) / window.channels, channel);
    const bool joins =
        offset && run.bytes != 0 && run.offset + run.bytes == *offset && run.col + run.bytes == at;
    if (joins) {
      run.bytes += bytes;
    } else if (offset) {
      if (run.bytes != 0) visit(run);
      run = {*offset, at, bytes};
    }
    at += bytes;
  }
  if (run.bytes != 0) visit(run);
}

/// Bytes from the picture's first one that `rows` rows of a tile read: from begin to before end,
/// all rows of pixels that they touch.
struct WindowSpan {
  std::uint64_t begin = 0, end = 0;
};
[[nodiscard]] WindowSpan window_span(const WindowTile& tile, std::uint64_t rows,
                                     std::uint64_t pitch);

}  // namespace systole::hw
