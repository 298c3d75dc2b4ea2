#include "tlm/ring/compute_core.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>

#include "base/error.h"
#include "hw/ring/hbm.h"
#include "hw/ring/pass_image.h"

namespace systole::tlm_model::dfx {

using hw::dfx::Opcode;
using hw::dfx::Phase;
using hw::dfx::Sync;

namespace {

std::unique_ptr<hw::RouterEngine> make_router(const hw::Machine& machine) {
  return std::make_unique<hw::RouterModel>(machine.ring.router_cycles);
}

}  // namespace

ComputeCore::ComputeCore(const sc_core::sc_module_name& name, const hw::Machine& machine,
                         std::uint32_t core, const hw::dfx::CoreAddresses& places,
                         std::uint32_t register_elements, bool functional, bool shares_ddr,
                         HalfEngines engines)
    : sc_module(name),
      router("router", machine, core,
             engines.router ? std::move(engines.router) : make_router(machine)),
      hbm("hbm", hw::dfx::lock_step(machine.hbm), functional),
      ddr(shares_ddr ? nullptr : std::make_unique<Dram>("ddr", machine.dram, functional)),
      hbm_port("hbm_port", places.hbm),
      ddr_port("ddr_port", places.ddr),
      machine_(machine),
      core_(core),
      clock_(machine.core.clock_mhz),
      timing_(machine, register_elements, hbm_port, ddr_port),
      register_elements_(register_elements) {
  if (shares_ddr) ddr_port.share();
  if (functional) {
    values_ = std::make_unique<CoreValues>(machine, register_elements, std::move(engines));
  }
  registers.register_b_transport(this, &ComputeCore::access_registers);
  vectors.register_b_transport(this, &ComputeCore::access_vectors);
  vectors.register_transport_dbg(this, &ComputeCore::move_vectors);
  SC_HAS_PROCESS(ComputeCore);
  SC_THREAD(run);
  SC_METHOD(drive_interrupt);
  sensitive << pending_changed();
  dont_initialize();
}

void ComputeCore::start_program(std::uint64_t address) {
  program_ = address;
  running_ = true;
  start_.notify(sc_core::SC_ZERO_TIME);
}

void ComputeCore::access_registers(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  serve(payload, delay, clock_);
}

void ComputeCore::access_vectors(tlm::tlm_generic_payload& payload, sc_core::sc_time&) {
  if (payload.get_byte_enable_ptr() != nullptr) {
    return payload.set_response_status(tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
  }
  if (payload.get_streaming_width() < payload.get_data_length()) {
    return payload.set_response_status(tlm::TLM_BURST_ERROR_RESPONSE);
  }
  const bool whole = move_vectors(payload) == payload.get_data_length();
  payload.set_response_status(whole ? tlm::TLM_OK_RESPONSE : tlm::TLM_ADDRESS_ERROR_RESPONSE);
}

// A run without values has registers without contents: zero.
unsigned ComputeCore::move_vectors(tlm::tlm_generic_payload& payload) {
  const std::uint64_t all = std::uint64_t{register_elements_} * hw::kHalfBytes;
  const std::uint64_t address = payload.get_address(), bytes = payload.get_data_length();
  if (address > all || bytes > all - address) return 0;
  unsigned char* const data = payload.get_data_ptr();
  if (data == nullptr) return static_cast<unsigned>(bytes);
  if (!values_) {
    if (payload.is_read()) std::memset(data, 0, bytes);
    return static_cast<unsigned>(bytes);
  }
  auto* const here = reinterpret_cast<unsigned char*>(values_->registers()) + address;
  if (payload.is_read()) std::memcpy(data, here, bytes);
  if (payload.is_write()) std::memcpy(here, data, bytes);
  return static_cast<unsigned>(bytes);
}

bool ComputeCore::fetch() {
  fault_.clear();
  try {
    const std::vector<std::uint8_t> header =
        ddr_port.peek(program_, static_cast<std::uint32_t>(hw::dfx::kPassHeaderBytes));
    pass_ =
        hw::dfx::decode_pass(ddr_port.peek(program_, hw::dfx::pass_bytes(header)), machine_,
                             {register_elements_, hbm.capacity(), hw::dfx::ddr_bytes(machine_)});
  } catch (const hw::InputError& error) {
    fault_ = error.what();
    SC_REPORT_WARNING("/systole/ring", fault_.c_str());
  }
  return fault_.empty();
}

void ComputeCore::account(Phase phase, std::uint64_t end) {
  if (end <= end_) return;
  if (signals_) {
    signals_->recorder->hold(signals_->phase, clock_.edge_ps(end_), clock_.edge_ps(end),
                             static_cast<std::uint64_t>(phase));
  }
  phases_[static_cast<std::size_t>(phase)] += end - end_;
  end_ = end;
}

void ComputeCore::run() {
  while (true) {
    wait(start_);
    const std::uint64_t now = clock_.cycle_from(sc_core::sc_time_stamp());
    timing_.start(now);
    end_ = now;
    pass_began_ps_ = to_ps(sc_core::sc_time_stamp());
    if (values_) values_->set_memory({hbm_port.contents(), ddr_port.contents()});
    if (fetch()) {
      for (const Instruction& instruction : pass_.instructions) {
        if (instruction.op == Opcode::kSync) {
          sync(instruction);
          continue;
        }
        const CoreTiming::Times times = timing_.issue(instruction);
        account(instruction.phase, times.end);
        if (values_) values_->execute(instruction, times.begin);
        tell(instruction, times);
      }
    }
    const sc_core::sc_time end = clock_.edge(end_);
    if (end > sc_core::sc_time_stamp()) wait(end - sc_core::sc_time_stamp());
    running_ = false;
    complete(end_ - now);
  }
}

void ComputeCore::sync(const Instruction& instruction) {
  const Exchange& exchange = pass_.exchanges[instruction.exchange];
  const std::uint32_t sequence = exchanges_++;
  const std::uint32_t first = exchange.sums ? exchange.first.front() : exchange.first[core_];
  const std::uint32_t last = exchange.sums ? exchange.first.back() : exchange.first[core_ + 1];
  const std::uint64_t begin = timing_.sync_begin(exchange.base + first, last - first);
  // What the work before it did not hide of its own.
  const sc_core::sc_time at = clock_.edge(begin);
  if (at > sc_core::sc_time_stamp()) wait(at - sc_core::sc_time_stamp());

  std::vector<hw::Half> values;
  if (values_) {
    const hw::Half* const own = values_->registers() + exchange.base + first;
    values.assign(own, own + (last - first));
  }
  router.send(exchange, sequence, std::move(values));
  std::uint64_t end = begin;
  for (const RingRouter::Arrival& part : router.receive(exchange, sequence)) {
    if (part.first + part.elements > exchange.first.back()) {
      SC_REPORT_ERROR("/systole/ring", "cores exchange different vectors");
    }
    if (values_) {
      std::copy(part.values.begin(), part.values.end(),
                values_->registers() + exchange.base + part.first);
    }
    timing_.arrived(exchange.base + part.first, part.elements, part.cycle);
    end = std::max(end, part.cycle);
  }
  if (machine_.ring.sync == Sync::kBlocking) {
    end += machine_.dfx.issue_cycles;  // of the instruction that takes what has come
    timing_.wait(end);
  }
  account(Phase::kSync, end);
  tell(instruction, {begin, end, end});
}

void ComputeCore::tell(const Instruction& instruction, const CoreTiming::Times& times) {
  if (observer) observer({core_, &instruction, times});
  if (!signals_) return;
  const auto unit = static_cast<std::size_t>(unit_of(instruction.op));
  signals_->recorder->hold(signals_->instructions.at(unit), clock_.edge_ps(times.begin),
                           clock_.edge_ps(std::max(times.released, times.begin)),
                           static_cast<std::uint64_t>(instruction.op));
}

void ComputeCore::watch(SignalRecorder& recorder) {
  using Kind = SignalRecorder::Kind;
  const std::string prefix = std::string(name()) + ".";
  timing_.watch(recorder, prefix);
  Signals& signals = signals_.emplace();
  signals.recorder = &recorder;
  signals.phase = recorder.add_signal(prefix + "phase", 4, Kind::kLatest);
  for (std::size_t unit = 0; unit < signals.instructions.size(); ++unit) {
    const std::string unit_name(hw::dfx::name_of(static_cast<Unit>(unit)));
    signals.instructions.at(unit) =
        recorder.add_signal(prefix + unit_name + ".instruction", 6, Kind::kLatest);
  }
}

// A core runs ahead, but one unit may wait where another is ahead of it.
std::uint64_t ComputeCore::settled_ps() const {
  return done() ? Watched::settled_ps() : pass_began_ps_;
}

std::vector<hw::BlockReport> ComputeCore::reports() {
  const sc_core::sc_time& now = sc_core::sc_time_stamp();
  const std::uint64_t cycles = clock_.cycle_from(now);
  const std::string prefix = "core" + std::to_string(core_) + ".";
  std::vector<hw::BlockReport> reports;
  for (std::size_t i = 0; i < hw::dfx::kUnits; ++i) {
    const auto unit = static_cast<Unit>(i);
    reports.push_back(timing_.account(unit).report(
        prefix + std::string(hw::dfx::name_of(unit)), cycles,
        {{"instructions", "", "executed", timing_.instructions(unit)}}));
  }
  for (Dram* const memory : {&hbm, ddr.get()}) {
    if (memory == nullptr) continue;
    memory->finish(now);
    reports.push_back(memory->report());
    reports.back().name = prefix + reports.back().name;
  }
  return reports;
}

}  // namespace systole::tlm_model::dfx
