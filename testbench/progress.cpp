#include "testbench/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace systole::testbench {
namespace {

constexpr std::size_t kBarWidth = 40;
constexpr auto kQuietTime = std::chrono::seconds(1);
constexpr auto kInterval = std::chrono::milliseconds(100);

}  // namespace

Progress::Progress(std::size_t total)
    : total_(total),
      terminal_(::isatty(STDERR_FILENO) == 1),
      next_(std::chrono::steady_clock::now() + kQuietTime) {}

Progress::~Progress() {
  if (drawn_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::update(std::size_t done) {
  if (!terminal_ || total_ == 0) return;
  const Time now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + kInterval;
  drawn_ = true;
  const std::size_t filled = kBarWidth * done / total_;
  fmt::print(stderr, "\r[{}{}] {}/{}", std::string(filled, '#'),
             std::string(kBarWidth - filled, '.'), done, total_);
  std::fflush(stderr);
}

}  // namespace systole::testbench
