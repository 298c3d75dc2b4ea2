#include "testbench/inject/injector.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "testbench/common/child_process.h"

namespace systole::testbench {

void Injector::inject_in_copies(std::vector<std::size_t> positions, std::function<void()> done) {
  waiting_ = std::move(positions);
  done_ = std::move(done);
  std::stable_sort(waiting_.begin(), waiting_.end(), [this](std::size_t a, std::size_t b) {
    return results_[a].plan.toggle[0].step < results_[b].plan.toggle[0].step;
  });
}

void Injector::inject(std::size_t position, bool as_early) {
  own_ = position;
  plan_ = results_[position].plan;
  const bool split = plan_.toggles != 0 && plan_.toggle[0].split.tiles != hw::ArrayTiles::kNone;
  if (!as_early || split || plan_.in_array) return;
  plan_.toggle[0] = {plan_.earliest, {}};
  plan_.toggles = std::max<std::uint8_t>(plan_.toggles, 1);
}

void Injector::flip() {
  const Injection& injection = results_[*own_].injection;
  switch (injection.space()) {
    case hw::Space::kScratchpad:
      system_.core.memory.scratchpad.data()[injection.address] ^= injection.mask();
      break;
    case hw::Space::kAccumulator:
      system_.core.memory.accumulator.data()[injection.address] ^= injection.mask();
      break;
    case hw::Space::kDram:
      system_.dram.stored(injection.address) ^= injection.mask();
      break;
    case hw::Space::kStatistics:
      throw std::logic_error("no injection goes there");
  }
}

void Injector::flip_before(std::uint64_t step) {
  for (std::size_t i = 0; i < plan_.toggles; ++i) {
    const FlipPlan::Toggle& toggle = plan_.toggle[i];
    if (toggle.step != step) continue;
    if (plan_.in_array) {
      array_flip_ = plan_.array;
    } else if (toggle.split.tiles == hw::ArrayTiles::kNone) {
      flip();
    } else {
      split_ = toggle.split;
    }
  }
}

std::uint64_t Injector::step() {
  const std::uint64_t step = steps_++;
  split_.reset();
  array_flip_.reset();
  while (!own_ && next_ < waiting_.size()) {
    const std::size_t position = waiting_[next_];
    if (results_[position].plan.toggle[0].step != step) break;
    const pid_t copy = fork_child();
    if (copy == 0) {
      inject(position, false);
      break;
    }
    if (copy < 0 || wait_for_child(copy) != 0) results_[position].ended_early = true;
    ++next_;
    done_();
  }
  if (own_) flip_before(step);
  return step;
}

void Injector::between_parts() { flip(); }

}  // namespace systole::testbench
