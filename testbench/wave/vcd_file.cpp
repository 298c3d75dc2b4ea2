#include <algorithm>
#include <charconv>
#include <cstddef>

#include "base/atomic_file.h"
#include "testbench/wave/wave_file.h"

namespace systole::testbench {
namespace {

/// Short names for variables: numbers in the printable characters, as VCD has them.
std::string identifier(std::size_t number) {
  constexpr std::size_t kFirst = '!', kCount = '~' - '!' + 1;
  std::string text;
  do {
    text += static_cast<char>(kFirst + number % kCount);
    number /= kCount;
  } while (number > 0);
  return text;
}

class VcdFile final : public WaveFile {
 public:
  explicit VcdFile(const std::string& path) : file_(path) {}

  void begin(std::uint64_t time, const std::vector<RecordedSignal>& signals,
             const std::vector<RecordedValue>& values) override {
    for (std::size_t i = 0; i < signals.size(); ++i) {
      const std::string id = identifier(i);
      Variable& variable = variables_.emplace_back();
      variable.id_chars = id.copy(variable.id, Variable::kIdChars);
      variable.width = signals[i].width;
    }
    append_header(signals);
    text_ += "#" + std::to_string(time) + "\n$dumpvars\n";
    for (std::size_t i = 0; i < values.size(); ++i) append_value(variables_[i], values[i]);
    text_ += "$end\n";
    stamp_ = time;
  }

  void change(std::uint64_t time, std::size_t signal, const RecordedValue& value) override {
    stamp(time);
    append_value(variables_[signal], value);
    if (text_.size() >= kPiece) put();
  }

  void comment(const std::string& text) override { text_ += "$comment " + text + " $end\n"; }

  [[nodiscard]] std::uint64_t bytes() const override { return bytes_ + text_.size(); }

  void commit(std::uint64_t end) override {
    stamp(end);
    put();
    file_.commit();
  }

 private:
  struct Variable {
    static constexpr std::size_t kIdChars = 8;
    char id[kIdChars];
    std::size_t id_chars;
    unsigned width;
  };
  static constexpr std::size_t kPiece = std::size_t{1} << 16;

  void append_header(const std::vector<RecordedSignal>& signals);
  void append_value(const Variable& variable, const RecordedValue& value);
  void stamp(std::uint64_t time) {
    if (time == stamp_) return;
    stamp_ = time;
    char line[1 + 20 + 1] = {'#'};
    char* const end = std::to_chars(line + 1, line + sizeof line - 1, time).ptr;
    *end = '\n';
    text_.append(line, end + 1);
  }
  void put() {
    file_.stream().write(text_.data(), static_cast<std::streamsize>(text_.size()));
    bytes_ += text_.size();
    text_.clear();
  }

  hw::AtomicFile file_;
  std::vector<Variable> variables_;
  std::string text_;  ///< not written yet
  std::uint64_t bytes_ = 0;
  std::uint64_t stamp_ = 0;  ///< last time in the file
};

void VcdFile::append_header(const std::vector<RecordedSignal>& signals) {
  text_ += "$version Systole $end\n$timescale 1 ps $end\n";
  visit_hierarchy(
      signals, {[this](const std::string& scope) { text_ += "$scope module " + scope + " $end\n"; },
                [this] { text_ += "$upscope $end\n"; },
                [&](std::size_t signal, const std::string& name) {
                  const unsigned width = signals[signal].width;
                  text_ += "$var wire " + std::to_string(width) + " " + identifier(signal) + " " +
                           ranged_name(name, width) + " $end\n";
                }});
  text_ += "$enddefinitions $end\n";
}

void VcdFile::append_value(const Variable& variable, const RecordedValue& value) {
  const unsigned width = variable.width;
  char line[1 + 64 + 1 + Variable::kIdChars + 1];
  char* end = line;
  if (width > 1) *end++ = 'b';
  if (value.kind != RecordedValue::Kind::kNumber) {
    *end++ = value.kind == RecordedValue::Kind::kNone ? 'z' : 'x';
  } else {
    unsigned bit = width;
    while (bit > 1 && (value.bits >> (bit - 1) & 1U) == 0) --bit;
    while (bit-- > 0) *end++ = (value.bits >> bit & 1U) != 0 ? '1' : '0';
  }
  if (width > 1) *end++ = ' ';
  end = std::copy_n(variable.id, variable.id_chars, end);
  *end++ = '\n';
  text_.append(line, end);
}

}  // namespace

std::unique_ptr<WaveFile> make_vcd_file(const std::string& path) {
  return std::make_unique<VcdFile>(path);
}

}  // namespace systole::testbench
