#include "tlm/core/loop_unit.h"

#include <algorithm>
#include <string>

#include "base/round.h"
#include "hw/memory/fixed_memory.h"
#include "tlm/bus/request_batch.h"

namespace systole::tlm_model {
namespace {

enum LoopCause : std::size_t { kNoCommand, kHost, kOperands, kLoopBankConflict, kResults };

}  // namespace

LoopUnit::LoopUnit(const sc_core::sc_module_name& name, const hw::Machine& machine,
                   CommandProcessor& processor, hw::ArrayEngine& array, hw::PostopEngine& postop,
                   bool functional)
    : sc_module(name),
      machine_(machine),
      processor_(processor),
      array_(array),
      postop_(postop),
      functional_(functional),
      beat_cycles_(hw::has_fixed_memory(machine) ? machine.memory.read_beat_cycles : 1),
      core_(machine, *this),
      beats_(machine.dma.request_bytes),
      account_("cycles", {{"no_command", "no loop has been dispatched"},
                          {"host", "the host sends the commands of a call or loop"},
                          {"operands", "the array waits for rows of A, B or D"},
                          {"bank_conflict",
                           "a bank of the scratchpad takes a row from memory, or both "
                           "operands are in one bank"},
                          {"results", "the array is done, and results leave"}}) {
  SC_HAS_PROCESS(LoopUnit);
  SC_THREAD(run);
}

void LoopUnit::run() {
  for (;;) {
    take();
    while (!open_.empty() || core_.busy()) {
      while (open_.size() < kMostOpen && processor_.has(hw::Unit::kLoop)) take();
      const std::size_t open = open_.size();
      for (std::uint64_t i = 0; i < kQuantum && core_.busy() && open_.size() == open; ++i) step();
      const std::uint64_t cycle = core_.cycle();
      processor_.clock().wait_until(core_.busy() ? cycle - std::min(cycle, kLag) : cycle);
      // What ends lets the processor send more.
      if (open_.size() != open) wait(sc_core::SC_ZERO_TIME);
    }
  }
}

void LoopUnit::take() {
  Entry& entry = processor_.next(hw::Unit::kLoop, account_, kNoCommand);
  processor_.wait_ready(entry);
  const auto& loop = *entry.command.as<hw::cmd::Loop>();
  if (!core_.busy()) core_.skip_to(processor_.cycle());
  if (entry.command.issue == hw::Issue::kCall) core_.begin_call();
  core_.push(hw::loop::loop_call(loop, processor_.program(), machine_));
  const hw::Chain& chain = processor_.program().chains[loop.chain];
  open_.push_back({&entry, ++taken_, processor_.cycle(), writes_of(loop), {}});
  if (functional_) {
    processor_.await_values();
    compute(loop, open_.back().result);
  }
  Open& open = open_.back();
  open.macs = std::uint64_t{loop.m} * loop.n * loop.k;
  if (loop.c.address != 0) open.elements = std::uint64_t{loop.m} * loop.n * chain.stages.size();
  work_.macs += open.macs;
  work_.elements += open.elements;
}

std::uint64_t LoopUnit::writes_of(const hw::cmd::Loop& loop) const {
  if (loop.c.address == 0) return 0;
  hw::loop::PathShape shape;
  shape.beat_bytes = machine_.bus.width_bytes;
  shape.request_bytes = machine_.dma.request_bytes;
  const std::uint64_t element = hw::bytes_of(processor_.program().chains[loop.chain].out);
  const std::uint64_t most = element == 4
                                 ? machine_.array.rows * element
                                 : std::max(machine_.dma.request_bytes, machine_.array.rows);
  std::uint64_t writes = 0;
  for (std::uint64_t row = 0; row < loop.m; ++row) {
    const std::uint64_t begin = loop.c.address + row * loop.c.pitch;
    for (std::uint64_t at = 0; at < loop.n * element; at += most) {
      auto left = static_cast<std::uint32_t>(std::min(most, loop.n * element - at));
      for (std::uint64_t address = begin + at; left != 0; ++writes) {
        const hw::loop::Packet packet = hw::loop::largest_packet(shape, address, left);
        address += packet.bytes;
        left -= packet.bytes;
      }
    }
  }
  return writes;
}

void LoopUnit::debug_read(std::uint64_t address, std::uint8_t* data, std::size_t bytes) {
  tlm::tlm_generic_payload payload;
  payload.set_command(tlm::TLM_READ_COMMAND);
  payload.set_address(address);
  payload.set_data_ptr(data);
  payload.set_data_length(static_cast<unsigned>(bytes));
  socket->transport_dbg(payload);
}

void LoopUnit::compute(const hw::cmd::Loop& loop, std::vector<std::uint8_t>& result) {
  const std::size_t m = loop.m, n = loop.n, k = loop.k;
  std::vector<std::uint8_t> a(m * k), b(k * n);
  for (std::size_t row = 0; row < m; ++row) {
    debug_read(loop.a.address + row * loop.a.pitch, &a[row * k], k);
  }
  for (std::size_t row = 0; row < k; ++row) {
    debug_read(loop.b.address + row * loop.b.pitch, &b[row * n], n);
  }
  sums_.resize(m * n);
  for (std::size_t row = 0; row < m && loop.d.address != 0; ++row) {
    debug_read(loop.d.address + row * loop.d.pitch,
               reinterpret_cast<std::uint8_t*>(&sums_[row * n]), n * sizeof(std::int32_t));
  }
  hw::GemmArgs product;
  product.a = a.data();
  product.lda = k;
  product.b = reinterpret_cast<const std::int8_t*>(b.data());
  product.ldb = n;
  product.c = sums_.data();
  product.ldc = n;
  product.m = m;
  product.n = n;
  product.k = k;
  product.accumulate = loop.accumulate || loop.d.address != 0;
  static_cast<void>(array_.matmul(product, false));
  if (loop.c.address == 0) return;
  const hw::Chain& chain = processor_.program().chains[loop.chain];
  const std::size_t row_bytes = n * hw::bytes_of(chain.out);
  result.resize(m * row_bytes);
  hw::ChainOperands operands;
  operands.accumulator = sums_.data();
  operands.accumulator_pitch = n;
  operands.out = result.data();
  operands.out_pitch = row_bytes;
  operands.rows = m;
  operands.cols = n;
  postop_.apply(chain, operands);
}

std::uint64_t LoopUnit::send(const Request& request) {
  const Clock& clock = processor_.clock();
  const std::uint64_t beats =
      blocks_touched(request.address, request.bytes, machine_.bus.width_bytes);
  const std::uint64_t first = request.write ? request.cycle - (beats - 1) : request.cycle;
  std::uint8_t* data = nullptr;
  if (functional_) {
    data = beats_.data();
    for (Open& open : open_) {
      const auto& loop = *open.entry->command.as<hw::cmd::Loop>();
      if (!request.write || loop.c.address == 0 || request.address < loop.c.address) continue;
      const std::uint64_t offset = request.address - loop.c.address;
      const std::uint64_t row = offset / loop.c.pitch, at = offset % loop.c.pitch;
      const std::uint64_t row_bytes = open.result.size() / loop.m;
      if (row >= loop.m || at >= row_bytes) continue;
      data = &open.result[row * row_bytes + at];
    }
  }
  payload_.set_command(request.write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
  describe_request(payload_, request.address, data, request.bytes);
  const std::uint64_t now = to_ps(sc_core::sc_time_stamp());
  sc_core::sc_time delay = from_ps(std::max(clock.edge_ps(first), now) - now);
  socket->b_transport(payload_, delay);
  if (!payload_.is_response_ok()) {
    SC_REPORT_ERROR("/systole/loop", (payload_.get_response_string() + " at address " +
                                      std::to_string(request.address))
                                         .c_str());
  }
  work_.bus_bytes += request.bytes;
  return clock.cycle_from(sc_core::sc_time_stamp() + delay);
}

void LoopUnit::step() {
  core_.step();
  account();
  complete();
}

void LoopUnit::account() {
  const hw::loop::ExecutePath::Counts& counts = core_.execute().counts();
  const std::uint64_t end = core_.cycle();
  if (counts.rows != rows_) {
    account_.busy_until(end);
  } else if (counts.conflicts != conflicts_) {
    account_.stall_until(end, kLoopBankConflict);
  } else if (core_.load().busy()) {
    account_.stall_until(end, kOperands);
  } else if (core_.store().busy() || core_.execute().busy()) {
    account_.stall_until(end, kResults);
  } else {
    account_.stall_until(end, kHost);
  }
  rows_ = counts.rows;
  conflicts_ = counts.conflicts;
}

void LoopUnit::complete() {
  // Acknowledgements come in the order of the writes.
  std::uint64_t writes = core_.store().counts().acknowledged - acknowledged_;
  for (Open& open : open_) {
    const std::uint64_t own = std::min(writes, open.writes_left);
    open.writes_left -= own;
    writes -= own;
  }
  acknowledged_ = core_.store().counts().acknowledged - writes;
  while (!open_.empty()) {
    Open& first = open_.front();
    if (first.writes_left != 0 || core_.unrolled() < first.number) return;
    // The last one takes everything that is left with it.
    if (open_.size() == 1 && core_.busy()) return;
    first.entry->stalled = completed_.since(account_.time());
    completed_ = StallMark(account_.time());
    const hw::EnergyEvents now = moved();
    hw::EnergyEvents& events = first.entry->events = now.since(of_completed_);
    events.macs = first.macs;
    events.postop_elements = first.elements;
    of_completed_ = now;
    processor_.release(*first.entry);
    processor_.complete_at(*first.entry, first.started, core_.cycle(), core_.cycle());
    open_.pop_front();
  }
}

hw::EnergyEvents LoopUnit::moved() const {
  hw::EnergyEvents events;
  events.scratchpad_bytes = scratchpad_bytes();
  events.accumulator_bytes = accumulator_bytes();
  events.bus_bytes = events.dram_bytes = work_.bus_bytes;
  return events;
}

std::uint64_t LoopUnit::scratchpad_bytes() const {
  const std::uint64_t side = machine_.array.rows;
  return core_.load().counts().scratchpad_rows * side +
         core_.execute().counts().operand_rows * side;
}

std::uint64_t LoopUnit::accumulator_bytes() const {
  const std::uint64_t row = machine_.array.rows * std::uint64_t{4};
  const hw::loop::ExecutePath::Counts& array = core_.execute().counts();
  return (core_.load().counts().accumulator_rows + array.sums + array.accumulated +
          core_.store().counts().blocks) *
         row;
}

hw::BlockReport LoopUnit::report(std::uint64_t end) const {
  const hw::loop::MemoryPort::Counts& port = core_.port().counts();
  return account_.report(
      basename(), end,
      {{"loops", "loops", "that were dispatched", taken_},
       {"macs", "MAC", "multiply-accumulates of the network, without padding", work_.macs},
       {"rows", "rows", "that entered the array, weights alone too", core_.execute().counts().rows},
       {"read_requests", "requests", "reads of A, B and D", port.reads},
       {"read_bytes", "bytes", "of these requests", port.read_bytes},
       {"write_requests", "requests", "writes of results", port.writes},
       {"written_bytes", "bytes", "of results", port.written_bytes},
       {"window_full", "cycles", "in which a read waited: all requests were in flight",
        core_.load().counts().window_full}});
}

void LoopUnit::watch(SignalRecorder& recorder) {
  state_ = std::make_unique<AccountSignal>(recorder, std::string(name()) + ".state", account_,
                                           &processor_.clock());
  account_.watch(*state_);
}

std::uint64_t LoopUnit::settled_ps() const {
  const std::uint64_t now = Watched::settled_ps();
  if (open_.empty() && !core_.busy()) return now;
  return std::min(now, processor_.clock().edge_ps(account_.now()));
}

}  // namespace systole::tlm_model
