#include "hw/axi/axi_subordinate.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

namespace systole::hw {

AxiSubordinate::AxiSubordinate(const Params& params) : params_(params), random_(params.seed) {
  const bool power = params.bytes != 0 && (params.bytes & (params.bytes - 1)) == 0;
  if (!power || params.bytes > kAxiMaxBytes) {
    throw std::invalid_argument("AXI4 port: data of " + std::to_string(params.bytes) +
                                " bytes, expected a power of two up to 128");
  }
  if (params.bus_bytes == 0 || params.reads == 0 || params.writes == 0 ||
      params.stalls_per_mille >= 1000) {
    throw std::invalid_argument(
        "AXI4 port: expected a bus of at least one byte, at least one read and one write at a "
        "time, and fewer than 1000 stalls in 1000 cycles");
  }
}

// What the bus carried without data, because it was refused, comes at once.
std::uint64_t AxiSubordinate::beat_cycle(const Transaction& read) const {
  if (read.response != AxiResponse::kOkay) return read.answer;
  const auto bus_beat = [&](std::uint64_t end) { return (end - 1) / params_.bus_bytes; };
  const std::uint64_t left =
      bus_beat(axi_range(read.burst).end) - bus_beat(axi_beat(read.burst, read.beats).end);
  return read.answer - std::min(read.answer, left);
}

template <typename Cycle>
AxiSubordinate::Transactions::iterator AxiSubordinate::next(Transactions& all, std::uint64_t cycle,
                                                            Cycle from) {
  auto best = all.end();
  for (auto it = all.begin(); it != all.end(); ++it) {
    if (it->waits_for != 0 || from(*it) > cycle) continue;
    const bool is_oldest = std::none_of(
        all.begin(), it, [&](const Transaction& older) { return older.burst.id == it->burst.id; });
    if (is_oldest && (best == all.end() || it->answer < best->answer)) best = it;
  }
  return best;
}

void AxiSubordinate::drive(AxiPins& pins, std::uint64_t cycle) {
  pins.ar.ready = reads_.size() < params_.reads && !stalls();
  pins.aw.ready = writes_.size() < params_.writes && !stalls();
  pins.w.ready = complete_ < params_.writes && !stalls();

  if (reading_ == reads_.end()) {
    reading_ = next(reads_, cycle, [&](const Transaction& read) { return beat_cycle(read); });
  }
  if (!r_offered_) {
    r_offered_ = reading_ != reads_.end() && beat_cycle(*reading_) <= cycle && !stalls();
  }
  pins.r.valid = r_offered_;
  if (r_offered_) {
    const Transaction& read = *reading_;
    const std::uint64_t begin = axi_range(read.burst).begin;
    const AxiRange beat = axi_beat(read.burst, read.beats);
    pins.r.id = read.burst.id;
    pins.r.response = read.response;
    pins.r.last = read.beats == read.burst.len;
    pins.r.data.fill(0);
    for (std::uint64_t byte = beat.begin; byte < beat.end && !read.bytes.empty(); ++byte) {
      pins.r.data[byte % params_.bytes] = read.bytes[byte - begin];
    }
  }

  if (writing_ == writes_.end() && !stalls()) {
    writing_ = next(writes_, cycle, [](const Transaction& write) { return write.answer; });
  }
  pins.b.valid = writing_ != writes_.end();
  if (pins.b.valid) {
    pins.b.id = writing_->burst.id;
    pins.b.response = writing_->response;
  }
}

void AxiSubordinate::count_waits(const AxiPins& pins) {
  counts_.address_waits += pins.aw.valid && !pins.aw.ready ? 1 : 0;
  counts_.address_waits += pins.ar.valid && !pins.ar.ready ? 1 : 0;
  counts_.data_waits += pins.w.valid && !pins.w.ready ? 1 : 0;
  counts_.response_waits += pins.r.valid && !pins.r.ready ? 1 : 0;
  counts_.response_waits += pins.b.valid && !pins.b.ready ? 1 : 0;
}

AxiSubordinate::Transaction& AxiSubordinate::open(Transactions& all, const AxiAddress& burst) {
  Transaction& transaction = all.emplace_back();
  transaction.burst = burst;
  transaction.number = numbers_++;
  return transaction;
}

void AxiSubordinate::ask_read(const AxiAddress& burst, std::uint64_t cycle,
                              const std::function<void(Request)>& ask) {
  Transaction& read = open(reads_, burst);
  ++counts_.reads;
  counts_.most_reads = std::max<std::uint64_t>(counts_.most_reads, reads_.size());
  if (burst.burst == AxiBurst::kFixed) {
    ++counts_.refused;
    read.response = AxiResponse::kSlvErr;
    read.answer = cycle;
    return;
  }
  const AxiRange range = axi_range(burst);
  read.bytes.resize(range.end - range.begin);
  read.waits_for = 1;
  ++counts_.requests;
  ask({range.begin, read.bytes.data(), static_cast<std::uint32_t>(read.bytes.size()), false,
       read.number});
}

void AxiSubordinate::open_write(const AxiAddress& burst, const std::function<void(Request)>& ask) {
  Transaction& write = open(writes_, burst);
  filling_.push_back(std::prev(writes_.end()));
  write.waits_for = 1;
  if (!params_.asks_with_address || burst.burst == AxiBurst::kFixed) return;
  const AxiRange range = axi_range(burst);
  ++write.waits_for;
  ++counts_.requests;
  ask({range.begin, nullptr, static_cast<std::uint32_t>(range.end - range.begin), true,
       write.number});
}

void AxiSubordinate::end_write(std::uint64_t cycle, const std::function<void(Request)>& ask) {
  Transaction& write = *filling_.front();
  filling_.pop_front();
  --write.waits_for;
  ++counts_.writes;
  const AxiRange range = axi_range(write.burst);
  write.bytes.resize(range.end - range.begin);
  std::vector<bool> enabled(write.bytes.size());
  for (unsigned beat = 0;; ++beat) {
    const WriteBeat& data = data_.front();
    const AxiRange bytes = axi_beat(write.burst, beat);
    for (std::uint64_t byte = bytes.begin; byte < bytes.end; ++byte) {
      const std::size_t lane = byte % params_.bytes;
      write.bytes[byte - range.begin] = data.data[lane];
      enabled[byte - range.begin] = data.strobes[lane];
    }
    const bool last = data.last || beat == write.burst.len;
    data_.pop_front();
    if (last) break;
  }
  --complete_;
  write.answer = std::max(write.answer, cycle);
  if (write.burst.burst == AxiBurst::kFixed) {
    ++counts_.refused;
    write.response = AxiResponse::kSlvErr;
    return;
  }
  const bool takes_time = !params_.asks_with_address;
  std::vector<Request> requests;
  for (auto it = enabled.begin(); (it = std::find(it, enabled.end(), true)) != enabled.end();) {
    const auto end = std::find(it, enabled.end(), false);
    const auto begin = static_cast<std::size_t>(it - enabled.begin());
    requests.push_back({range.begin + begin, write.bytes.data() + begin,
                        static_cast<std::uint32_t>(end - it), true, write.number, takes_time});
    it = end;
  }
  if (takes_time) {
    write.waits_for += requests.size();
    counts_.requests += requests.size();
  }
  for (const Request& request : requests) ask(request);
}

void AxiSubordinate::edge(const AxiPins& pins, std::uint64_t cycle,
                          const std::function<void(Request)>& ask) {
  count_waits(pins);
  if (pins.r.valid && pins.r.ready) {
    ++counts_.read_beats;
    r_offered_ = false;
    if (reading_->beats++ == reading_->burst.len) {
      reads_.erase(reading_);
      reading_ = reads_.end();
    }
  }
  if (pins.b.valid && pins.b.ready) {
    writes_.erase(writing_);
    writing_ = writes_.end();
  }
  if (pins.ar.valid && pins.ar.ready) ask_read(pins.ar, cycle, ask);
  if (pins.aw.valid && pins.aw.ready) open_write(pins.aw, ask);
  if (pins.w.valid && pins.w.ready) {
    ++counts_.write_beats;
    data_.push_back({pins.w.data, pins.w.strobes, pins.w.last});
    complete_ += pins.w.last ? 1 : 0;
  }
  counts_.most_writes = std::max<std::uint64_t>(counts_.most_writes, writes_.size());
  while (!filling_.empty() && complete_ != 0) end_write(cycle, ask);
}

void AxiSubordinate::answer(const Request& request, std::uint64_t cycle, AxiResponse response) {
  Transactions& all = request.write ? writes_ : reads_;
  const auto transaction = std::find_if(all.begin(), all.end(), [&](const Transaction& candidate) {
    return candidate.number == request.transaction;
  });
  // The edge before `cycle` takes it.
  transaction->answer = std::max(transaction->answer, cycle - 1);
  transaction->response = std::max(transaction->response, response);
  --transaction->waits_for;
}

}  // namespace systole::hw
