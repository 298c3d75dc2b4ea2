#include "tlm/bus/system_bus.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "tlm/common/time.h"
#include "tlm/common/unbound_sockets.h"

namespace systole::tlm_model {
std::string short_name(std::string socket) {
  for (const std::string suffix : {".socket", ".port"}) {
    if (socket.size() < suffix.size()) continue;
    const std::size_t rest = socket.size() - suffix.size();
    if (socket.compare(rest, suffix.size(), suffix) == 0) socket.resize(rest);
  }
  return socket.substr(socket.find('.') + 1);
}

namespace {
BusCore::Piece piece_of(const RequestBatch::Request& request) {
  return {request.address, request.bytes};
}
}  // namespace

SystemBus::SystemBus(const sc_core::sc_module_name& name, const hw::Machine::Bus& params,
                     std::unique_ptr<BusMesh> mesh)
    : sc_module(name), core_(params, std::move(mesh)) {
  require_ps_resolution();
  explain_unbound_sockets();
  initiators.register_b_transport(this, &SystemBus::b_transport);
  initiators.register_transport_dbg(this, &SystemBus::transport_dbg);
  initiators.register_get_direct_mem_ptr(this, &SystemBus::get_direct_mem_ptr);
  targets.register_invalidate_direct_mem_ptr(this, &SystemBus::invalidate_direct_mem_ptr);
}

void SystemBus::end_of_elaboration() {
  if (initiators.size() != 0) static_cast<void>(core_.initiator(initiators.size() - 1));
  for (const AddressMap::Range& range : map_.ranges()) {
    if (range.target >= targets.size()) {
      SC_REPORT_ERROR("/systole/system_bus", "an address range names a target that is not bound");
    }
  }
}

void SystemBus::b_transport(int id, tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  const Clock& clock = core_.clock();
  BusCore::Initiator& initiator = core_.initiator(static_cast<std::size_t>(id));
  RequestBatch* const batch = short_batch_of(payload, delay);
  if (batch != nullptr) {
    if (transport(id, *batch, initiator, payload)) return;
    batch->expand();
    payload.clear_extension(batch);  // the target must not serve what goes elsewhere
  }
  const std::uint64_t now = to_ps(sc_core::sc_time_stamp());
  const std::uint64_t arrival = clock.cycle_from_ps(now + to_ps(delay));
  core_.retire(clock.cycle_from_ps(now));

  const unsigned bytes = payload.get_data_length();
  const std::uint64_t granted = core_.grant(initiator, arrival);
  const std::uint64_t address = payload.get_address();
  const AddressMap::Range* const range = map_.find(address, bytes);
  const bool write = payload.is_write();
  const auto answer = [&](std::uint64_t delivered, std::uint64_t answered, bool ok) {
    if (observers_.empty()) return;
    BusTransaction transaction{
        address, arrival, granted, answered, bytes, static_cast<std::uint32_t>(id), write};
    set_data(transaction, delivered, ok);
    tell(transaction, initiator.name);
  };
  if (range == nullptr) {
    ++core_.decode_errors;
    ++initiator.errors;
    const std::uint64_t answered = granted + core_.round_trip();
    delay = from_ps(clock.edge_ps(answered) - now);
    payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
    answer(answered, answered, false);
    return;
  }
  const BusCore::Route route{range->target, address - range->base, bytes};
  const std::uint64_t delivered = core_.deliver(initiator, granted, write, route);
  delay = from_ps(clock.edge_ps(delivered) - now);
  {
    const LocalAddress local(payload, *range);
    targets[static_cast<int>(range->target)]->b_transport(payload, delay);
  }
  // The target may have waited, so the present is read again.
  const std::uint64_t later = to_ps(sc_core::sc_time_stamp());
  const std::uint64_t finished = clock.cycle_from_ps(later + to_ps(delay));
  const bool ok = payload.is_response_ok();
  if (!ok) ++initiator.errors;
  const std::uint64_t done = core_.respond(initiator, finished, ok && payload.is_read(), route);
  delay = from_ps(clock.edge_ps(done) - later);
  answer(delivered, done, ok);
}

// Each channel and the target see the requests in order, and no other request can come between
// them, so that what they do is what as many calls would have done.
bool SystemBus::transport(int id, RequestBatch& batch, BusCore::Initiator& initiator,
                          tlm::tlm_generic_payload& payload) {
  RequestBatch::Request& front = batch.requests.front();
  const bool in_rows = !batch.times.empty();
  const AddressMap::Range* const range =
      map_.find(front.address,
                in_rows ? batch.rows.span(batch.times.size()) : (batch.more + 1) * front.bytes);
  if (range == nullptr) return false;
  for (const RequestBatch::Request& request : batch.requests) {
    if (!AddressMap::holds(*range, request.address, request.bytes)) return false;
  }
  core_.retire(core_.clock().cycle_from(sc_core::sc_time_stamp()));
  BatchCall call{static_cast<std::uint32_t>(id), *range, payload.is_write(), initiator, {}};
  for (RequestBatch::Request& request : batch.requests) request.address -= range->base;
  std::optional<BusCore::SentReads> sent;
  if (batch.more != 0) {
    sent = send_in_one(batch, call);
    if (!sent) batch.spread();
  }
  if (!sent) send(batch, call);
  transport_batch(batch, payload, [&](auto& same, auto& delay) {
    targets[static_cast<int>(range->target)]->b_transport(same, delay);
  });
  if (sent) core_.count_sent(initiator, *sent, batch.size());
  if (batch.more != 0) times_streams_[range->target] = true;
  if (batch.more != 0 && !respond_in_one(batch, call)) batch.spread();
  if (batch.more == 0) respond(batch, call);
  for (RequestBatch::Request& request : batch.requests) request.address += range->base;
  return true;
}

void SystemBus::limit_answer(RequestBatch& batch) const {
  const Clock& clock = core_.clock();
  const std::uint64_t answered = clock.cycle_from_ps(batch.answer_from);
  const auto finished =
      core_.finished_for(answered, clock.cycles_in(batch.step), piece_of(batch.requests.front()));
  if (clock.edge_ps(answered) > batch.answer_by || !finished) return batch.leave_uncertain();
  // A time between two edges counts as the second.
  batch.answer_from = finished->first == 0 ? 0 : clock.edge_ps(finished->first - 1) + 1;
  batch.answer_by = clock.edge_ps(finished->second);
}

std::optional<BusCore::SentReads> SystemBus::send_in_one(RequestBatch& batch,
                                                         const BatchCall& call) {
  const Clock& clock = core_.clock();
  if (call.write || !observers_.empty() || !clock.divides(batch.step) ||
      !core_.are_alike(piece_of(batch.requests.front()), 0)) {
    return std::nullopt;
  }
  if (times_streams_.size() <= call.range.target) times_streams_.resize(call.range.target + 1);
  if (batch.size() > batch.certain) {
    if (times_streams_[call.range.target]) {
      limit_answer(batch);
    } else {
      batch.leave_uncertain();
    }
  }
  RequestBatch::Request& first = batch.requests.front();
  BusCore::SentReads sent{clock.cycle_from_ps(first.time), 0, clock.cycles_in(batch.step),
                          batch.size(), first.bytes};
  const auto delivered = core_.send_reads(sent.arrival, sent.step, sent.count);
  if (!delivered) return std::nullopt;
  sent.delivered = *delivered;
  first.time = clock.edge_ps(sent.delivered);
  return sent;
}

bool SystemBus::respond_in_one(RequestBatch& batch, const BatchCall& call) {
  const Clock& clock = core_.clock();
  RequestBatch::Request& first = batch.requests.front();
  if (!first.is_ok() || !clock.divides(batch.step)) return false;
  const std::optional<std::uint64_t> answered =
      core_.respond_to_reads(call.initiator, clock.cycle_from_ps(first.time),
                             clock.cycles_in(batch.step), batch.size(), piece_of(first));
  if (answered) first.time = clock.edge_ps(*answered);
  return answered.has_value();
}

void SystemBus::send(RequestBatch& batch, BatchCall& call) {
  RequestBatch::Request& first = batch.requests.front();
  if (!batch.times.empty() && is_plain() && core_.are_alike(piece_of(first), batch.rows.gap)) {
    core_.send(call.initiator, call.write, piece_of(first), batch.times);
    first.time = batch.times.front();
    return;
  }
  batch.expand();
  const Clock& clock = core_.clock();
  for (RequestBatch::Request& request : batch.requests) {
    const std::uint64_t arrival = clock.cycle_from_ps(request.time);
    const std::uint64_t granted = core_.grant(call.initiator, arrival);
    const BusCore::Route route{call.range.target, request.address, request.bytes};
    const std::uint64_t delivered = core_.deliver(call.initiator, granted, call.write, route);
    request.time = clock.edge_ps(delivered);
    if (observers_.empty()) continue;
    call.observed.push_back({request.address + call.range.base, arrival, granted, 0, request.bytes,
                             call.id, call.write});
    if (call.write) set_data(call.observed.back(), delivered, true);
  }
}

void SystemBus::respond(RequestBatch& batch, BatchCall& call) {
  // Only what was not looked at comes back so.
  if (!batch.times.empty() && batch.requests.front().is_ok()) {
    return core_.respond(call.initiator, call.write, piece_of(batch.requests.front()), batch.times);
  }
  batch.expand();
  const Clock& clock = core_.clock();
  for (RequestBatch::Request& request : batch.requests) {
    if (!request.is_ok()) ++call.initiator.errors;
    const bool has_data = request.is_ok() && !call.write;
    const BusCore::Route route{call.range.target, request.address, request.bytes};
    const std::uint64_t answered =
        core_.respond(call.initiator, clock.cycle_from_ps(request.time), has_data, route);
    request.time = clock.edge_ps(answered);
    if (observers_.empty()) continue;
    BusTransaction& transaction =
        call.observed[static_cast<std::size_t>(&request - batch.requests.data())];
    transaction.answered = answered;
    if (!call.write) set_data(transaction, 0, has_data);
    tell(transaction, call.initiator.name);
  }
}

unsigned SystemBus::transport_dbg(int, tlm::tlm_generic_payload& payload) {
  return debug_at_target(map_, targets, payload);
}

bool SystemBus::get_direct_mem_ptr(int, tlm::tlm_generic_payload& payload, tlm::tlm_dmi& dmi) {
  return direct_access_to_target(map_, targets, payload, dmi,
                                 core_.clock().edge(core_.round_trip()));
}

void SystemBus::invalidate_direct_mem_ptr(int id, sc_dt::uint64 start, sc_dt::uint64 end) {
  for (const AddressMap::Range& range : map_.ranges()) {
    if (range.target != static_cast<unsigned>(id) || start >= range.size) continue;
    const std::uint64_t last = std::min<std::uint64_t>(end, range.size - 1);
    for (unsigned i = 0; i < initiators.size(); ++i) {
      initiators[static_cast<int>(i)]->invalidate_direct_mem_ptr(range.base + start,
                                                                 range.base + last);
    }
  }
}

void SystemBus::set_data(BusTransaction& transaction, std::uint64_t delivered, bool ok) const {
  if (!transaction.write && !ok) return;
  transaction.data_cycles =
      static_cast<std::uint32_t>(core_.data_cycles(transaction.address, transaction.bytes));
  transaction.data_end = transaction.write
                             ? delivered - core_.params().request_latency + 1
                             : transaction.answered - core_.params().response_latency + 1;
}

/// A signal for each link of the mesh: busy while a packet passes.
class SystemBus::LinkSignals final : public hw::MeshWatch {
 public:
  LinkSignals(SignalRecorder& recorder, const std::string& prefix, const hw::Mesh& mesh,
              const Clock& clock)
      : recorder_(recorder), clock_(clock) {
    for (const hw::Mesh::Link& link : mesh.links()) {
      signals_.push_back(link.name.empty() ? 0 : recorder.add_state(prefix + link.name + ".state"));
    }
  }

  void take(std::size_t link, std::uint64_t begin, std::uint64_t end) override {
    if (!recorder_.records()) return;
    recorder_.hold(signals_[link], clock_.edge_ps(begin), clock_.edge_ps(end), wave_state("busy"));
  }

 private:
  SignalRecorder& recorder_;
  const Clock& clock_;
  std::vector<SignalRecorder::Signal> signals_;  ///< by link
};

void SystemBus::watch_links(SignalRecorder& recorder) {
  const std::string path = name();
  const std::string prefix = path.substr(0, path.size() - std::string(basename()).size()) + "noc.";
  hw::Mesh& mesh = core_.mesh()->mesh();
  link_signals_ = std::make_unique<LinkSignals>(recorder, prefix, mesh, core_.clock());
  mesh.watch(*link_signals_);
}

void SystemBus::watch(SignalRecorder& recorder) {
  struct Signals {
    SignalRecorder::Signal state, address, bytes, direction, waiting, in_flight, transactions;
  };
  using Kind = SignalRecorder::Kind;
  const std::string prefix = std::string(name()) + ".";
  std::vector<std::string> names;
  std::vector<Signals> signals;
  for (const BusCore::Initiator& initiator : core_.initiators()) {
    names.push_back(short_name(initiator.name));
    const std::string path = prefix + names.back() + ".";
    signals.push_back({recorder.add_state(path + "state"),
                       recorder.add_signal(path + "address", 48, Kind::kLatest),
                       recorder.add_signal(path + "bytes", 16, Kind::kLatest),
                       recorder.add_state(path + "direction"),
                       recorder.add_signal(path + "waiting", 10, Kind::kNumber),
                       recorder.add_signal(path + "in_flight", 10, Kind::kNumber),
                       recorder.add_signal(path + "transactions", 32, Kind::kNumber)});
  }
  recorder.name_initiators(names);
  const bool has_channels = core_.mesh() == nullptr;
  if (!has_channels) watch_links(recorder);
  const auto channel = [&](const char* name) {
    return has_channels ? recorder.add_signal(prefix + name, 8, Kind::kLatest) : 0;
  };
  const auto request = channel("request");
  const auto write_data = channel("write_data"), read_data = channel("read_data");
  observe([=, &recorder](const BusTransaction& transaction, const std::string&) {
    if (!recorder.records() || transaction.initiator >= signals.size()) return;
    const Signals& of = signals[transaction.initiator];
    const auto ps = [this](std::uint64_t cycle) { return core_.clock().edge_ps(cycle); };
    const std::uint64_t asked = ps(transaction.asked), granted = ps(transaction.granted);
    const std::uint64_t next = ps(transaction.granted + 1), answered = ps(transaction.answered);
    if (has_channels) recorder.hold(request, granted, next, transaction.initiator);
    recorder.hold(of.state, granted, next, wave_state("granted"));
    recorder.hold(of.state, next, answered, wave_state("in_flight"));
    if (asked < granted) {
      recorder.hold(of.state, asked, granted, wave_state("waiting"));
      recorder.add(of.waiting, asked, 1);
      recorder.add(of.waiting, granted, -1);
    }
    recorder.hold(of.address, granted, answered, transaction.address);
    recorder.hold(of.bytes, granted, answered, transaction.bytes);
    recorder.hold(of.direction, granted, answered,
                  wave_state(transaction.write ? "write" : "read"));
    recorder.add(of.in_flight, granted, 1);
    recorder.add(of.in_flight, answered, -1);
    recorder.add(of.transactions, granted, 1);
    if (transaction.data_cycles == 0 || !has_channels) return;
    recorder.hold(transaction.write ? write_data : read_data,
                  ps(transaction.data_end - transaction.data_cycles), ps(transaction.data_end),
                  transaction.initiator);
  });
}

void SystemBus::sample() {
  read_bytes_ = written_bytes_ = 0;
  for (const BusCore::Initiator& initiator : core_.initiators()) {
    read_bytes_ += initiator.read_bytes;
    written_bytes_ += initiator.written_bytes;
  }
}

void SystemBus::trace(sc_core::sc_trace_file* file) const {
  const std::string prefix = std::string(name()) + ".";
  sc_core::sc_trace(file, read_bytes_, prefix + "read_bytes");
  sc_core::sc_trace(file, written_bytes_, prefix + "written_bytes");
}

}  // namespace systole::tlm_model
