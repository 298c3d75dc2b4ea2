#include "testbench/gtkw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace systole::testbench {
namespace {

/// Bits of a trace's flags in a save file (GTKWave's analyzer.h).
constexpr unsigned kDecimal = 1U << 2, kBinary = 1U << 3, kRightJustify = 1U << 5, kBlank = 1U << 9,
                   kTranslated = 1U << 13, kAnalogStep = 1U << 15, kAnalogStretch = 1U << 17,
                   kGroupBegin = 1U << 23, kGroupEnd = 1U << 24;

constexpr unsigned kWindowWidth = 1600, kWindowHeight = 1000;
constexpr unsigned kNamesWidth = 240;
constexpr unsigned kFramePixels = 200;  ///< the zoom factor is the logarithm of their time

std::string below_top(const std::string& name) { return name.substr(name.find('.') + 1); }

std::string full_name(const VcdFile::Signal& signal) {
  if (signal.width == 1) return signal.name;
  return fmt::format("{}[{}:0]", signal.name, signal.width - 1);
}

/// What is left of a path under its group's title: "state", "dma.bytes".
std::string alias_of(const std::string& path) {
  for (const char* prefix :
       {"core.processor.", "core.load.", "core.array.", "core.store.", "host.", "bus.", "dram."}) {
    const std::string text = prefix;
    if (path.compare(0, text.size(), text) == 0) return path.substr(text.size());
  }
  return path;
}

class Writer {
 public:
  explicit Writer(const GtkwView& view) : view_(view) {
    const std::uint64_t span = std::max<std::uint64_t>(view.to_ps - view.from_ps, 1);
    const double per_pixel =
        static_cast<double>(span) / static_cast<double>(kWindowWidth - kNamesWidth - kValuesWidth);
    text_ = fmt::format(
        "[*]\n[*] Written by Systole. Open with: gtkwave {0} {1}\n[*]\n"
        "[dumpfile] \"{0}\"\n[savefile] \"{1}\"\n"
        "[timestart] {2}\n[size] {3} {4}\n[pos] -1 -1\n*{5:.6f} {2}{6}\n"
        "[sst_width] 200\n[signals_width] {7}\n[sst_expanded] 0\n",
        view.wave, view.self, view.from_ps, kWindowWidth, kWindowHeight,
        -std::log2(per_pixel * kFramePixels), kNoMarkers, kNamesWidth);
  }

  void begin_group(const std::string& title) {
    text_ += fmt::format("@{:x}\n-{}\n", kGroupBegin | kBlank, title);
  }
  void end_group(const std::string& title) {
    text_ += fmt::format("@{:x}\n-{}\n", kGroupEnd | kBlank, title);
  }
  void add(const VcdFile::Signal& signal, WaveText text, bool curve, int colour) {
    const unsigned number = signal.width == 1 ? kBinary : kDecimal;
    const unsigned how = text != WaveText::kNone ? kTranslated : curve ? kAnalogStep : 0;
    text_ += fmt::format("@{:x}\n[color] {}\n", number | kRightJustify | how, colour);
    if (text != WaveText::kNone) text_ += fmt::format("^1 {}\n", view_.tables.at(text));
    text_ += fmt::format("+{{{}}} {}\n", alias_of(below_top(signal.name)), full_name(signal));
    if (curve) text_ += fmt::format("@{:x}\n-\n", kAnalogStretch);
  }
  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  static constexpr unsigned kValuesWidth = 120;
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
        writer.add(signals[i], wanted.text, wanted.curve, group.colour);
        shown[i] = true;
      }
    }
    writer.end_group(group.title);
  }
  if (std::count(shown.begin(), shown.end(), false) > 0) {
    const std::string others = "Others";
    writer.begin_group(others);
    for (std::size_t i = 0; i < signals.size(); ++i) {
      if (!shown[i]) writer.add(signals[i], WaveText::kNone, false, 0);
    }
    writer.end_group(others);
  }
  return std::move(writer).text();
}

}  // namespace systole::testbench
