#include "hw/axi/axi_requester.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace systole::hw {
namespace {

constexpr std::uint64_t kMostBeats = 256;  // A3.4.1

/// log2 of the largest beat at `address` that does not reach beyond `end`.
std::uint8_t beat_size(std::uint64_t address, std::uint64_t end, unsigned width) {
  std::uint8_t size = 0;
  while ((std::uint64_t{2} << size) <= width &&
         ((address >> (size + 1)) + 1) << (size + 1) <= end) {
    ++size;
  }
  return size;
}

std::uint8_t size_of(unsigned width) {
  std::uint8_t size = 0;
  while (1U << size < width) ++size;
  return size;
}

/// The burst from `address` on with beats of 1 << size bytes, up to `end` or as far as it may go.
AxiAddress burst_to(std::uint64_t address, std::uint64_t end, std::uint8_t size) {
  const std::uint64_t bytes = std::uint64_t{1} << size;
  const std::uint64_t aligned = address / bytes * bytes;
  const std::uint64_t boundary = (address / kAxiBoundary + 1) * kAxiBoundary;
  const std::uint64_t beats = (std::min(end, boundary) - aligned + bytes - 1) / bytes;
  AxiAddress burst;
  burst.address = address;
  burst.size = size;
  burst.len = static_cast<std::uint8_t>(std::min(beats, kMostBeats) - 1);
  return burst;
}

/// Calls `visit(byte of the request, beat, lane)` for the bytes of a burst that belong to it.
template <typename Visit>
void for_each_byte(const AxiAddress& burst, const AxiRequest& request, unsigned width,
                   Visit visit) {
  const std::uint64_t end = request.address + request.bytes;
  for (unsigned beat = 0; beat < axi_beats(burst); ++beat) {
    const AxiRange range = axi_beat(burst, beat);
    for (std::uint64_t byte = range.begin; byte < std::min(range.end, end); ++byte) {
      const std::size_t offset = byte - request.address;
      if (request.enables != nullptr && request.enables[offset] == 0) continue;
      visit(offset, beat, byte % width);
    }
  }
}

}  // namespace

std::vector<AxiBurstBeats> axi_bursts(const AxiRequest& request, unsigned width) {
  std::vector<AxiBurstBeats> bursts;
  const std::uint64_t end = request.address + request.bytes;
  for (std::uint64_t at = request.address; at < end;) {
    const std::uint8_t size = request.write ? size_of(width) : beat_size(at, end, width);
    // A read stops where the next beat would reach beyond the end.
    const std::uint64_t to = request.write ? end : end >> size << size;
    AxiBurstBeats burst{burst_to(at, to, size), request.write, {}, {}, AxiResponse::kOkay};
    burst.data.resize(request.write ? axi_beats(burst.address) : 0);
    burst.strobes.resize(burst.data.size());
    if (request.write) {
      for_each_byte(burst.address, request, width,
                    [&](std::size_t offset, unsigned beat, std::size_t lane) {
                      burst.data[beat][lane] = request.data[offset];
                      burst.strobes[beat][lane] = true;
                    });
    }
    at = axi_beat(burst.address, burst.address.len).end;
    bursts.push_back(std::move(burst));
  }
  return bursts;
}

void take_read_bytes(const std::vector<AxiBurstBeats>& bursts, const AxiRequest& request,
                     unsigned width) {
  for (const AxiBurstBeats& burst : bursts) {
    for_each_byte(burst.address, request, width,
                  [&](std::size_t offset, unsigned beat, std::size_t lane) {
                    request.data[offset] = burst.data[beat][lane];
                  });
  }
}

AxiRequester::AxiRequester(const Params& params) : params_(params), random_(params.seed) {
  const bool power = params.bytes != 0 && (params.bytes & (params.bytes - 1)) == 0;
  if (!power || params.bytes > kAxiMaxBytes) {
    throw std::invalid_argument("AXI4 port: data of " + std::to_string(params.bytes) +
                                " bytes, expected a power of two up to 128");
  }
  if (params.reads == 0 || params.writes == 0 || params.ids == 0 ||
      params.stalls_per_mille >= 1000) {
    throw std::invalid_argument(
        "AXI4 port: expected at least one read, one write and one ID at a time, and fewer than "
        "1000 stalls in 1000 cycles");
  }
}

std::size_t AxiRequester::ask(std::vector<AxiBurstBeats> bursts, std::uint64_t edge) {
  if (bursts.empty()) throw std::invalid_argument("AXI4 port: expected at least one burst");
  const std::size_t number = numbers_++;
  const std::size_t left = bursts.size();
  const auto later = std::find_if(asked_.begin(), asked_.end(),
                                  [&](const Request& other) { return other.edge > edge; });
  asked_.insert(later, {number, edge, std::move(bursts), left});
  return number;
}

bool AxiRequester::conflicts(const Request& request) const {
  const auto meet = [](const AxiBurstBeats& one, const AxiBurstBeats& other) {
    const AxiRange a = axi_range(one.address), b = axi_range(other.address);
    return (one.write || other.write) && a.begin < b.end && b.begin < a.end;
  };
  for (const auto& [number, other] : open_) {
    for (const AxiBurstBeats& one : request.bursts) {
      for (const AxiBurstBeats& theirs : other.bursts) {
        if (meet(one, theirs)) return true;
      }
    }
  }
  return false;
}

void AxiRequester::begin(std::uint64_t cycle) {
  while (!asked_.empty() && asked_.front().edge < cycle && !conflicts(asked_.front())) {
    const std::size_t number = asked_.front().number;
    Request& request = open_.emplace(number, std::move(asked_.front())).first->second;
    asked_.pop_front();
    ++counts_.requests;
    for (std::size_t i = 0; i < request.bursts.size(); ++i) {
      AxiBurstBeats& burst = request.bursts[i];
      burst.address.id = static_cast<std::uint32_t>(number % params_.ids);
      (burst.write ? aw_ : ar_).push_back({&request, i});
      if (burst.write) w_.push_back({&request, i});
    }
  }
}

void AxiRequester::offer(AxiAddress& pin, const Flights& queue, bool has_room, bool& offered) {
  if (!offered) offered = !queue.empty() && has_room && !stalls();
  const bool ready = pin.ready;
  pin = offered ? queue.front().beats_of().address : AxiAddress{};
  pin.valid = offered;
  pin.ready = ready;
}

void AxiRequester::drive(AxiPins& pins, std::uint64_t cycle) {
  begin(cycle);
  offer(pins.ar, ar_, reading_ < params_.reads, ar_offered_);
  offer(pins.aw, aw_, writing_ < params_.writes, aw_offered_);
  if (!w_offered_) w_offered_ = !w_.empty() && !stalls();
  pins.w.valid = w_offered_;
  if (w_offered_) {
    const Flight& flight = w_.front();
    const AxiBurstBeats& burst = flight.beats_of();
    pins.w.data = burst.data[flight.beats];
    pins.w.strobes = burst.strobes[flight.beats];
    pins.w.last = flight.beats == burst.address.len;
  }
  pins.b.ready = !stalls();
  pins.r.ready = !stalls();
}

void AxiRequester::end(std::map<std::uint32_t, Flights>& flights, std::uint32_t id,
                       std::uint64_t cycle, const Done& done) {
  Flights& queue = flights[id];
  Request& request = *queue.front().request;
  queue.pop_front();
  if (--request.left != 0) return;
  AxiResponse worst = AxiResponse::kOkay;
  for (const AxiBurstBeats& burst : request.bursts) worst = std::max(worst, burst.response);
  counts_.errors += worst == AxiResponse::kOkay ? 0 : 1;
  done(request.number, cycle, worst, request.bursts);
  open_.erase(request.number);
}

void AxiRequester::edge(const AxiPins& pins, std::uint64_t cycle, const Done& done) {
  counts_.address_waits += pins.ar.valid && !pins.ar.ready ? 1 : 0;
  counts_.address_waits += pins.aw.valid && !pins.aw.ready ? 1 : 0;
  counts_.data_waits += pins.w.valid && !pins.w.ready ? 1 : 0;
  if (pins.ar.valid && pins.ar.ready) {
    reads_[pins.ar.id].push_back(ar_.front());
    ar_.pop_front();
    ar_offered_ = false;
    ++counts_.reads;
    counts_.most_reads = std::max<std::uint64_t>(counts_.most_reads, ++reading_);
  }
  if (pins.aw.valid && pins.aw.ready) {
    writes_[pins.aw.id].push_back(aw_.front());
    aw_.pop_front();
    aw_offered_ = false;
    ++counts_.writes;
    counts_.most_writes = std::max<std::uint64_t>(counts_.most_writes, ++writing_);
  }
  if (pins.w.valid && pins.w.ready) {
    ++counts_.write_beats;
    w_offered_ = false;
    if (w_.front().beats++ == w_.front().beats_of().address.len) w_.pop_front();
  }
  if (pins.b.valid && pins.b.ready) {
    writes_[pins.b.id].front().beats_of().response = pins.b.response;
    --writing_;
    end(writes_, pins.b.id, cycle, done);
  }
  if (pins.r.valid && pins.r.ready) {
    ++counts_.read_beats;
    AxiBurstBeats& burst = reads_[pins.r.id].front().beats_of();
    burst.data.push_back(pins.r.data);
    burst.response = std::max(burst.response, pins.r.response);
    if (pins.r.last) {
      --reading_;
      end(reads_, pins.r.id, cycle, done);
    }
  }
}

}  // namespace systole::hw
