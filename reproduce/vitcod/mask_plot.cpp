#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "reproduce/vitcod/vitcod.h"

namespace systole::testbench {
namespace {

/// What a pixel shows.
enum Cell : char { kPruned, kSparse, kGlobal, kGlobalPruned, kGap };

constexpr const char* kCellColours[] = {"#ffffff", "#1f5fa8", "#d95f0e", "#fdd9b5", "#c8c8c8"};
constexpr std::size_t kMostCells = 256;  // of a head's side
/// Pixels of a panel with all heads, at the most, and of what is around it.
constexpr double kPanelWidth = 1400, kPanelHeight = 700;
constexpr int kLabelWidth = 80, kLabelHeight = 100, kTitleHeight = 40, kKeyHeight = 20;

/// One picture of all heads side by side, a byte a pixel, rows from the top.
class Panel {
 public:
  explicit Panel(const model::AttentionShape& shape)
      : layers_(std::min(shape.layers, kMaxDrawnLayers)),
        heads_(std::min(shape.heads, kMaxDrawnHeads)),
        stride_((std::max(shape.queries, shape.keys) + kMostCells - 1) / kMostCells),
        tile_width_((shape.keys + stride_ - 1) / stride_),
        tile_height_((shape.queries + stride_ - 1) / stride_),
        gap_(std::max<std::size_t>(1, std::max(tile_width_, tile_height_) / 40)),
        pixels_(width() * height(), static_cast<char>(kGap)) {}

  [[nodiscard]] std::size_t layers() const { return layers_; }
  [[nodiscard]] std::size_t heads() const { return heads_; }
  [[nodiscard]] std::size_t stride() const { return stride_; }
  [[nodiscard]] std::size_t width() const { return layers_ * (tile_width_ + gap_) + gap_; }
  [[nodiscard]] std::size_t height() const { return heads_ * (tile_height_ + gap_) + gap_; }
  [[nodiscard]] const std::string& pixels() const { return pixels_; }
  /// Where a label of a layer or a head stands.
  [[nodiscard]] double layer_centre(std::size_t layer) const {
    return static_cast<double>(left(layer)) + static_cast<double>(tile_width_) / 2.0;
  }
  [[nodiscard]] double head_centre(std::size_t head) const {
    return static_cast<double>(height() - top(head)) - static_cast<double>(tile_height_) / 2.0;
  }

  /// `cell(query, place)` of each query and each place among the columns.
  template <typename CellOf>
  void draw(std::size_t layer, std::size_t head, const CellOf& cell) {
    for (std::size_t y = 0; y < tile_height_; ++y) {
      for (std::size_t x = 0; x < tile_width_; ++x) {
        pixels_[(top(head) + y) * width() + left(layer) + x] =
            static_cast<char>(cell(y * stride_, x * stride_));
      }
    }
  }

 private:
  [[nodiscard]] std::size_t left(std::size_t layer) const {
    return gap_ + layer * (tile_width_ + gap_);
  }
  [[nodiscard]] std::size_t top(std::size_t head) const {
    return gap_ + head * (tile_height_ + gap_);
  }

  std::size_t layers_, heads_, stride_, tile_width_, tile_height_, gap_;
  std::string pixels_;
};

std::string panel_script(const Panel& panel, const std::string& title) {
  std::string layers, heads;
  for (std::size_t layer = 0; layer < panel.layers(); ++layer) {
    layers +=
        fmt::format("{}'layer {}' {}", layer == 0 ? "" : ", ", layer, panel.layer_centre(layer));
  }
  for (std::size_t head = 0; head < panel.heads(); ++head) {
    heads += fmt::format("{}'head {}' {}", head == 0 ? "" : ", ", head, panel.head_centre(head));
  }
  return fmt::format(
      "set title {} offset 0,-0.5\n"
      "set xtics scale 0 ({})\nset ytics scale 0 ({})\n"
      "set xrange [0:{}]\nset yrange [0:{}]\n"
      "plot '-' binary array=({},{}) format='%uchar' flip=y origin=(0.5,0.5) with image notitle, "
      "NaN with points pt 5 ps 2 lc rgb '{}' title 'kept, sparser engine', "
      "NaN with points pt 5 ps 2 lc rgb '{}' title 'kept, denser engine', "
      "NaN with points pt 5 ps 2 lc rgb '{}' title 'pruned, computed all the same'\n",
      gnuplot_quoted(title), layers, heads, panel.width(), panel.height(), panel.width(),
      panel.height(), kCellColours[kSparse], kCellColours[kGlobal], kCellColours[kGlobalPruned]);
}

Cell reordered_cell(const model::AttentionMask& mask, const hw::SparseHead& head, std::size_t layer,
                    std::size_t index, std::size_t query, std::size_t place) {
  const std::size_t global = head.dense_columns.size();
  const bool dense = place < global;
  const std::size_t key = dense ? head.dense_columns[place] : head.sparse_columns[place - global];
  const bool kept = mask.kept(layer, index, query, key);
  if (dense) return kept ? kGlobal : kGlobalPruned;
  return kept ? kSparse : kPruned;
}

}  // namespace

Plot mask_plot(std::string file, const std::string& title, const model::AttentionMask& mask,
               const SplitLayers& layers) {
  Panel before(mask.shape()), after(mask.shape());
  for (std::size_t layer = 0; layer < before.layers(); ++layer) {
    for (std::size_t head = 0; head < before.heads(); ++head) {
      before.draw(layer, head, [&](std::size_t query, std::size_t key) {
        return mask.kept(layer, head, query, key) ? kSparse : kPruned;
      });
      after.draw(layer, head, [&](std::size_t query, std::size_t place) {
        return reordered_cell(mask, layers[layer][head], layer, head, query, place);
      });
    }
  }
  // Panels stand side by side unless that makes them small.
  const auto width = static_cast<double>(before.width());
  const auto height = static_cast<double>(before.height());
  const bool stacked = width > height;
  const double columns = stacked ? 1.0 : 2.0;
  const double scale = std::min(kPanelWidth / columns / width, kPanelHeight / height);
  Plot plot;
  plot.file = std::move(file);
  plot.width = static_cast<int>(columns * (scale * width + kLabelWidth));
  plot.height = static_cast<int>((stacked ? 2.0 : 1.0) * (scale * height + kLabelHeight)) +
                kTitleHeight + kKeyHeight;
  std::string palette;
  for (std::size_t i = 0; i < std::size(kCellColours); ++i) {
    palette += fmt::format("{}{} '{}'", i == 0 ? "" : ", ", i, kCellColours[i]);
  }
  const std::string sample =
      before.stride() == 1 ? "" : fmt::format(" (every {}th row and column)", before.stride());
  plot.data = "set palette maxcolors 5\nset palette defined (" + palette +
              ")\nset cbrange [-0.5:4.5]\n" +
              "unset colorbox\nset border 0\nset size ratio -1\nset lmargin 8\nset rmargin 2\n"
              "set tmargin 3\nset bmargin 5\n" +
              "set multiplot layout " + (stacked ? "2,1" : "1,2") + " title " +
              gnuplot_quoted(title + sample) + " font ',15'\nunset key\n" +
              panel_script(before, "before: rows are queries, columns are keys") + before.pixels() +
              "\nset key below reverse Left samplen 1 width 2\n" +
              panel_script(after, "after: global columns in front") + after.pixels() +
              "\nunset multiplot\n";
  return plot;
}

}  // namespace systole::testbench
