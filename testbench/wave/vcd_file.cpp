#include "testbench/wave/vcd_file.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "tlm/common/time.h"

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

}  // namespace

VcdFile::VcdFile(const std::string& path, const Limits& limits, std::function<void()> before_look)
    : file_(path), limits_(limits), before_look_(std::move(before_look)) {
  tlm_model::require_ps_resolution();
  sc_core::sc_get_curr_simcontext()->add_trace_file(this);
}

VcdFile::~VcdFile() { sc_core::sc_get_curr_simcontext()->remove_trace_file(this); }

template <typename T>
void VcdFile::add(const T& object, const std::string& name, int width) {
  const auto read = [&object, width]() -> Value {
    if constexpr (!std::is_same_v<T, bool>) {
      if (object == std::numeric_limits<T>::max()) return {Value::Kind::kNone, 0};
    }
    const std::uint64_t bits = object;
    if (width < 64 && bits >> width != 0) return {Value::Kind::kUnknown, 0};
    return {Value::Kind::kNumber, bits};
  };
  variables_.push_back(
      {{name, static_cast<unsigned>(width)}, identifier(variables_.size()), read, {}});
}

void VcdFile::trace(const unsigned int& object, const std::string& name, const char** texts) {
  unsigned count = 0;
  while (texts[count] != nullptr) ++count;
  int width = 1;
  while (count > 1U << width) ++width;
  add(object, name, width);
}

void VcdFile::refuse(const std::string& name) {
  SC_REPORT_WARNING("/systole/wave", (name + ": only unsigned variables are recorded").c_str());
}

std::vector<VcdFile::Signal> VcdFile::signals() const {
  std::vector<Signal> signals;
  for (const Variable& variable : variables_) signals.push_back(variable.signal);
  return signals;
}

void VcdFile::append_header(std::string& text) const {
  text += "$version Systole $end\n$timescale 1 ps $end\n";
  std::vector<std::string> open;
  const auto close_to = [&](std::size_t depth) {
    for (; open.size() > depth; open.pop_back()) text += "$upscope $end\n";
  };
  for (const Variable& variable : variables_) {
    std::vector<std::string> scopes = parts_of(variable.signal.name);
    const std::string name = scopes.back();
    scopes.pop_back();
    const auto differs = std::mismatch(open.begin(), open.end(), scopes.begin(), scopes.end());
    close_to(static_cast<std::size_t>(differs.first - open.begin()));
    for (std::size_t i = open.size(); i < scopes.size(); ++i) {
      text += "$scope module " + scopes[i] + " $end\n";
      open.push_back(scopes[i]);
    }
    const unsigned width = variable.signal.width;
    text += "$var wire " + std::to_string(width) + " " + variable.id + " " + name;
    if (width > 1) text += " [" + std::to_string(width - 1) + ":0]";
    text += " $end\n";
  }
  close_to(0);
  text += "$enddefinitions $end\n";
}

void VcdFile::append_value(std::string& text, const Variable& variable) {
  const Value value = variable.last;
  const unsigned width = variable.signal.width;
  if (width > 1) text += 'b';
  if (value.kind != Value::Kind::kNumber) {
    text += value.kind == Value::Kind::kNone ? 'z' : 'x';
  } else {
    unsigned bit = width;
    while (bit > 1 && (value.bits >> (bit - 1) & 1U) == 0) --bit;
    while (bit-- > 0) text += (value.bits >> bit & 1U) != 0 ? '1' : '0';
  }
  if (width > 1) text += ' ';
  text += variable.id;
  text += '\n';
}

std::string VcdFile::stamp(std::uint64_t time) {
  if (time == stamp_) return {};
  stamp_ = time;
  return "#" + std::to_string(time) + "\n";
}

void VcdFile::put(const std::string& text) {
  file_.stream().write(text.data(), static_cast<std::streamsize>(text.size()));
  bytes_ += text.size();
}

void VcdFile::write_comment(const std::string& comment) { put("$comment " + comment + " $end\n"); }

void VcdFile::begin(std::uint64_t time) {
  std::string text;
  append_header(text);
  text += "#" + std::to_string(time) + "\n$dumpvars\n";
  for (const Variable& variable : variables_) append_value(text, variable);
  text += "$end\n";
  put(text);
  begun_ = true;
  begin_ = end_ = stamp_ = time;
}

void VcdFile::cycle(bool delta_cycle) {
  if (!delta_cycle && !stopped_) look(tlm_model::to_ps(sc_core::sc_time_stamp()));
}

void VcdFile::look(std::uint64_t now) {
  // What changes after the end of the window is not shown; the rest lasts up to there.
  if (now > limits_.to_ps) {
    if (!begun_) begin(limits_.to_ps);
    end_ = limits_.to_ps;
    stopped_ = true;
    return;
  }
  // The values at the beginning of the window are those of the last look before it.
  if (!begun_ && looked_ && now > limits_.from_ps) begin(limits_.from_ps);
  looked_ = true;
  if (before_look_) before_look_();
  std::string text;
  for (Variable& variable : variables_) {
    const Value value = variable.read();
    if (value == variable.last) continue;
    variable.last = value;
    if (begun_) append_value(text, variable);
  }
  if (!begun_ && now >= limits_.from_ps) begin(now);
  if (!text.empty()) put(stamp(now) + text);
  if (begun_) end_ = now;
  if (bytes_ >= limits_.max_bytes) full_ = stopped_ = true;
}

void VcdFile::stop() {
  if (!stopped_) look(tlm_model::to_ps(sc_core::sc_time_stamp()));
  stopped_ = true;
}

void VcdFile::commit() {
  stop();
  if (!begun_) begin(tlm_model::to_ps(sc_core::sc_time_stamp()));
  put(stamp(end_));
  file_.commit();
}

}  // namespace systole::testbench
