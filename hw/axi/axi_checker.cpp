#include "hw/axi/axi_checker.h"

namespace systole::hw {
namespace {

bool same(const AxiAddress& a, const AxiAddress& b) {
  return a.id == b.id && a.address == b.address && a.len == b.len && a.size == b.size &&
         a.burst == b.burst;
}
bool same(const AxiWriteData& a, const AxiWriteData& b) {
  return a.data == b.data && a.strobes == b.strobes && a.last == b.last;
}
bool same(const AxiWriteResponse& a, const AxiWriteResponse& b) {
  return a.id == b.id && a.response == b.response;
}
bool same(const AxiReadData& a, const AxiReadData& b) {
  return a.id == b.id && a.data == b.data && a.response == b.response && a.last == b.last;
}

}  // namespace

void AxiChecker::fail(const char* channel, const std::string& text) {
  if (!breach_.empty()) return;
  breach_ = "AXI4, cycle " + std::to_string(cycle_) + ", " + channel + ": " + text;
}

void AxiChecker::check_held(const AxiPins& pins) {
  const auto held = [&](const char* channel, const auto& before, const auto& now) {
    if (!before.valid || before.ready) return;
    if (!now.valid) fail(channel, "valid fell before ready, expected to stay");
    if (!same(before, now)) fail(channel, "changed before ready, expected to stay");
  };
  held("AW", last_.aw, pins.aw);
  held("W", last_.w, pins.w);
  held("AR", last_.ar, pins.ar);
  held("B", last_.b, pins.b);
  held("R", last_.r, pins.r);
}

void AxiChecker::check_address(const char* channel, const AxiAddress& address) {
  const unsigned beats = axi_beats(address);
  if (address.size > 7 || (1U << address.size) > bytes_) {
    fail(channel, "beats of 2^" + std::to_string(address.size) + " bytes, expected at most " +
                      std::to_string(bytes_) + " bytes");
    return;
  }
  const AxiRange range = axi_range(address);
  switch (address.burst) {
    case AxiBurst::kIncr:
      if (range.begin / kAxiBoundary != (range.end - 1) / kAxiBoundary) {
        fail(channel, "burst crosses a multiple of 4096 bytes");
      }
      return;
    case AxiBurst::kWrap:
      if (beats != 2 && beats != 4 && beats != 8 && beats != 16) {
        fail(channel, "WRAP burst of " + std::to_string(beats) + " beats, expected 2, 4, 8 or 16");
      }
      if (address.address % (1U << address.size) != 0) {
        fail(channel, "WRAP burst from an unaligned address");
      }
      return;
    case AxiBurst::kFixed:
      if (beats > 16) {
        fail(channel, "FIXED burst of " + std::to_string(beats) + " beats, expected at most 16");
      }
      return;
  }
  fail(channel,
       "burst type " + std::to_string(static_cast<unsigned>(address.burst)) + ", expected 0 to 2");
}

void AxiChecker::check_strobes(const AxiAddress& burst, const WriteBurst& data) {
  for (unsigned beat = 0; beat < data.beats; ++beat) {
    const AxiRange range = axi_beat(burst, beat);
    AxiStrobes lanes;
    for (std::uint64_t byte = range.begin; byte < range.end; ++byte) lanes.set(byte % bytes_);
    if ((data.strobes[beat] & ~lanes).any()) {
      fail("W", "strobe outside the byte lanes of beat " + std::to_string(beat));
    }
  }
}

void AxiChecker::take_write_data(const AxiWriteData& w) {
  if (data_.empty() || data_.back().complete) data_.emplace_back();
  WriteBurst& burst = data_.back();
  ++burst.beats;
  burst.strobes.push_back(w.strobes);
  burst.complete = w.last;
}

// Write data come in the order of their addresses, before or after them.
void AxiChecker::match_writes() {
  while (breach_.empty() && !addresses_.empty() && !data_.empty()) {
    const AxiAddress& address = addresses_.front();
    const WriteBurst& data = data_.front();
    const unsigned beats = axi_beats(address);
    if (data.beats > beats || (data.beats == beats && !data.complete)) {
      fail("W", "no last on beat " + std::to_string(beats) + ", the last of the burst");
    } else if (data.complete && data.beats < beats) {
      fail("W", "last on beat " + std::to_string(data.beats) + ", expected on beat " +
                    std::to_string(beats));
    }
    if (!data.complete) return;
    if (breach_.empty()) check_strobes(address, data);
    ++responses_[address.id];
    addresses_.pop_front();
    data_.pop_front();
  }
}

bool AxiChecker::watch(const AxiPins& pins, std::uint64_t cycle) {
  cycle_ = cycle;
  check_held(pins);
  // What is answered in this cycle was asked before it.
  if (pins.b.valid && pins.b.ready) {
    unsigned& open = responses_[pins.b.id];
    if (open == 0) {
      fail("B", "response with ID " + std::to_string(pins.b.id) + ", which no complete write has");
    } else {
      --open;
    }
  }
  if (pins.r.valid && pins.r.ready) {
    std::deque<AxiAddress>& open = reads_[pins.r.id];
    if (open.empty()) {
      fail("R", "data with ID " + std::to_string(pins.r.id) + ", which no read has");
    } else {
      unsigned& beat = read_beats_[pins.r.id];
      const unsigned beats = axi_beats(open.front());
      ++beat;
      if (pins.r.last != (beat == beats)) {
        fail("R", std::string(pins.r.last ? "last" : "no last") + " on beat " +
                      std::to_string(beat) + " of " + std::to_string(beats));
      }
      if (beat == beats) {
        open.pop_front();
        beat = 0;
      }
    }
  }
  if (pins.aw.valid) check_address("AW", pins.aw);
  if (pins.ar.valid) check_address("AR", pins.ar);
  if (breach_.empty()) {
    if (pins.aw.valid && pins.aw.ready) addresses_.push_back(pins.aw);
    if (pins.w.valid && pins.w.ready) take_write_data(pins.w);
    if (pins.ar.valid && pins.ar.ready) reads_[pins.ar.id].push_back(pins.ar);
    match_writes();
  }
  last_ = pins;
  return breach_.empty();
}

bool AxiChecker::quiet() const noexcept {
  for (const auto& [id, open] : responses_) {
    if (open != 0) return false;
  }
  for (const auto& [id, open] : reads_) {
    if (!open.empty()) return false;
  }
  return addresses_.empty() && data_.empty();
}

}  // namespace systole::hw
