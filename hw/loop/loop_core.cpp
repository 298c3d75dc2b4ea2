#include "hw/loop/loop_core.h"

#include <stdexcept>
#include <string>

#include "base/round.h"

namespace systole::hw::loop {
namespace {

PathShape path_shape(const Machine& machine, std::uint32_t in_flight, std::uint32_t queue) {
  if (machine.array.rows != machine.array.cols) {
    throw std::invalid_argument("unroller: the array has " + std::to_string(machine.array.rows) +
                                " rows and " + std::to_string(machine.array.cols) +
                                " columns, expected as many");
  }
  PathShape shape;
  shape.side = machine.array.rows;
  shape.beat_bytes = machine.bus.width_bytes;
  shape.request_bytes = machine.dma.request_bytes;
  shape.in_flight = in_flight;
  shape.queue = queue;
  shape.scratchpad_bank_rows =
      machine.scratchpad.kib * 1024 / machine.array.rows / machine.scratchpad.banks;
  shape.accumulator_bank_rows =
      machine.accumulator.kib * 1024 / 4 / machine.array.rows / machine.accumulator.banks;
  return shape;
}

ArrayShape array_shape(const Machine& machine) {
  const PathShape path = path_shape(machine, 1, 1);
  ArrayShape shape;
  shape.side = path.side;
  shape.queue = machine.unroller.compute_queue;
  shape.read_stages = machine.unroller.read_stages;
  shape.scratchpad_bank_rows = path.scratchpad_bank_rows;
  shape.accumulator_bank_rows = path.accumulator_bank_rows;
  return shape;
}

std::array<std::uint32_t, kClasses> entries_of(const Machine& machine) {
  return {machine.core.load_queue, machine.core.compute_queue, machine.core.store_queue};
}

UnrollerShape unroller_shape(const Machine& machine) {
  const PathShape path = path_shape(machine, 1, 1);
  UnrollerShape shape;
  shape.side = path.side;
  shape.blocks_per_load = std::max(path.request_bytes / path.side, 1U);
  shape.scratchpad_rows = path.scratchpad_bank_rows * machine.scratchpad.banks;
  shape.accumulator_rows = path.accumulator_bank_rows * machine.accumulator.banks;
  shape.entries = entries_of(machine);
  return shape;
}

}  // namespace

LoopCall loop_call(const cmd::Loop& loop, const hw::Program& program, const Machine& machine) {
  const std::uint32_t side = machine.array.rows;
  LoopCall call;
  call.m = narrow(ceil_div(loop.m, side));
  call.n = narrow(ceil_div(loop.n, side));
  call.k = narrow(ceil_div(loop.k, side));
  call.m_pad = call.m * side - loop.m;
  call.n_pad = call.n * side - loop.n;
  call.k_pad = call.k * side - loop.k;
  call.a = loop.a.address;
  call.b = loop.b.address;
  call.d = loop.d.address;
  call.c = loop.c.address;
  call.a_pitch = loop.a.pitch;
  call.b_pitch = loop.b.pitch;
  call.d_pitch = loop.d.pitch;
  call.c_pitch = loop.c.pitch;
  call.c_bytes = static_cast<std::uint32_t>(bytes_of(program.chains.at(loop.chain).out));
  call.accumulate = loop.accumulate || loop.d.address != 0;
  return call;
}

LoopCore::LoopCore(const Machine& machine, Memory& memory)
    : command_cycles_(machine.unroller.command_cycles),
      port_(memory),
      load_(path_shape(machine, machine.dma.outstanding_reads, machine.unroller.load_queue), port_,
            translation_),
      execute_(array_shape(machine)),
      store_(path_shape(machine, machine.dma.outstanding_writes, machine.unroller.store_queue),
             machine.unroller.scale_stages, machine.accumulator.banks, port_, translation_),
      station_(entries_of(machine)),
      unroller_(unroller_shape(machine)) {}

void LoopCore::send(Kind kind, std::size_t call) {
  Command command;
  command.kind = kind;
  command.call = call;
  unsent_.push_back(command);
}

void LoopCore::begin_call() {
  for (const Kind kind : {Kind::kConfigureArray, Kind::kConfigureStore, Kind::kConfigureLoad,
                          Kind::kConfigureLoad, Kind::kConfigureLoad}) {
    send(kind);
  }
}

void LoopCore::push(const LoopCall& call) {
  constexpr int kFields = 5;  // bounds, two pairs of addresses, two pairs of pitches
  for (int i = 0; i < kFields; ++i) send(Kind::kLoopField);
  send(Kind::kLoopRun);
  calls_.push_back(call);
}

bool LoopCore::busy() const {
  return !unsent_.empty() || !received_.empty() || !conv_.empty() || !pending_.empty() ||
         !unrolled_.empty() || unroller_.busy() || station_.busy() || load_.busy() || store_.busy();
}

void LoopCore::skip_to(std::uint64_t cycle) {
  const std::uint64_t step = cycle - cycle_;
  cycle_ = cycle;
  execute_.skip(step);
  store_.skip(step);
}

void LoopCore::step() {
  port_.begin(cycle_);
  translation_.begin();
  std::uint32_t scratchpad_banks = 0;
  AccumulatorWrites writes{};
  execute_.land(writes);
  load_.land(scratchpad_banks, writes);
  load_.merge();
  store_.acknowledge();
  port_.move();
  load_.request();
  store_.move(writes);
  const std::optional<std::uint16_t> stored = store_.done(), loaded = load_.done();
  store_.control();
  load_.control();
  // Whether the controllers take a command is what their queues were at the begin of the cycle.
  loading_ = load_.accepts() && station_.ready(kLoadClass) != nullptr;
  computing_ = execute_.accepts() && station_.ready(kComputeClass) != nullptr;
  storing_ = store_.accepts() && station_.ready(kStoreClass) != nullptr;
  execute_.step(scratchpad_banks);
  // One command ends in a cycle: of the array, then of the loads, then of the stores.
  ReservationStation::Done done;
  if (execute_.done()) {
    done = {true, kComputeClass, *execute_.done()};
  } else if (loaded) {
    done = {true, kLoadClass, *loaded};
    load_.take_done();
  } else if (stored) {
    done = {true, kStoreClass, *stored};
    store_.take_done();
  }
  end_cycle(done);
  translation_.end();
  ++cycle_;
}

void LoopCore::issue() {
  if (loading_) load_.push(*station_.ready(kLoadClass));
  if (computing_) execute_.push(*station_.ready(kComputeClass));
  if (storing_) store_.push(*station_.ready(kStoreClass));
}

void LoopCore::end_cycle(const ReservationStation::Done& done) {
  issue();
  load_.end_cycle();
  store_.end_cycle();
  // The queues, each as it was at the begin of the cycle.
  const bool unrolled_full = unrolled_.full(), pending_full = pending_.full(),
             conv_full = conv_.full(), received_full = received_.full();
  const bool allocates = !unrolled_.empty() && station_.has_room(unrolled_.front());
  const std::array<std::uint32_t, kClasses> ended = station_.end_cycle(
      allocates ? &unrolled_.front() : nullptr, done, {loading_, computing_, storing_});
  if (allocates) unrolled_.pop();
  bool made = false;
  const bool unrolling = unroller_.busy();
  bool took = false;
  if (unrolling) {
    const Command* const next = unroller_.next();
    made = next != nullptr && !unrolled_full;
    if (made) unrolled_.push(*next);
  } else if (!pending_.empty() && pending_.front().kind < Kind::kLoopField && !unrolled_full) {
    unrolled_.push(pending_.front());
    took = true;
  }
  const LoopCall* configured = nullptr;
  if (!pending_.empty() && pending_.front().kind >= Kind::kLoopField && unroller_.can_configure()) {
    if (pending_.front().kind == Kind::kLoopRun) configured = &calls_.front();
    took = true;
  }
  unroller_.end_cycle(made, ended, configured);
  if (configured != nullptr) calls_.pop_front();
  if (took) pending_.pop();
  if (!conv_.empty() && !pending_full) {
    pending_.push(conv_.front());
    conv_.pop();
  }
  if (!received_.empty() && !conv_full) {
    conv_.push(received_.front());
    received_.pop();
  }
  if (!unsent_.empty() && cycle_ >= next_send_ && !received_full) {
    received_.push(unsent_.front());
    unsent_.pop_front();
    next_send_ = cycle_ + command_cycles_;
  }
}

}  // namespace systole::hw::loop
