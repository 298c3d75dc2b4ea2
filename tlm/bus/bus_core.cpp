#include "tlm/bus/bus_core.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace systole::tlm_model {
namespace {

const hw::Machine::Bus& checked(const hw::Machine::Bus& params) {
  if (params.width_bytes == 0) {
    throw std::invalid_argument("bus: width_bytes = 0: must be at least 1");
  }
  return params;
}

/// Of `count` numbers, each by `step` larger than the one before it.
constexpr std::uint64_t sum_of(std::uint64_t first, std::uint64_t step, std::uint64_t count) {
  return count * first + step * (count * (count - 1) / 2);
}

}  // namespace

BusCore::BusCore(const hw::Machine::Bus& params, std::unique_ptr<BusMesh> mesh)
    : params_(checked(params)),
      clock_(params.clock_mhz),
      request_("cycles"),
      write_data_("cycles"),
      read_data_("cycles"),
      write_response_("cycles"),
      mesh_(std::move(mesh)) {}

std::uint64_t BusCore::deliver_by_mesh(Initiator& initiator, std::uint64_t grant, bool write,
                                       const Route& route) {
  const BusMesh::Passage passage = mesh_->send(initiator.endpoint, route, write, grant);
  initiator.request_wait += passage.waited;
  initiator.byte_hops += passage.byte_hops;
  return passage.end - 1;
}

std::uint64_t BusCore::respond_by_mesh(Initiator& initiator, std::uint64_t finished, bool read,
                                       const Route& route) {
  const BusMesh::Passage passage = mesh_->answer(initiator.endpoint, route, read, finished);
  initiator.data_wait += passage.waited;
  initiator.byte_hops += passage.byte_hops;
  return passage.end - 1;
}

void BusCore::add_initiators(std::size_t count) {
  while (initiators_.size() < count) {
    const std::string name = "initiator" + std::to_string(initiators_.size());
    initiators_.emplace_back().name = name;
  }
}

// Sums stay in registers until all requests are through.
void BusCore::send(Initiator& initiator, bool write, Piece piece,
                   std::vector<std::uint64_t>& times) {
  const Clock clock = clock_;
  const std::uint64_t latency = params_.request_latency;
  const std::uint64_t length = data_cycles(piece.address, piece.bytes);
  std::uint64_t request_wait = 0, data_wait = 0, arrivals = 0;
  for (std::uint64_t& time : times) {
    const std::uint64_t arrival = clock.cycle_from_ps(time);
    const std::uint64_t granted = request_.reserve(arrival, 1);
    request_wait += granted - arrival;
    std::uint64_t delivered = granted + latency;
    if (write) {
      const std::uint64_t begin = write_data_.reserve(granted, length);
      data_wait += begin - granted;
      delivered = begin + length - 1 + latency;
    }
    arrivals += delivered;
    time = clock.edge_ps(delivered);
  }
  (write ? initiator.writes : initiator.reads) += times.size();
  (write ? initiator.written_bytes : initiator.read_bytes) += times.size() * piece.bytes;
  initiator.request_wait += request_wait;
  initiator.data_wait += data_wait;
  initiator.target_time -= arrivals;
}

void BusCore::respond(Initiator& initiator, bool write, Piece piece,
                      std::vector<std::uint64_t>& times) {
  const Clock clock = clock_;
  const std::uint64_t latency = params_.response_latency;
  const std::uint64_t length = write ? 1 : data_cycles(piece.address, piece.bytes);
  hw::Calendar& channel = write ? write_response_ : read_data_;
  std::uint64_t data_wait = 0, answers = 0;
  for (std::uint64_t& time : times) {
    const std::uint64_t finished = clock.cycle_from_ps(time);
    const std::uint64_t begin = channel.reserve(finished, length);
    data_wait += begin - finished;
    answers += finished;
    time = clock.edge_ps(begin + length - 1 + latency);
  }
  initiator.data_wait += data_wait;
  initiator.target_time += answers;
}

std::optional<std::uint64_t> BusCore::send_reads(std::uint64_t arrival, std::uint64_t step,
                                                 std::uint64_t count) {
  if (mesh_) return std::nullopt;  // each is a packet, and channels are at different nodes
  const std::optional<std::uint64_t> granted = request_.reserve_each(arrival, step, count, 1);
  if (!granted) return std::nullopt;
  return *granted + params_.request_latency;
}

void BusCore::count_sent(Initiator& initiator, const SentReads& sent, std::uint64_t kept) {
  if (kept != sent.count) request_.give_back(sent.count - kept, 1);
  initiator.request_wait += kept * (sent.delivered - params_.request_latency - sent.arrival);
  initiator.reads += kept;
  initiator.read_bytes += kept * sent.bytes;
  initiator.target_time -= sum_of(sent.delivered, sent.step, kept);
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> BusCore::finished_for(std::uint64_t answered,
                                                                             std::uint64_t step,
                                                                             Piece piece) const {
  const std::uint64_t length = data_cycles(piece.address, piece.bytes);
  const std::uint64_t after = length - 1 + params_.response_latency;
  if (answered < after) return std::nullopt;
  return read_data_.earliest_for(answered - after, step, length);
}

std::optional<std::uint64_t> BusCore::respond_to_reads(Initiator& initiator, std::uint64_t finished,
                                                       std::uint64_t step, std::uint64_t count,
                                                       Piece piece) {
  const std::uint64_t length = data_cycles(piece.address, piece.bytes);
  const std::optional<std::uint64_t> begin = read_data_.reserve_each(finished, step, count, length);
  if (!begin) return std::nullopt;
  initiator.target_time += sum_of(finished, step, count);
  initiator.data_wait += count * (*begin - finished);
  return *begin + length - 1 + params_.response_latency;
}

void BusCore::finish(std::uint64_t total) {
  if (mesh_) {
    mesh_->mesh().finish(total);
    return;
  }
  total = std::max({total, request_.last_end(), write_data_.last_end(), read_data_.last_end()});
  request_.finish(total);
  write_data_.finish(total);
  read_data_.finish(total);
}

hw::BlockReport BusCore::report(std::string name) const {
  hw::BlockReport report{
      std::move(name),
      {},
      {{"decode_errors", "requests", "requests to addresses of no target", decode_errors}},
      {}};
  for (const Initiator& i : initiators_) {
    report.parts.push_back(
        {i.name,
         {},
         {{"reads", "requests", "read requests", i.reads},
          {"writes", "requests", "write requests", i.writes},
          {"read_bytes", "bytes", "bytes read", i.read_bytes},
          {"written_bytes", "bytes", "bytes written", i.written_bytes},
          {"request_wait", "cycles", "waiting for the request channel, all requests together",
           i.request_wait},
          {"data_wait", "cycles",
           "waiting for a data channel, or that of write responses, all requests together",
           i.data_wait},
          {"target_time", "cycles",
           "from a request's arrival at its target to the answer, all requests together",
           i.target_time},
          {"errors", "requests", "requests answered with an error", i.errors}},
         {}});
  }
  if (mesh_) return report;
  report.parts.push_back({"request", request_.account().time(), {}, {}});
  report.parts.push_back({"write_data", write_data_.account().time(), {}, {}});
  report.parts.push_back({"read_data", read_data_.account().time(), {}, {}});
  return report;
}

}  // namespace systole::tlm_model
