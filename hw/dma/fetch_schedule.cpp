#include "hw/dma/fetch_schedule.h"

#include <algorithm>

#include "hw/program/program_image.h"

namespace systole::hw {

ReadTimes FetchSchedule::read(std::uint64_t offset, std::uint64_t bytes, std::uint64_t cycle) {
  RowRead run;
  run.address = address_ + offset;
  run.bytes = bytes;
  const ReadTimes times = port_.run(run, arrivals_.size(), std::max(free_, cycle), requests_);
  free_ = times.released;
  return times;
}

void FetchSchedule::start(std::uint64_t cycle) {
  const std::uint64_t bytes = kHeaderBytes + std::uint64_t{chunk_} * kCommandBytes;
  arrivals_.push_back(read(0, bytes, cycle).completed);
}

std::uint64_t FetchSchedule::chunk_wanted() const {
  const std::size_t next = arrivals_.size();
  return std::max({arrivals_.back(), looked_, next < 2 ? 0 : out_.at(next - 2)});
}

void FetchSchedule::read_chunk() {
  const auto first = static_cast<std::uint32_t>(arrivals_.size()) * chunk_;
  const std::uint64_t bytes = std::uint64_t{std::min(chunk_, commands_ - first)} * kCommandBytes;
  arrivals_.push_back(
      read(kHeaderBytes + std::uint64_t{first} * kCommandBytes, bytes, chunk_wanted()).completed);
}

std::uint64_t FetchSchedule::arrival(std::uint32_t index) {
  while (arrivals_.size() <= index / chunk_) read_chunk();
  return arrivals_[index / chunk_];
}

void FetchSchedule::is_out(std::uint32_t index, std::uint64_t cycle) {
  if (index % chunk_ == chunk_ - 1) out_.push_back(cycle);
}

std::uint64_t FetchSchedule::record(std::uint64_t offset, std::uint64_t bytes,
                                    std::uint64_t cycle) {
  return read(offset, bytes, cycle).completed;
}

}  // namespace systole::hw
