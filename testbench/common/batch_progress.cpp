#include "testbench/common/batch_progress.h"

#include <fmt/format.h>
#include <unistd.h>

namespace systole::testbench {

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
