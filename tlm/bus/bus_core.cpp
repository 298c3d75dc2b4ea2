#include "tlm/bus/bus_core.h"

#include <algorithm>
#include <stdexcept>

namespace systole::tlm_model {
namespace {

const hw::Machine::Bus& checked(const hw::Machine::Bus& params) {
  if (params.width_bytes == 0) {
    throw std::invalid_argument("bus: width_bytes = 0: must be at least 1");
  }
  return params;
}

}  // namespace

BusCore::BusCore(const hw::Machine::Bus& params)
    : params_(checked(params)),
      clock_(params.clock_mhz),
      request_("cycles", {{"target_backpressure", "requests wait for a target to accept"}}),
      write_data_("cycles", {}),
      read_data_("cycles", {}) {}

void BusCore::add_initiators(std::size_t count) {
  while (initiators_.size() < count) {
    const std::string name = "initiator" + std::to_string(initiators_.size());
    initiators_.emplace_back().name = name;
  }
}

void BusCore::finish(std::uint64_t total) {
  total = std::max({total, request_.last_end(), write_data_.last_end(), read_data_.last_end()});
  request_.finish(total);
  write_data_.finish(total);
  read_data_.finish(total);
}

std::vector<hw::Counter> BusCore::counters() const {
  std::vector<hw::Counter> all{
      {"decode_errors", "requests", "requests to addresses of no target", decode_errors}};
  for (const Initiator& i : initiators_) {
    const std::string prefix = i.name + ".";
    const auto add = [&](const char* name, const char* unit, const char* meaning,
                         std::uint64_t value) {
      all.push_back({prefix + name, unit, meaning, value});
    };
    add("reads", "requests", "read requests", i.reads);
    add("writes", "requests", "write requests", i.writes);
    add("read_bytes", "bytes", "bytes read", i.read_bytes);
    add("written_bytes", "bytes", "bytes written", i.written_bytes);
    add("request_wait", "cycles", "waiting for the request channel, all requests together",
        i.request_wait);
    add("data_wait", "cycles", "waiting for a data channel, all requests together", i.data_wait);
    add("errors", "requests", "requests answered with an error", i.errors);
  }
  return all;
}

}  // namespace systole::tlm_model
