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
                   kGroupBegin = 1U << 23, kGroupEnd = 1U << 24, kFolded = 1U << 22,
                   kInFolded = 1U << 12;

constexpr unsigned kWindowWidth = 1600, kWindowHeight = 1050;
constexpr unsigned kNamesWidth = 400;
constexpr unsigned kFramePixels = 200;  ///< the zoom factor is the logarithm of their time

/// Of bus or memory, not of a core or its host.
bool is_shared(const WaveGroup& group) {
  const std::string& path = group.signals.front().path;
  return path.rfind("core.", 0) != 0 && path.rfind("host.", 0) != 0;
}

bool is_state(const std::string& path) {
  const std::string_view ending = ".state";
  return path.size() > ending.size() &&
         path.compare(path.size() - ending.size(), ending.npos, ending) == 0;
}

/// "array" of "core.array.state", "array operator" of "core.array.operator".
std::string unit_of(std::string path) {
  if (path.rfind("core.", 0) == 0) path = path.substr(path.find('.') + 1);
  if (is_state(path)) path.resize(path.rfind('.'));
  return path;
}

std::string full_name(const RecordedSignal& signal) {
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

  void begin_group(const std::string& title, bool folded) {
    inside_ = folded ? kInFolded : 0;
    text_ += fmt::format("@{:x}\n-{}\n", kGroupBegin | kBlank | (folded ? kFolded : 0), title);
  }
  void end_group(const std::string& title, bool folded) {
    text_ +=
        fmt::format("@{:x}\n-{}\n", kGroupEnd | kBlank | inside_ | (folded ? kFolded : 0), title);
    inside_ = 0;
  }
  /// `core`: whose tables have its texts.
  void add(const RecordedSignal& signal, const WaveSignal& how, const std::string& label,
           int colour, const GtkwView::Core& core) {
    const bool has_text = how.text != WaveText::kNone;
    unsigned flags = inside_ | kRightJustify | (signal.width == 1 ? kBinary : kDecimal);
    if (has_text) flags |= kTranslated;
    if (how.shape != WaveShape::kBoxes) flags |= kAnalogStep;
    if (how.shape == WaveShape::kLevel) flags |= kAnalogFullScale;
    text_ += fmt::format("@{:x}\n[color] {}\n", flags, colour);
    if (has_text) text_ += fmt::format("^1 {}\n", hw::printable(core.tables.at(how.text)));
    // Of a name with dots GTKWave shows what is after the last one.
    std::string spaced = label;
    std::replace(spaced.begin(), spaced.end(), '.', ' ');
    text_ += fmt::format("+{{{}}} {}\n", spaced, full_name(signal));
  }
  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  static constexpr unsigned kOtherWidth = 80;
  static constexpr const char* kNoMarkers =
      " -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1";

  std::string text_;
  unsigned inside_ = 0;  ///< flags of what is in the group in progress
};

/// What all cores do, one below the other.
void add_overview(const GtkwView& view, const std::vector<RecordedSignal>& signals,
                  Writer& writer) {
  const std::string title = "Cores";
  writer.begin_group(title, false);
  for (const GtkwView::Core& core : view.cores) {
    for (const WaveGroup& group : wave_groups()) {
      if (is_shared(group) || !group.overview) continue;
      for (const WaveSignal& how : group.signals) {
        const bool is_work = how.text == WaveText::kOperator || how.text == WaveText::kPhase ||
                             how.text == WaveText::kInstruction;
        for (const RecordedSignal& signal : signals) {
          const std::string path = path_below_top(signal.name);
          const std::string own = path_of_only_core(core.name, path);
          if (own == path || own != how.path || (!is_work && !is_state(own))) continue;
          writer.add(signal, how, core.name + " " + unit_of(own), group.colour, core);
        }
      }
    }
  }
  writer.end_group(title, false);
}

}  // namespace

std::string path_below_top(const std::string& name) { return name.substr(name.find('.') + 1); }

std::string path_of_only_core(const std::string& core, const std::string& path) {
  // Links, and what else is of no core, in the scope of a ring.
  const std::size_t scope = core.rfind('.') + 1;
  if (scope != 0 && path.compare(0, scope, core, 0, scope) == 0 &&
      path.compare(scope, 4, "core") != 0) {
    return path.substr(scope);
  }
  if (core.empty() || path.compare(0, core.size(), core) != 0) return path;
  if (path[core.size()] == '.') return "core" + path.substr(core.size());
  return path[core.size()] == '_' ? path.substr(core.size() + 1) : path;  // its host, its interrupt
}

std::string gtkw_text(const GtkwView& view, const std::vector<RecordedSignal>& signals) {
  Writer writer(view);
  std::vector<bool> shown(signals.size(), false);
  std::string ring;  // the first of its cores, beside others
  for (const GtkwView::Core& core : view.cores) {
    if (ring.empty() && core.name.find('.') != std::string::npos) ring = core.name;
  }
  if (view.cores.size() > 1) add_overview(view, signals, writer);
  const auto add_group = [&](const WaveGroup& group, const GtkwView::Core& core, bool shared) {
    const std::string title =
        shared || core.name.empty() ? group.title : core.name + ": " + group.title;
    // Those of one core fill a window.
    const bool folded = group.folded || (!shared && &core != &view.cores.front());
    bool begun = false;
    const auto add = [&](std::size_t i, const WaveSignal& how, const std::string& label) {
      if (!std::exchange(begun, true)) writer.begin_group(title, folded);
      writer.add(signals[i], how, label, group.colour, core);
      shown[i] = true;
    };
    const auto first = group.signals.begin(), last = group.signals.end();
    for (auto wanted = first; wanted != last;) {
      // Several with stars, one after the other: what is alike in all of them stays together.
      auto next = std::find_if(wanted, last, [](const WaveSignal& signal) {
        return signal.path.find('*') == std::string::npos;
      });
      if (next == wanted) ++next;
      for (std::size_t i = 0; i < signals.size(); ++i) {
        const std::string path = path_below_top(signals[i].name);
        const std::string own = path_of_only_core(shared ? ring : core.name, path);
        if (!shared && !core.name.empty() && own == path) continue;
        for (auto each = wanted; each != next && !shown[i]; ++each) {
          const auto label = label_of(*each, own);
          if (label) add(i, *each, *label);
        }
      }
      wanted = next;
    }
    if (begun) writer.end_group(title, folded);
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
    writer.begin_group(others, false);
    for (std::size_t i = 0; i < signals.size(); ++i) {
      if (shown[i]) continue;
      writer.add(signals[i], {{}, {}, WaveShape::kBoxes, WaveText::kNone, {}}, signals[i].name, 0,
                 view.cores.front());
    }
    writer.end_group(others, false);
  }
  return std::move(writer).text();
}

}  // namespace systole::testbench
