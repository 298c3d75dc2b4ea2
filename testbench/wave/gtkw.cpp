#include "testbench/wave/gtkw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
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

/// Of bus or memory, not of a core or its host.
bool is_shared(const WaveGroup& group) {
  const std::string& path = group.signals.front().path;
  return path.rfind("core.", 0) != 0 && path.rfind("host.", 0) != 0;
}

/// Where a core among several has the signal that the only one has at `path`.
std::string path_in(const std::string& core, const std::string& path) {
  if (core.empty()) return path;
  constexpr std::string_view kCore = "core.";
  if (path.rfind(kCore, 0) == 0) return core + "." + path.substr(kCore.size());
  return core + "_" + path;
}

std::string full_name(const VcdFile::Signal& signal) {
  if (signal.width == 1) return signal.name;
  return fmt::format("{}[{}:0]", signal.name, signal.width - 1);
}

class Writer {
 public:
  explicit Writer(const GtkwView& view) {
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
  /// `core`: whose tables have its texts.
  void add(const VcdFile::Signal& signal, const WaveSignal& how, int colour,
           const GtkwView::Core& core) {
    const bool has_text = how.text != WaveText::kNone;
    unsigned flags = kRightJustify | (signal.width == 1 ? kBinary : kDecimal);
    if (has_text) flags |= kTranslated;
    if (how.shape != WaveShape::kBoxes) flags |= kAnalogStep;
    if (how.shape == WaveShape::kLevel) flags |= kAnalogFullScale;
    text_ += fmt::format("@{:x}\n[color] {}\n", flags, colour);
    if (has_text) text_ += fmt::format("^1 {}\n", hw::printable(core.tables.at(how.text)));
    text_ += fmt::format("+{{{}}} {}\n", how.label, full_name(signal));
  }
  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  static constexpr unsigned kOtherWidth = 80;
  static constexpr const char* kNoMarkers =
      " -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1";

  std::string text_;
};

}  // namespace

std::string gtkw_text(const GtkwView& view, const std::vector<VcdFile::Signal>& signals) {
  Writer writer(view);
  std::vector<bool> shown(signals.size(), false);
  const auto add_group = [&](const WaveGroup& group, const GtkwView::Core& core, bool shared) {
    const std::string title =
        shared || core.name.empty() ? group.title : core.name + ": " + group.title;
    writer.begin_group(title);
    for (const WaveSignal& wanted : group.signals) {
      const std::string path = shared ? wanted.path : path_in(core.name, wanted.path);
      for (std::size_t i = 0; i < signals.size(); ++i) {
        if (below_top(signals[i].name) != path) continue;
        writer.add(signals[i], wanted, group.colour, core);
        shown[i] = true;
      }
    }
    writer.end_group(title);
  };
  for (const GtkwView::Core& core : view.cores) {
    for (const WaveGroup& group : wave_groups()) {
      if (!is_shared(group)) add_group(group, core, false);
    }
  }
  for (const WaveGroup& group : wave_groups()) {
    if (is_shared(group)) add_group(group, view.cores.front(), true);
  }
  if (std::count(shown.begin(), shown.end(), false) > 0) {
    const std::string others = "Others";
    writer.begin_group(others);
    for (std::size_t i = 0; i < signals.size(); ++i) {
      if (!shown[i])
        writer.add(signals[i], {{}, signals[i].name, WaveShape::kBoxes, WaveText::kNone, {}}, 0,
                   view.cores.front());
    }
    writer.end_group(others);
  }
  return std::move(writer).text();
}

}  // namespace systole::testbench
