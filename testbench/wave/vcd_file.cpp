#include <algorithm>
#include <charconv>
#include <cstddef>
#include <utility>

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

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t dot = path.find('.'); dot != path.npos; dot = path.find('.', begin)) {
    parts.push_back(path.substr(begin, dot - begin));
    begin = dot + 1;
  }
  parts.push_back(path.substr(begin));
  return parts;
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
  std::vector<std::pair<std::vector<std::string>, std::size_t>> sorted;
  for (std::size_t i = 0; i < signals.size(); ++i) {
    sorted.emplace_back(parts_of(signals[i].name), i);
  }
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::string> open;
  const auto close_to = [&](std::size_t depth) {
    for (; open.size() > depth; open.pop_back()) text_ += "$upscope $end\n";
  };
  for (auto& [parts, index] : sorted) {
    const std::string name = std::move(parts.back());
    parts.pop_back();
    std::size_t common = 0;
    while (common < std::min(open.size(), parts.size()) && open[common] == parts[common]) ++common;
    close_to(common);
    for (; common < parts.size(); ++common) {
      open.push_back(parts[common]);
      text_ += "$scope module " + parts[common] + " $end\n";
    }
    const unsigned width = signals[index].width;
    text_ += "$var wire " + std::to_string(width) + " " + identifier(index) + " " + name;
    if (width > 1) text_ += " [" + std::to_string(width - 1) + ":0]";
    text_ += " $end\n";
  }
  close_to(0);
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
