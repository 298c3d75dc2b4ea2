#include "hw/program/window.h"

#include "base/error.h"

namespace systole::hw {

std::string_view name_of(Gather gather) {
  switch (gather) {
    case Gather::kPatches:
      return "patches";
    case Gather::kMaximum:
      return "maximum";
    case Gather::kSum:
      return "sum";
  }
  return "?";
}

void check_window(const Window& window) {
  const auto within = [](const char* name, std::uint64_t value, std::uint64_t most) {
    if (value >= 1 && value <= most) return;
    throw InputError(std::string(name) + " is " + std::to_string(value) + ", expected 1 to " +
                     std::to_string(most));
  };
  within("height", window.height, kMaxPictureSide);
  within("width", window.width, kMaxPictureSide);
  within("channels", window.channels, kMaxPictureChannels);
  within("kernel_rows", window.kernel_rows, kMaxWindowSide);
  within("kernel_cols", window.kernel_cols, kMaxWindowSide);
  within("stride", window.stride, kMaxWindowSide);
  const Padding& padding = window.padding;
  const auto narrower = [&](const char* name, std::uint8_t pixels, std::uint16_t side) {
    if (window.gather != Gather::kMaximum || pixels < side) return;
    throw InputError("padding " + std::string(name) + " is " + std::to_string(pixels) +
                     ", expected 0 to " + std::to_string(side - 1) +
                     ", less than the side of a window that takes the maximum");
  };
  narrower("top", padding.top, window.kernel_rows);
  narrower("left", padding.left, window.kernel_cols);
  narrower("bottom", padding.bottom, window.kernel_rows);
  narrower("right", padding.right, window.kernel_cols);
  const bool fits = window.kernel_rows <= window.height + padding.rows() &&
                    window.kernel_cols <= window.width + padding.cols();
  if (!fits) {
    throw InputError("a window of " + std::to_string(window.kernel_rows) + " x " +
                     std::to_string(window.kernel_cols) + " pixels, expected one that fits " +
                     std::to_string(window.height) + " x " + std::to_string(window.width) +
                     " with the padding");
  }
}

WindowSpan window_span(const WindowTile& tile, std::uint64_t rows, std::uint64_t pitch) {
  const Window& window = tile.window;
  if (rows == 0) return {};
  // Rows of pixels above `y` rows of the padded picture.
  const auto inside = [&](std::uint64_t y) {
    return std::min<std::uint64_t>(y - std::min<std::uint64_t>(y, window.padding.top),
                                   window.height);
  };
  const auto first_row = [&](std::uint64_t place) {
    return place / window.out_width() * window.stride;
  };
  const std::uint64_t top = inside(first_row(tile.row));
  const std::uint64_t bottom = inside(first_row(tile.row + rows - 1) + window.kernel_rows);
  if (top == bottom) return {};
  return {top * window.width * pitch, (bottom * window.width - 1) * pitch + window.channels};
}

}  // namespace systole::hw
