#include "testbench/common/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "testbench/common/text.h"

namespace systole::testbench {
namespace {

constexpr std::size_t kBarWidth = 40;
constexpr auto kQuietTime = std::chrono::seconds(1);
constexpr auto kInterval = std::chrono::milliseconds(100);
constexpr const char* kClearLine = "\r\x1b[K";

std::string bar(std::uint64_t done, std::uint64_t total) {
  const std::size_t filled = std::min<std::uint64_t>(kBarWidth * done / total, kBarWidth);
  return fmt::format("[{}{}]", std::string(filled, '#'), std::string(kBarWidth - filled, '.'));
}

}  // namespace

StatusLine::StatusLine()
    : terminal_(::isatty(STDERR_FILENO) == 1),
      begin_(std::chrono::steady_clock::now()),
      next_(begin_ + kQuietTime) {}

StatusLine::~StatusLine() {
  if (!drawn_) return;
  fmt::print(stderr, "{}", kClearLine);
  std::fflush(stderr);
}

bool StatusLine::due() {
  if (!terminal_) return false;
  const Time now = std::chrono::steady_clock::now();
  if (now < next_) return false;
  next_ = now + kInterval;
  return true;
}

void StatusLine::draw(const std::string& text) {
  drawn_ = true;
  // A full line would make some terminals go to the next one.
  fmt::print(stderr, "{}{}", kClearLine, text.substr(0, kTextWidth - 1));
  std::fflush(stderr);
}

std::uint64_t StatusLine::seconds() const {
  const auto time = std::chrono::steady_clock::now() - begin_;
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(time).count());
}

void Progress::update(std::size_t done) {
  if (total_ == 0 || !line_.due()) return;
  line_.draw(fmt::format("{} {}/{}", bar(done, total_), done, total_));
}

void SimulationBar::update(const SimulationProgress& progress) {
  if (progress.all_commands == 0 || !line_.due()) return;
  if (progress.all_operators != 0) {
    return line_.draw(fmt::format("{} {}/{} operators of the reference",
                                  bar(progress.operators, progress.all_operators),
                                  progress.operators, progress.all_operators));
  }
  const std::string what =
      progress.all_inferences == 1
          ? fmt::format("{}/{} commands", progress.commands, progress.all_commands)
          : fmt::format("{}/{} inferences", progress.inferences, progress.all_inferences);
  line_.draw(bar(progress.commands, progress.all_commands) + " " + what);
}

BatchProgress* BatchProgress::current_ = nullptr;

BatchProgress::BatchProgress() : process_(::getpid()) { current_ = this; }

BatchProgress::~BatchProgress() { current_ = nullptr; }

BatchProgress* BatchProgress::current() {
  return current_ != nullptr && current_->process_ == ::getpid() ? current_ : nullptr;
}

void BatchProgress::complete(const std::string& section) {
  ++sections_;
  last_ = section;
  done_ = total_ = 0;
  tick();
}

void BatchProgress::simulations(std::size_t done, std::size_t total) {
  done_ = done;
  total_ = total;
  tick();
}

void BatchProgress::tick() {
  if (!line_.due()) return;
  std::string text = fmt::format("{} s", line_.seconds());
  if (total_ != 0) text += fmt::format(", {}/{} simulations", done_, total_);
  if (sections_ != 0) text += fmt::format(", section {} done: {}", sections_, last_);
  line_.draw(text);
}

}  // namespace systole::testbench
