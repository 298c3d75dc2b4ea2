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
  serves_ = machine.array.dataflow == Dataflow::kWeightStationary &&
            sums.memories == SumMemories::kPerBank && sums.ports == 2;
  size_ = {machine.array.cols, sums.banks, sums.bank_bytes() / 4 / machine.array.cols};
}

void SumTraffic::know(OperandStream& array, const BankService& banks, std::uint64_t now) {
  array_ = &array;
  banks_ = &banks;
  known_ = array.steps().known(now);
  if (!loads_.empty()) place();
  keep_sums();
}

void SumTraffic::keep_sums() {
  const std::uint64_t oldest = loads_.empty() ? kNever : loads_.front().front().cycle;
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
  const auto banks = banks_of(first, last);
  return array_->steps().next_sums(
      from, known_.now, [&](std::uint64_t written_first, std::uint64_t written_last) {
        const auto others = banks_of(written_first, written_last);
        return others.first <= banks.second && banks.first <= others.second;
      });
}

std::optional<bool> SumTraffic::can_read(std::uint64_t cycle, std::uint64_t at) const {
  if (cycle >= known_before()) return std::nullopt;
  const SumRuns::Sums sums = sums_in(cycle);
  if (!sums.are_there || !sums.accumulate || cycle == 0) return true;
  const SumRuns::Sums before = sums_in(cycle - 1);
  const auto load = std::lower_bound(
      writes_.begin(), writes_.end(), cycle - 1,
      [](const Written& written, std::uint64_t when) { return written.cycle < when; });
  const SumMemories::Pair reads = size_.of_vector(at);
  for (const std::uint64_t memory : size_.of_vector(sums.at)) {
    if (!SumMemories::uses(reads, memory)) continue;
    if (before.are_there && SumMemories::uses(size_.of_vector(before.at), memory)) return false;
    if (load != writes_.end() && load->cycle + 1 == cycle &&
        SumMemories::uses(load->memories, memory)) {
      return false;
    }
  }
  return true;
}

bool SumTraffic::is_free(std::uint64_t from, std::uint64_t to, std::uint64_t first,
                         std::uint64_t last) {
  const auto banks = banks_of(first, last);
  if (banks.first < free_.first || banks.second > free_.last || from < free_.from ||
      to >= free_.until) {
    free_ = {banks.first, banks.second, from, free(from, first, last).until};
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
  return written_ <= begins && is_free(begins, load.placed(), load.to / load.element,
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
    const SumMemories::Pair memories = size_.of_sums(sums.first, sums.last);
    std::uint64_t cycle = std::max(sums.cycle + 1, written_);
    for (; cycle < known_before() && !is_free(cycle, cycle, sums.first, sums.last); ++cycle) {
      const SumRuns::Sums& by_array = sums_in(cycle);
      if (!by_array.are_there) break;
      const SumMemories::Pair taken = size_.of_vector(by_array.at);
      if (!SumMemories::uses(memories, taken[0]) && !SumMemories::uses(memories, taken[1])) break;
    }
    if (cycle >= known_before()) break;
    writes_.push_back({cycle, memories});
    written_ = cycle + 1;
    load.pop();
    if (load.beats != 0) continue;
    placed = written_;
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
