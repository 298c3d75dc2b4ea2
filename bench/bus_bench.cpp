// Host time of the memory system: nanoseconds per 64-byte request, in the simulator and without it.
#include <tlm_utils/simple_initiator_socket.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <random>
#include <systemc>
#include <tlm>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/memory/dram_timing.h"
#include "tlm/bus/request_batch.h"
#include "tlm/bus/system_bus.h"
#include "tlm/common/time.h"
#include "tlm/dma/request_dma.h"
#include "tlm/memory/dram.h"

namespace {

using systole::hw::Machine;
using systole::tlm_model::from_ps;
using systole::tlm_model::RequestBatch;
using systole::tlm_model::to_ps;
using systole::tlm_model::transport_batch;

constexpr std::size_t kRequests = 2'000'000;
constexpr std::size_t kOutstanding = 16;
constexpr std::uint64_t kSpan = 16U << 20;

std::vector<std::uint64_t> addresses(bool random) {
  std::mt19937_64 generator(1);
  std::vector<std::uint64_t> list(kRequests);
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i] = (random ? generator() * 64 : i * 64) % kSpan;
  }
  return list;
}

/// CPU time, because benchmarks share their host with others.
double nanoseconds_each(std::clock_t start, std::size_t requests) {
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  return seconds * 1e9 / static_cast<double>(requests);
}

/// Reads through `socket` with kOutstanding requests in flight. The simulated time runs along once
/// in a while, so that the figure is the cost of the calls and not of the scheduler.
class Reader : public sc_core::sc_module {
 public:
  tlm_utils::simple_initiator_socket<Reader> socket{"socket"};

  explicit Reader(const sc_core::sc_module_name& name) : sc_module(name) {}

  /// Sends `batch_size` requests per call. Returns host nanoseconds per request;
  /// `gigabytes_per_second` is the simulated bandwidth.
  double run(const std::vector<std::uint64_t>& list, std::size_t batch_size, unsigned char* data,
             double& gigabytes_per_second) {
    tlm::tlm_generic_payload payload;
    payload.set_read();
    RequestBatch batch;
    std::vector<std::uint64_t> done(kOutstanding);  // ps, a ring
    const sc_core::sc_time begin = sc_core::sc_time_stamp();
    const std::clock_t start = std::clock();
    for (std::size_t first = 0; first < list.size(); first += batch_size) {
      const std::uint64_t now = to_ps(sc_core::sc_time_stamp());
      batch.requests.clear();
      for (std::size_t i = first; i < first + batch_size; ++i) {
        RequestBatch::Request& request = batch.requests.emplace_back();
        request.address = list[i];
        request.data = data;
        request.time = std::max(done[i % kOutstanding], now);
        request.bytes = 64;
      }
      transport_batch(batch, payload,
                      [this](auto& same, auto& delay) { socket->b_transport(same, delay); });
      for (std::size_t i = 0; i < batch_size; ++i) {
        done[(first + i) % kOutstanding] = batch.requests[i].time;
      }
      if ((first + batch_size) % 256 == 0) {
        wait(from_ps(batch.requests.back().time) - sc_core::sc_time_stamp());
      }
    }
    const double ns = nanoseconds_each(start, list.size());
    const sc_core::sc_time simulated = sc_core::sc_time_stamp() - begin;
    gigabytes_per_second = static_cast<double>(list.size()) * 64e-9 / simulated.to_seconds();
    return ns;
  }
};

/// The same reads by a port, in rows of 4 KiB, each request timed by itself or not.
double by_port(systole::tlm_model::RequestDma& port, bool singly, double& gigabytes_per_second) {
  if (singly) port.issue_singly();
  constexpr std::uint64_t kRow = 4096, kRows = 64;
  std::vector<std::uint8_t> data(kRow * kRows);
  const sc_core::sc_time begin = sc_core::sc_time_stamp();
  const std::clock_t start = std::clock();
  for (std::size_t first = 0; first < kRequests; first += kRows * kRow / 64) {
    port.read_rows({first * 64 % kSpan, kRow, data.data(), kRow, kRows, kRow}, {});
    port.synchronise();
  }
  const double ns = nanoseconds_each(start, kRequests);
  const sc_core::sc_time simulated = sc_core::sc_time_stamp() - begin;
  gigabytes_per_second = kRequests * 64e-9 / simulated.to_seconds();
  return ns;
}

double timing_alone(const std::vector<std::uint64_t>& list) {
  systole::hw::DramTiming timing{Machine::Dram{}};
  std::uint64_t time = 0;
  const std::clock_t start = std::clock();
  for (const std::uint64_t address : list) {
    const std::uint64_t end = timing.access(address, 64, false, time).end;
    if (end > 100'000) time = end - 100'000;
  }
  return nanoseconds_each(start, list.size());
}

}  // namespace

int sc_main(int, char*[]) {
  const Machine machine;
  systole::tlm_model::SystemBus bus("bus", machine.bus);
  systole::tlm_model::Dram dram("dram", machine.dram);
  Reader through_bus("through_bus");
  bus.connect_initiator(through_bus.socket);
  bus.connect_target(dram.socket, 0, dram.capacity());
  Reader direct("direct");
  systole::tlm_model::Dram direct_dram("direct_dram", machine.dram);
  direct.socket.bind(direct_dram.socket);
  systole::tlm_model::RequestDma port("port", machine, kOutstanding);
  bus.connect_initiator(port.socket);

  sc_core::sc_spawn([&] {
    std::vector<unsigned char> data(64);
    std::printf("%-34s %12s %14s\n", "64-byte reads", "host ns each", "simulated GB/s");
    for (const bool random : {false, true}) {
      const char* const pattern = random ? "random" : "sequential";
      const std::vector<std::uint64_t> list = addresses(random);
      std::printf("DRAM timing alone, %-15s %12.1f %14s\n", pattern, timing_alone(list), "-");
      double bandwidth = 0;
      double ns = direct.run(list, 1, data.data(), bandwidth);
      std::printf("DRAM, %-28s %12.1f %14.2f\n", pattern, ns, bandwidth);
      for (const std::size_t batch : {std::size_t{1}, kOutstanding}) {
        ns = through_bus.run(list, batch, data.data(), bandwidth);
        std::printf("bus and DRAM by %2zu, %-14s %12.1f %14.2f\n", batch, pattern, ns, bandwidth);
      }
    }
    for (const bool singly : {false, true}) {
      double bandwidth = 0;
      const double ns = by_port(port, singly, bandwidth);
      std::printf("port, bus and DRAM, %-14s %12.1f %14.2f\n", singly ? "singly" : "even streams",
                  ns, bandwidth);
    }
    sc_core::sc_stop();
  });
  sc_core::sc_start();
  return 0;
}
