#include "mapper/replay/replay_ports.h"

namespace systole::mapper {

double ReplayPort::slot_free(std::uint64_t ahead) {
  const std::uint64_t number = issued_ + ahead;
  if (number < window_) return 0;
  const std::uint64_t wanted = number - window_;
  // The next request needs the oldest slot: what is before it is of no use any more.
  const std::uint64_t needed = issued_ < window_ ? 0 : issued_ - window_;
  while (count_ > 1 && records_[oldest_].end <= needed) {
    begin_ = records_[oldest_].end;
    oldest_ = (oldest_ + 1) % kRecords;
    --count_;
  }
  // The record of that request, from the end that is nearer.
  const auto end_of = [&](unsigned i) { return records_[(oldest_ + i) % kRecords].end; };
  unsigned i = 0;
  if (2 * ahead < window_) {
    while (i < count_ && end_of(i) <= wanted) ++i;
  } else {
    i = count_;
    while (i != 0 && wanted < end_of(i - 1)) --i;
  }
  if (i == count_) return 0;
  const Record& record = records_[(oldest_ + i) % kRecords];
  const std::uint64_t begin = i == 0 ? begin_ : end_of(i - 1);
  const std::uint64_t steps = record.end - begin - 1;
  if (steps == 0) return record.last;
  return record.first + (record.last - record.first) * static_cast<double>(wanted - begin) /
                            static_cast<double>(steps);
}

void ReplayPort::add(std::uint64_t requests, double last_issue, double first_done,
                     double last_done) {
  issued_ += requests;
  next_issue_ = last_issue + 1;
  if (count_ == kRecords) {  // two of the oldest become one
    Record& second = records_[(oldest_ + 1) % kRecords];
    second.first = records_[oldest_].first;
    oldest_ = (oldest_ + 1) % kRecords;
    --count_;
  }
  records_[(oldest_ + count_++) % kRecords] = {issued_, first_done, last_done};
}

}  // namespace systole::mapper
