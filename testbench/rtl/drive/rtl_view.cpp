#include "testbench/rtl/drive/rtl_view.h"

#include <gtkwave/fstapi.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <sstream>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/printable.h"

namespace systole::testbench {
namespace {

/// Bits of a trace's flags in a save file (GTKWave's analyzer.h).
constexpr unsigned kHex = 1U << 1, kDecimal = 1U << 2, kBinary = 1U << 3, kRightJustify = 1U << 5,
                   kBlank = 1U << 9, kSigned = 1U << 10, kClosed = 1U << 22, kGroupBegin = 1U << 23,
                   kGroupEnd = 1U << 24;
constexpr std::uint32_t kLaneWidths[] = {32, 8, 16};
constexpr int kRtlColour = 2, kModelColour = 3;
const std::string kTopScope = "dut.";
constexpr const char* kModelScope = "model";
constexpr const char* kModelOutput = "output_";

using Signals = std::vector<FstSignal>;

std::string base_name(const FstSignal& signal) {
  return signal.name.substr(0, signal.name.find(' '));
}

/// GTKWave writes the range of a vector without a blank.
std::string full_name(const std::string& scope, const FstSignal& signal) {
  std::string name = (scope.empty() ? "" : scope + ".") + signal.scope + "." + signal.name;
  name.erase(std::remove(name.begin(), name.end(), ' '), name.end());
  return name;
}

std::string view_head(const std::string& wave, const std::string& self) {
  std::ostringstream text;
  text
      << "[*]\n[*] Written by Systole. Open with: gtkwave " << hw::printable(wave) << ' '
      << hw::printable(self) << "\n[*]\n[dumpfile] \"" << hw::printable(wave) << "\"\n[savefile] \""
      << hw::printable(self)
      << "\"\n[timestart] 0\n[size] 1600 900\n[pos] -1 -1\n"
         "*-14.600000 0 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 "
         "-1 -1 -1\n[sst_width] 20\n[signals_width] 320\n[sst_expanded] 0\n";
  return text.str();
}

class View {
 public:
  explicit View(std::string scope) : scope_(std::move(scope)) {}

  template <typename Fill>
  void group(const std::string& title, bool closed, Fill fill) {
    const unsigned state = kBlank | (closed ? kClosed : 0);
    text_ << std::hex << '@' << (kGroupBegin | state) << std::dec << "\n-" << title << '\n';
    fill();
    text_ << std::hex << '@' << (kGroupEnd | state) << std::dec << "\n-" << title << '\n';
  }
  void add(const FstSignal& signal, unsigned format, int colour, const std::string& label = {}) {
    flags(signal.bits == 1 ? kBinary : format, colour);
    if (!label.empty()) text_ << "+{" << label << "} ";
    text_ << full_name(scope_, signal) << '\n';
  }
  /// One of `lanes` lanes of a wide port.
  void add_lane(const FstSignal& port, std::uint32_t lanes, std::uint32_t lane,
                const std::string& label) {
    const std::uint32_t lane_bits = port.bits / lanes;
    flags(kDecimal | kSigned, kRtlColour);
    text_ << "#{" << label << "}";
    // Bits are counted from the most significant one.
    const std::uint32_t first = port.bits - (lane + 1) * lane_bits;
    for (std::uint32_t bit = 0; bit < lane_bits; ++bit) {
      text_ << " (" << first + bit << ')' << full_name(scope_, port);
    }
    text_ << '\n';
  }
  [[nodiscard]] std::string text() const { return text_.str(); }

 private:
  void flags(unsigned format, int colour) {
    text_ << std::hex << '@' << (format | kRightJustify) << std::dec << "\n[color] " << colour
          << '\n';
  }
  const std::string scope_;
  std::ostringstream text_;
};

/// The output port whose lanes the model's outputs belong to: the one of the right width.
const FstSignal* output_port(const Signals& ports, std::size_t lanes) {
  for (const std::uint32_t width : kLaneWidths) {
    for (const FstSignal& port : ports) {
      const std::string name = base_name(port);
      const bool is_output = name.size() > 2 && name.compare(name.size() - 2, 2, "_o") == 0;
      if (is_output && port.bits == lanes * width) return &port;
    }
  }
  return nullptr;
}

/// The scope of the block's module, whatever it is called: that below the name of the Verilated
/// top.
std::string module_scope(const Signals& signals) {
  for (const FstSignal& signal : signals) {
    const std::size_t end = signal.scope.find('.', kTopScope.size());
    if (signal.scope.rfind(kTopScope, 0) == 0) return signal.scope.substr(0, end);
  }
  return {};
}

}  // namespace

Signals read_fst_signals(const std::string& path) {
  const std::unique_ptr<void, void (*)(void*)> reader(fstReaderOpen(path.c_str()), [](void* fst) {
    if (fst != nullptr) fstReaderClose(fst);
  });
  if (!reader) throw hw::InputError(hw::printable(path) + ": no FST file, expected one");
  Signals signals;
  std::vector<std::string> scopes{""};
  while (const fstHier* entry = fstReaderIterateHier(reader.get())) {
    if (entry->htyp == FST_HT_SCOPE) {
      const std::string& outer = scopes.back();
      scopes.push_back((outer.empty() ? "" : outer + ".") + entry->u.scope.name);
    } else if (entry->htyp == FST_HT_UPSCOPE) {
      scopes.pop_back();
    } else if (entry->htyp == FST_HT_VAR) {
      const auto& var = entry->u.var;
      const bool is_port = var.direction == FST_VD_INPUT || var.direction == FST_VD_OUTPUT;
      signals.push_back({scopes.back(), var.name, var.length, is_port});
    }
  }
  return signals;
}

std::string rtl_view_path(const std::string& wave) {
  return std::filesystem::path(wave).replace_extension(".gtkw").string();
}

std::string rtl_view_groups(const Signals& signals, const std::string& block,
                            const std::string& scope) {
  Signals ports, inside, outputs, progress;
  const std::string own_scope = module_scope(signals);
  for (const FstSignal& signal : signals) {
    if (signal.scope == own_scope) {
      (signal.is_port ? ports : inside).push_back(signal);
    } else if (signal.scope == kModelScope) {
      (signal.name.rfind(kModelOutput, 0) == 0 ? outputs : progress).push_back(signal);
    }
  }
  View view(scope);
  view.group(block + ": operation (model)", false, [&] {
    for (const FstSignal& signal : progress) view.add(signal, kDecimal, kModelColour);
  });
  view.group(block + ": RTL ports", false, [&] {
    for (const FstSignal& signal : ports) view.add(signal, kHex, kRtlColour);
  });
  if (const FstSignal* port = output_port(ports, outputs.size())) {
    view.group(block + ": outputs, RTL and model", false, [&] {
      const auto lanes = static_cast<std::uint32_t>(outputs.size());
      for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        const std::string number = std::to_string(lane);
        view.add_lane(*port, lanes, lane, "RTL " + base_name(*port) + " lane " + number);
        view.add(outputs[lane], kDecimal | kSigned, kModelColour, "model lane " + number);
      }
    });
  } else if (!outputs.empty()) {
    view.group(block + ": outputs of the model", false, [&] {
      for (const FstSignal& signal : outputs) view.add(signal, kDecimal | kSigned, kModelColour);
    });
  }
  view.group(block + ": inside", true, [&] {
    for (const FstSignal& signal : inside) view.add(signal, kHex, kRtlColour);
  });
  return view.text();
}

void write_rtl_view(const std::string& wave, const std::string& block) {
  const std::string absolute = std::filesystem::absolute(wave).string();
  hw::write_file_atomically(rtl_view_path(wave),
                            view_head(absolute, rtl_view_path(absolute)) +
                                rtl_view_groups(read_fst_signals(wave), block, {}));
}

}  // namespace systole::testbench
