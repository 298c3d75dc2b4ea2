#include "testbench/wave/gtkw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/printable.h"

namespace systole::testbench {
namespace {

/// Bits of a trace's flags in a save file (GTKWave's analyzer.h).
constexpr unsigned kDecimal = 1U << 2, kBinary = 1U << 3, kRightJustify = 1U << 5, kBlank = 1U << 9,
                   kTranslated = 1U << 13, kAnalogStep = 1U << 15, kAnalogFullScale = 1U << 19,
                   kGroupBegin = 1U << 23, kGroupEnd = 1U << 24;

constexpr unsigned kWindowWidth = 1600, kWindowHeight = 1050;
constexpr unsigned kNamesWidth = 400;
constexpr unsigned kFramePixels = 200;  ///< the zoom factor is the logarithm of their time

std::string below_top(const std::string& name) { return name.substr(name.find('.') + 1); }

std::string full_name(const VcdFile::Signal& signal) {
  if (signal.width == 1) return signal.name;
  return fmt::format("{}[{}:0]", signal.name, signal.width - 1);
}

class Writer {
 public:
  explicit Writer(const GtkwView& view) : view_(view) {
    const std::uint64_t span = std::max<std::uint64_t>(view.to_ps - view.from_ps, 1);
    const double per_pixel =
        static_cast<double>(span) / static_cast<double>(kWindowWidth - kNamesWidth - kOtherWidth);
    text_ = fmt::format(
        "[*]\n[*] Written by Systole. Open with: gtkwave {0} {1}\n[*]\n"
        "[dumpfile] \"{0}\"\n[savefile] \"{1}\"\n"
        "[timestart] {2}\n[size] {3} {4}\n[pos] -1 -1\n*{5:.6f} {2}{6}\n"
        "[sst_width] 20\n[signals_width] {7}\n[sst_expanded] 0\n",
        hw::printable(view.wave), hw::printable(view.self), view.from_ps, kWindowWidth,
        kWindowHeight, -std::log2(per_pixel * kFramePixels), kNoMarkers, kNamesWidth);
  }

  void begin_group(const std::string& title) {
    text_ += fmt::format("@{:x}\n-{}\n", kGroupBegin | kBlank, title);
  }
  void end_group(const std::string& title) {
    text_ += fmt::format("@{:x}\n-{}\n", kGroupEnd | kBlank, title);
  }
  void add(const VcdFile::Signal& signal, const WaveSignal& how, int colour) {
    const bool has_text = how.text != WaveText::kNone;
    unsigned flags = kRightJustify | (signal.width == 1 ? kBinary : kDecimal);
    if (has_text) flags |= kTranslated;
    if (how.shape != WaveShape::kBoxes) flags |= kAnalogStep;
    if (how.shape == WaveShape::kLevel) flags |= kAnalogFullScale;
    text_ += fmt::format("@{:x}\n[color] {}\n", flags, colour);
    if (has_text) text_ += fmt::format("^1 {}\n", hw::printable(view_.tables.at(how.text)));
    text_ += fmt::format("+{{{}}} {}\n", how.label, full_name(signal));
  }
  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  static constexpr unsigned kOtherWidth = 80;
  static constexpr const char* kNoMarkers =
      " -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1";

  const GtkwView& view_;
  std::string text_;
};

}  // namespace

std::string gtkw_text(const GtkwView& view, const std::vector<VcdFile::Signal>& signals) {
  Writer writer(view);
  std::vector<bool> shown(signals.size(), false);
  for (const WaveGroup& group : wave_groups()) {
    writer.begin_group(group.title);
    for (const WaveSignal& wanted : group.signals) {
      for (std::size_t i = 0; i < signals.size(); ++i) {
        if (below_top(signals[i].name) != wanted.path) continue;
        writer.add(signals[i], wanted, group.colour);
        shown[i] = true;
      }
    }
    writer.end_group(group.title);
  }
  if (std::count(shown.begin(), shown.end(), false) > 0) {
    const std::string others = "Others";
    writer.begin_group(others);
    for (std::size_t i = 0; i < signals.size(); ++i) {
      if (!shown[i])
        writer.add(signals[i], {{}, signals[i].name, WaveShape::kBoxes, WaveText::kNone, {}}, 0);
    }
    writer.end_group(others);
  }
  return std::move(writer).text();
}

}  // namespace systole::testbench
