#include "hw/dma/fetch_schedule.h"

#include <algorithm>

#include "hw/program/program_image.h"

namespace systole::hw {

void FetchSchedule::read(std::uint64_t offset, std::uint64_t bytes, std::uint64_t cycle) {
  RowRead run;
  run.address = address_ + offset;
  run.bytes = bytes;
  const ReadTimes times = port_.run(run, arrivals_.size(), std::max(free_, cycle), requests_);
  free_ = times.released;
  arrivals_.push_back(times.completed);
}

void FetchSchedule::start(std::uint64_t cycle) {
  read(0, kHeaderBytes + std::uint64_t{chunk_} * kCommandBytes, cycle);
}

std::uint64_t FetchSchedule::arrival(std::uint32_t index) {
  while (arrivals_.size() <= index / chunk_) {
    const std::size_t next = arrivals_.size();
    const auto first = static_cast<std::uint32_t>(next) * chunk_;
    const std::uint64_t room = next < 2 ? 0 : out_.at(next - 2);
    read(kHeaderBytes + std::uint64_t{first} * kCommandBytes,
         std::uint64_t{std::min(chunk_, commands_ - first)} * kCommandBytes,
         std::max(arrivals_.back(), room));
  }
  return arrivals_[index / chunk_];
}

void FetchSchedule::is_out(std::uint32_t index, std::uint64_t cycle) {
  if (index % chunk_ == chunk_ - 1) out_.push_back(cycle);
}

}  // namespace systole::hw
