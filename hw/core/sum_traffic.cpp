#include "hw/core/sum_traffic.h"

#include <iterator>

#include "base/round.h"

namespace systole::hw {
namespace {

/// Requests of which it is known when they are in the accumulator: more than are in flight.
constexpr std::size_t kKeptRequests = 1024;

}  // namespace

SumTraffic::SumTraffic(const Machine& machine) {
  const Machine::Accumulator& sums = machine.accumulator;
  constexpr std::uint32_t kUsers = 4;
  serves_ = machine.array.dataflow == Dataflow::kWeightStationary && sums.ports < kUsers;
  size_ = {machine.array.cols, sums.banks, sums.bank_bytes() / 4 / machine.array.cols,
           sums.memories};
  readers_wait_ = sums.ports < kUsers - 1;
}

void SumTraffic::know(OperandStream& array, const BankService& banks, std::uint64_t now) {
  array_ = &array;
  banks_ = &banks;
  known_ = array.steps().known(now);
  if (!loads_.empty()) place();
  keep_sums();
}

void SumTraffic::keep_sums() {
  const std::uint64_t oldest = loads_.empty() ? kNever : loads_.front().begins() - 1;
  array_->steps().sums().keep_from(std::min(oldest, read_from_));
}

std::pair<std::uint64_t, std::uint64_t> SumTraffic::banks_of(std::uint64_t first,
                                                             std::uint64_t last) const {
  const std::uint64_t sums = size_.cols * size_.rows_per_bank;
  // What does not fit goes on at the begin.
  if (last >= sums * size_.banks) return {0, size_.banks - 1};
  return {first / sums, last / sums};
}

SumReads::Free SumTraffic::free(std::uint64_t from, std::uint64_t first, std::uint64_t last) const {
  return readers_wait_ ? left_alone(from, first, last) : Free{kNever, false};
}

SumReads::Free SumTraffic::left_alone(std::uint64_t from, std::uint64_t first,
                                      std::uint64_t last) const {
  const auto banks = banks_of(first, last);
  return array_->steps().next_sums(
      from, known_.now, [&](std::uint64_t written_first, std::uint64_t written_last) {
        const auto others = banks_of(written_first, written_last);
        return others.first <= banks.second && banks.first <= others.second;
      });
}

std::optional<bool> SumTraffic::can_read(std::uint64_t cycle, std::uint64_t first,
                                         std::uint64_t last) const {
  if (!readers_wait_ || cycle == 0) return true;
  if (cycle >= known_before()) return std::nullopt;
  const SumRuns::Sums sums = sums_in(cycle);
  if (!sums.are_there || !sums.accumulate) return true;
  const SumRuns::Sums before = sums_in(cycle - 1);
  const SumRange wanted{first, last}, adds = size_.vector(sums.at);
  const auto loads = std::lower_bound(
      writes_.begin(), writes_.end(), cycle - 1,
      [](const LoadedSums& written, std::uint64_t when) { return written.cycle < when; });
  for (std::uint64_t row = adds.first / size_.cols; row <= adds.last / size_.cols; ++row) {
    const std::uint64_t memory = size_.of(row);
    if (!size_.uses(memory, wanted)) continue;
    if (before.are_there && size_.uses(memory, size_.vector(before.at))) return false;
    for (auto load = loads; load != writes_.end() && load->cycle + 1 == cycle; ++load) {
      if (size_.uses(memory, load->sums())) return false;
    }
  }
  return true;
}

bool SumTraffic::is_free(std::uint64_t from, std::uint64_t to, std::uint64_t first,
                         std::uint64_t last) {
  const auto banks = banks_of(first, last);
  if (banks.first < free_.first || banks.second > free_.last || from < free_.from ||
      to >= free_.until) {
    free_ = {banks.first, banks.second, from, left_alone(from, first, last).until};
  }
  return to < free_.until;
}

SumTraffic::Request SumTraffic::add(std::uint64_t address, std::uint64_t bytes, std::uint64_t beat,
                                    std::uint64_t to, std::uint64_t element, std::uint64_t done) {
  const std::uint64_t beats = blocks_touched(address, bytes, beat);
  const Queued load{requests_, address, bytes, beat, to, element, done, beats};
  const bool is_placed = loads_.empty() && is_free(load);
  placed_.push_back(is_placed ? load.placed() : 0);
  if (placed_.size() > kKeptRequests) placed_.pop_front();
  if (!is_placed) {
    auto at = loads_.end();
    while (at != loads_.begin() && std::prev(at)->done > done) --at;
    loads_.insert(at, load);
    keep_sums();
  }
  return requests_++;
}

bool SumTraffic::is_free(const Queued& load) {
  const std::uint64_t begins = load.front().cycle + 1;
  return std::max(written_, load.not_before) <= begins &&
         is_free(begins, load.placed(), load.to / load.element,
                 (load.to + load.bytes - 1) / load.element);
}

// Beat by beat, as far as it is known what the array writes.
void SumTraffic::place() {
  while (!loads_.empty()) {
    Queued& load = loads_.front();
    std::uint64_t& placed = placed_[placed_.size() - (requests_ - load.request)];
    if (is_free(load)) {
      placed = load.placed();
      loads_.pop_front();
      continue;
    }
    const LoadedSums sums = load.front();
    std::uint64_t cycle = std::max(load.begins(), written_);
    for (; cycle < known_before() && !is_free(cycle, cycle, sums.first, sums.last); ++cycle) {
      const SumRuns::Sums& by_array = sums_in(cycle);
      if (!by_array.are_there || !size_.meet(sums.sums(), size_.vector(by_array.at))) break;
    }
    if (cycle >= known_before()) {
      load.not_before = cycle;
      break;
    }
    const auto after = std::upper_bound(
        writes_.begin(), writes_.end(), cycle,
        [](std::uint64_t when, const LoadedSums& written) { return when < written.cycle; });
    writes_.insert(after, {cycle, sums.first, sums.last});
    // Beats of a bus that is faster than the core can come in the same cycle.
    if (cycle != sums.cycle + 1) written_ = cycle + 1;
    load.pop();
    if (load.beats != 0) continue;
    placed = cycle + 1;
    loads_.pop_front();
  }
  while (!writes_.empty() && writes_.front().cycle + 2 < std::min(known_.now, read_from_)) {
    writes_.pop_front();
  }
}

SumTraffic::Placed SumTraffic::placed(Request request) const {
  const std::uint64_t after = requests_ - request;  // it and those after it
  if (after > placed_.size()) return {0, true};
  if (const std::uint64_t cycle = placed_[placed_.size() - after]; cycle != 0) return {cycle, true};
  const auto load = std::find_if(loads_.begin(), loads_.end(),
                                 [&](const Queued& each) { return each.request == request; });
  return {std::max(load->done + 1, known_before()) + 1, false};
}

}  // namespace systole::hw
