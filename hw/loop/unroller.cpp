#include "hw/loop/unroller.h"

#include <algorithm>

namespace systole::hw::loop {

Unroller::Unroller(const UnrollerShape& shape) : shape_(shape) {}

const Command* Unroller::next() {
  made_ = kParts;
  command_ = {};
  command_.unrolled = true;
  command_.block_rows = shape_.side;
  if (make_store() || make_compute() || make_load_d()) return &command_;
  // A and B of one loop take turns by their progress in k; the older loop goes first.
  const Nest& a = nests_[kA];
  const Nest& b = nests_[kB];
  bool takes_b = false;
  if (a.loop != b.loop) {
    takes_b = a.loop != head_;
  } else if (!a.active || !b.active) {
    takes_b = !a.active;
  } else {
    takes_b = a.k > b.k || (b.k == 0 && b.n == 0);
  }
  return (takes_b ? make_load_b() : make_load_a()) ? &command_ : nullptr;
}

bool Unroller::make_store() {
  const Nest& nest = nests_[kStore];
  const LoopCall& call = nest.call;
  if (!nest.active || call.c == 0 || full(kStoreClass)) return false;
  const bool sums = call.c_bytes == 4;
  const std::uint32_t most = sums ? 1 : std::min(call.n, shape_.blocks_per_load);
  const std::uint32_t blocks = std::min(most, call.n - nest.n);
  const Nest& execute = nests_[kExecute];
  const bool computed =
      loaded(kExecute, nest.loop) ||
      (execute.k + 1 == call.k &&
       (execute.n >= nest.n + blocks || (execute.n + 1 == nest.n + blocks && execute.m > nest.m)));
  if (!computed) return false;
  command_.kind = Kind::kStore;
  command_.full = sums;
  command_.pitch = call.c_pitch;
  command_.address = call.c + std::uint64_t{nest.m} * shape_.side * call.c_pitch +
                     std::uint64_t{nest.n} * shape_.side * call.c_bytes;
  command_.cols = blocks * shape_.side - (nest.n + blocks >= call.n ? call.n_pad : 0);
  command_.rows = rows_of(nest);
  command_.row = kAccumulatorRow | (nest.base + (nest.m * call.n + nest.n) * shape_.side);
  made_ = kStore;
  return true;
}

bool Unroller::make_compute() {
  const Nest& nest = nests_[kExecute];
  const LoopCall& call = nest.call;
  if (!nest.active || full(kComputeClass) || !loaded(kD, nest.loop)) return false;
  const Nest& a = nests_[kA];
  const Nest& b = nests_[kB];
  const bool has_a = loaded(kA, nest.loop) || a.k > nest.k || (a.k == nest.k && a.m > nest.m);
  // The progress of A is used where that of B would be expected, as in the source.
  const bool has_b = loaded(kB, nest.loop) || b.k > nest.k || (a.k == nest.k && b.n > nest.n);
  if (!has_a || !has_b) return false;
  const std::uint32_t c_row =
      kAccumulatorRow | (nest.base + (nest.m * call.n + nest.n) * shape_.side);
  if (!nest.computes) {
    command_.kind = Kind::kPreload;
    command_.garbage = nest.m != 0;
    command_.row = weights(nest) + (nest.k * call.n + nest.n) * shape_.side;
    command_.rows = shape_.side - (nest.k + 1 == call.k ? call.k_pad : 0);
    command_.c_row = c_row;
    command_.c_rows = rows_of(nest);
    command_.accumulate = call.accumulate || nest.k != 0;
  } else {
    command_.kind = Kind::kCompute;
    command_.row = half(nest) + (nest.m * call.k + nest.k) * shape_.side;
    command_.rows = rows_of(nest);
  }
  made_ = kExecute;
  return true;
}

bool Unroller::make_load_d() {
  const Nest& nest = nests_[kD];
  const LoopCall& call = nest.call;
  if (!nest.active || call.d == 0 || full(kLoadClass)) return false;
  command_.kind = Kind::kLoad;
  command_.accumulator = true;
  command_.pitch = call.d_pitch;
  command_.address = call.d + std::uint64_t{nest.m} * shape_.side * call.d_pitch +
                     std::uint64_t{nest.n} * shape_.side * 4;
  command_.cols = shape_.side - (nest.n + 1 == call.n ? call.n_pad : 0);
  command_.rows = rows_of(nest);
  command_.row = kAccumulatorRow | (nest.base + (nest.m * call.n + nest.n) * shape_.side);
  made_ = kD;
  return true;
}

bool Unroller::make_load_a() {
  const Nest& nest = nests_[kA];
  const LoopCall& call = nest.call;
  if (!nest.active || full(kLoadClass)) return false;
  const std::uint32_t blocks = std::min({call.k, shape_.blocks_per_load, call.k - nest.k});
  command_.kind = Kind::kLoad;
  command_.pitch = call.a_pitch;
  command_.address = call.a + std::uint64_t{nest.m} * shape_.side * call.a_pitch +
                     std::uint64_t{nest.k} * shape_.side;
  command_.cols = blocks * shape_.side - (nest.k + blocks >= call.k ? call.k_pad : 0);
  command_.rows = rows_of(nest);
  command_.row = half(nest) + (nest.m * call.k + nest.k) * shape_.side;
  made_ = kA;
  return true;
}

bool Unroller::make_load_b() {
  const Nest& nest = nests_[kB];
  const LoopCall& call = nest.call;
  if (!nest.active || full(kLoadClass)) return false;
  const std::uint32_t blocks = std::min({call.n, shape_.blocks_per_load, call.n - nest.n});
  command_.kind = Kind::kLoad;
  command_.pitch = call.b_pitch;
  command_.address = call.b + std::uint64_t{nest.k} * shape_.side * call.b_pitch +
                     std::uint64_t{nest.n} * shape_.side;
  command_.cols = blocks * shape_.side - (nest.n + blocks >= call.n ? call.n_pad : 0);
  command_.rows = shape_.side;
  command_.row = weights(nest) + (nest.k * call.n + nest.n) * shape_.side;
  made_ = kB;
  return true;
}

namespace {

/// Adds `step` to `value`, back to 0 where it reaches `end`; whether it did.
bool wraps(std::uint32_t& value, std::uint32_t step, std::uint32_t end) {
  value = value + step >= end ? 0 : value + step;
  return value == 0;
}

}  // namespace

void Unroller::advance(Part part) {
  Nest& nest = nests_[part];
  const LoopCall& call = nest.call;
  const std::uint32_t most = shape_.blocks_per_load;
  bool ended = false;
  switch (part) {
    case kA:
      ended = wraps(nest.m, 1, call.m) && wraps(nest.k, std::min(call.k, most), call.k);
      break;
    case kB:
      ended = wraps(nest.n, std::min(call.n, most), call.n) && wraps(nest.k, 1, call.k);
      break;
    case kD:
      ended = wraps(nest.m, 1, call.m) && wraps(nest.n, 1, call.n);
      break;
    case kExecute:
      nest.computes = !nest.computes;
      ended = !nest.computes && wraps(nest.m, 1, call.m) && wraps(nest.n, 1, call.n) &&
              wraps(nest.k, 1, call.k);
      break;
    case kStore:
      ended = wraps(nest.m, 1, call.m) &&
              wraps(nest.n, call.c_bytes == 4 ? 1 : std::min(call.n, most), call.n);
      break;
    case kParts:
      return;
  }
  if (ended) nest.active = false;
}

void Unroller::end_cycle(bool taken, const std::array<std::uint32_t, kClasses>& ended,
                         const LoopCall* configured) {
  // Everything follows from the registers as they were.
  const std::array<Loop, 2> before = loops_;
  std::array<bool, kParts> was_active{};
  std::array<std::uint8_t, kParts> loop_of{};
  std::array<std::uint8_t, kParts> wanted{};
  std::array<bool, kParts> starts{};
  const std::uint8_t tail = 1 - head_;
  for (std::uint8_t i = 0; i < kParts; ++i) {
    was_active[i] = nests_[i].active;
    loop_of[i] = nests_[i].loop;
    wanted[i] = before[head_].started[i] ? tail : head_;
    const Loop& loop = before[wanted[i]];
    starts[i] = !was_active[i] && !loop.started[i] && loop.configured;
    if (i == kExecute) starts[i] &= loop.started[kA] && loop.started[kB] && loop.started[kD];
    if (i == kStore) starts[i] &= loop.started[kExecute];
  }
  const std::uint8_t configures = configured_loop();

  if (taken) advance(made_);
  for (const Part part : {kD, kStore}) {
    const LoopCall& call = nests_[part].call;
    const bool nothing = (part == kD ? call.d : call.c) == 0;
    if (was_active[part] && nothing) nests_[part].active = false;
  }
  if (taken) {
    ++in_station_[made_ == kStore ? kStoreClass : made_ == kExecute ? kComputeClass : kLoadClass];
  }
  for (std::size_t i = 0; i < kClasses; ++i) in_station_[i] -= ended[i];

  for (std::uint8_t i = 0; i < kParts; ++i) {
    if (starts[i]) {
      Loop& loop = loops_[wanted[i]];
      loop.running = loop.started[i] = true;
      nests_[i] = {};
      nests_[i].active = true;
      nests_[i].loop = wanted[i];
      nests_[i].call = before[wanted[i]].call;
      nests_[i].base = next_base_[i];
      if (nests_[i].call.c != 0) next_base_[i] ^= shape_.accumulator_rows / 2;
    }
    const Loop& loop = before[loop_of[i]];
    if (!was_active[i] && loop.running && loop.started[i]) loops_[loop_of[i]].completed[i] = true;
  }
  if (configured != nullptr) {
    loops_[configures].configured = true;
    loops_[configures].call = *configured;
  }
  const Loop& head = before[head_];
  if (head.running && std::all_of(head.completed.begin(), head.completed.end(),
                                  [](bool completed) { return completed; })) {
    loops_[head_] = {};
    head_ = tail;
    ++finished_;
  }
}

}  // namespace systole::hw::loop
