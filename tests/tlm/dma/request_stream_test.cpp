#include <gtest/gtest.h>
#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "support/random/draws.h"
#include "support/random/random_machine.h"
#include "support/report_values.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/systemc_test.h"
#include "support/tlm/tlm_driver.h"
#include "tlm/bus/system_bus.h"
#include "tlm/dma/request_dma.h"
#include "tlm/memory/dram.h"

// Requests in runs: what many ports see of a bus and a DRAM that time even streams in one step must
// be what they see if every request is timed by itself, to the cycle and to the last counter.
namespace systole::tlm_model {
namespace {

using test::between;
using test::power_of_two;
using test::Random;

constexpr std::uint64_t kMemory = 1U << 20;

hw::Machine random_system(Random& random) {
  // With the default rates the bus is what a stream waits for, and streams are even.
  if (random() % 3 == 0) {
    hw::Machine machine;
    machine.dma.slots = hw::SlotOrder::kIssue;
    machine.dram.mib = 1;
    machine.dram.row_bytes = power_of_two(random, 9, 13);
    machine.dram.t_ccd_l_ns = between(random, 3, 18);
    machine.dram.t_refi_ns = between(random, 1500, 9000);
    return machine;
  }
  for (;;) {
    hw::Machine machine;
    machine.core.clock_mhz = std::vector<std::uint32_t>{1000, 500, 800, 333}[random() % 4];
    machine.bus.clock_mhz = random() % 3 == 0
                                ? std::vector<std::uint32_t>{1000, 500, 700}[random() % 3]
                                : machine.core.clock_mhz;
    machine.bus.width_bytes = power_of_two(random, 2, 6);
    machine.bus.request_latency = between(random, 1, 12);
    machine.bus.response_latency = between(random, 1, 12);
    machine.dma.request_bytes = random() % 4 == 0 ? power_of_two(random, 4, 8) : 64;
    machine.dma.slots = random() % 8 == 0 ? hw::SlotOrder::kCompletion : hw::SlotOrder::kIssue;
    hw::Machine::Dram& dram = machine.dram;
    dram.mib = 1;
    dram.channels = random() % 3 == 0 ? 2 : 1;
    dram.banks = power_of_two(random, 2, 4);
    dram.bank_groups = power_of_two(random, 0, 2);
    dram.row_bytes = power_of_two(random, 9, 13);
    dram.mega_transfers = std::vector<std::uint32_t>{800, 1600, 2000, 2400, 3200}[random() % 5];
    dram.t_ccd_l_ns = between(random, 2, 12);
    dram.controller_ns = between(random, 0, 40);
    dram.t_refi_ns = std::vector<double>{0, 1500, 3900, 7800}[random() % 4];
    if (hw::machine_problems(machine).empty()) return machine;
  }
}

/// What one port does, one after the other.
struct Move {
  bool write;
  DmaPort::Rows rows;
  std::uint64_t pause;  ///< cycles before it
};

std::vector<Move> random_moves(Random& random, std::uint32_t request_bytes) {
  std::vector<Move> moves;
  for (std::uint32_t i = between(random, 1, 6); i != 0; --i) {
    DmaPort::Rows rows{};
    const bool even = random() % 4 != 0;
    rows.count = between(random, 1, 24);
    rows.bytes = even ? request_bytes * between(random, 1, 40) : between(random, 1, 900);
    rows.pitch = rows.bytes;
    if (random() % 3 == 0) rows.pitch += request_bytes * between(random, 0, 9);
    rows.address = random() % (kMemory / 2);
    if (even) rows.address &= ~std::uint64_t{request_bytes - 1};
    rows.data_pitch = rows.bytes + (random() % 2 == 0 ? 0 : between(random, 1, 70));
    const std::uint64_t pause = random() % 3 == 0 ? between(random, 1, 400) : 0;
    moves.push_back({random() % 4 == 0, rows, pause});
  }
  return moves;
}

struct Port {
  std::uint32_t outstanding;
  std::vector<Move> moves;
};

struct Task {
  hw::Machine machine;
  std::vector<Port> ports;
  std::uint64_t heartbeat;  ///< cycles after which a process that moves nothing acts; 0: none
  bool with_data = false;
};

Task random_task(std::uint64_t seed) {
  Random random(seed);
  Task task{random_system(random),
            {},
            random() % 2 == 0 ? 0 : between(random, 5, 300),
            random() % 4 == 0};
  for (std::uint32_t i = random() % 3 == 0 ? between(random, 2, 4) : 1; i != 0; --i) {
    task.ports.push_back({random() % 3 == 0 ? between(random, 1, 40) : 16,
                          random_moves(random, task.machine.dma.request_bytes)});
  }
  return task;
}

/// How a task is run.
struct Manner {
  bool singly = false;     ///< each request by itself
  bool backwards = false;  ///< the processes are made in the opposite order of their ports
  BusObserver observer;    ///< of each request, if it is not empty
};

/// All that can be seen of a run, in words.
std::vector<std::string> observe(const Task& task, std::uint64_t& in_one,
                                 const Manner& manner = {}) {
  std::vector<std::string> seen;
  const auto note = [&seen](const std::string& what, std::uint64_t value) {
    seen.push_back(what + " " + std::to_string(value));
  };
  {
    SystemBus bus("bus", task.machine.bus);
    if (manner.observer) bus.observe(manner.observer);
    Dram dram("dram", task.machine.dram, task.with_data);
    if (task.with_data) {
      for (std::uint64_t i = 0; i < kMemory; ++i) {
        dram.stored(i) = static_cast<std::uint8_t>(i * 2654435761U >> 13U);
      }
    }
    std::vector<std::unique_ptr<RequestDma>> ports;
    std::size_t running = task.ports.size();
    const Clock clock(task.machine.core.clock_mhz);
    for (std::size_t i = 0; i < task.ports.size(); ++i) {
      const std::string name = "port" + std::to_string(i);
      ports.push_back(
          std::make_unique<RequestDma>(name.c_str(), task.machine, task.ports[i].outstanding));
      if (manner.singly) ports[i]->issue_singly();
      bus.connect_initiator(ports[i]->socket);
    }
    for (std::size_t process = 0; process < task.ports.size(); ++process) {
      const std::size_t i = manner.backwards ? task.ports.size() - 1 - process : process;
      const std::string name = "port" + std::to_string(i);
      sc_core::sc_spawn([&, i, name] {
        for (const Move& move : task.ports[i].moves) {
          if (move.pause != 0) sc_core::wait(clock.edge(move.pause));
          DmaPort::Rows rows = move.rows;
          std::vector<std::uint8_t> data(task.with_data ? rows.count * rows.data_pitch : 0);
          for (std::size_t at = 0; at < data.size(); ++at) {
            data[at] = static_cast<std::uint8_t>(at + i);
          }
          rows.data = task.with_data ? data.data() : nullptr;
          const std::uint64_t done =
              ports[i]->move(move.write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND, rows, 0,
                             [&](const DmaPort::Arrival& arrival) {
                               note(name + " row " + std::to_string(arrival.row), arrival.cycle);
                               note(name + " bytes", arrival.bytes);
                               if (arrival.ends_row) note(name + " is done", arrival.row_done);
                             });
          note(name + " data", hw::hash_of(data.data(), data.size()));
          note(name + " done", done);
          note(name + " next", ports[i]->next_issue());
          note(name + " returns at", to_ps(sc_core::sc_time_stamp()));
        }
        --running;
      });
    }
    bus.connect_target(dram.socket, 0, dram.capacity());
    if (task.heartbeat != 0) {
      sc_core::sc_spawn([&] {
        while (running != 0) sc_core::wait(clock.edge(task.heartbeat));
      });
    }
    sc_core::sc_start();
    if (task.with_data) note("memory", hw::hash_of(&dram.stored(0), kMemory));
    const sc_core::sc_time end = sc_core::sc_time_stamp() + test::ns(100'000);
    bus.finish(end);
    dram.finish(end);
    for (const hw::BlockReport& report : {bus.report(), dram.report()}) {
      for (const auto& [name, value] : test::values_of(report)) note(name, value);
    }
    for (const auto& port : ports) {
      note("requests", port->stats().requests);
      note("bytes", port->stats().bytes);
      note("window", port->stats().window_wait_cycles);
      in_one += port->timed_in_one();
    }
  }
  test::fresh_kernel();
  return seen;
}

class RequestStreamTest : public test::SystemCTest {};

const Manner kSingly{true, false, {}};

TEST_F(RequestStreamTest, LooksLikeSingleRequestsInRandomSystems) {
  const char* const more = std::getenv("SYSTOLE_STREAM_SYSTEMS");
  const std::uint64_t systems = more != nullptr ? std::stoull(more) : test::draws(1000U);
  std::uint64_t in_one = 0, none = 0;
  for (std::uint64_t seed = 0; seed < systems; ++seed) {
    const Task task = random_task(seed);
    const std::vector<std::string> even = observe(task, in_one);
    const std::vector<std::string> single = observe(task, none, kSingly);
    ASSERT_EQ(even.size(), single.size());
    for (std::size_t i = 0; i < even.size(); ++i) {
      ASSERT_EQ(even[i], single[i]) << "system " << seed << ", " << i;
    }
  }
  EXPECT_EQ(none, 0U);
  EXPECT_GT(in_one, 20 * systems) << "even streams hardly occur";
}

// What a DRAM does with requests depends on their order, so that of the calls has to be that of
// time.
TEST_F(RequestStreamTest, RequestsOfSeveralPortsReachMemoryInTheOrderInWhichTheyIssue) {
  const std::uint64_t systems = test::draws(400U);
  std::uint64_t in_one = 0, turns = 0, requests = 0;
  for (std::uint64_t seed = 0; seed < systems; ++seed) {
    const Task task = random_task(seed);
    if (task.ports.size() == 1) continue;
    std::uint64_t last = 0, early = 0;
    std::uint32_t port = 0;
    Manner manner;
    manner.observer = [&](const BusTransaction& request, const std::string&) {
      early += request.asked < last ? 1 : 0;
      last = request.asked;
      turns += request.initiator != port ? 1 : 0;
      port = request.initiator;
      ++requests;
    };
    observe(task, in_one, manner);
    ASSERT_EQ(early, 0U) << "system " << seed;
  }
  EXPECT_GT(turns, systems * 10) << "ports hardly meet";
  EXPECT_GT(requests, turns);
}

TEST_F(RequestStreamTest, TheOrderOfProcessesDoesNotMatter) {
  const std::uint64_t systems = test::draws(400U);
  std::uint64_t in_one = 0, several = 0;
  const auto sorted = [](std::vector<std::string> words) {
    std::sort(words.begin(), words.end());
    return words;
  };
  for (std::uint64_t seed = 0; seed < systems; ++seed) {
    const Task task = random_task(seed);
    if (task.ports.size() == 1) continue;
    ++several;
    ASSERT_EQ(sorted(observe(task, in_one)), sorted(observe(task, in_one, {false, true, {}})))
        << "system " << seed;
  }
  EXPECT_GT(several, systems / 5);
}

TEST_F(RequestStreamTest, OfPortsThatIssueInTheSameCycleTheOneThatWasMadeFirstIssuesFirst) {
  Task task{{}, {}, 0};
  task.machine.dram.mib = 1;
  task.machine.dma.slots = hw::SlotOrder::kIssue;
  const std::uint64_t bytes = std::uint64_t{50} * task.machine.dma.request_bytes;
  for (const std::uint64_t pause : {9U, 4U, 7U}) {
    task.ports.push_back({64, {{false, {0, bytes, nullptr, bytes, 1, bytes}, pause}}});
  }
  for (const bool backwards : {false, true}) {
    std::uint64_t in_one = 0;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> requests;
    observe(task, in_one,
            {false, backwards, [&](const BusTransaction& request, const std::string&) {
               requests.emplace_back(request.asked, request.initiator);
             }});
    EXPECT_EQ(requests.size(), 150U);
    EXPECT_TRUE(std::is_sorted(requests.begin(), requests.end()));
  }
}

// An answer that comes a window later, or a few cycles before or after that.
TEST_F(RequestStreamTest, LooksLikeSingleRequestsWhateverTheLatency) {
  std::uint64_t in_one = 0, none = 0;
  for (std::uint32_t outstanding = 5; outstanding <= 14; ++outstanding) {
    for (std::uint32_t latency = 1; latency <= 48; ++latency) {
      Task task{{}, {}, 0};
      if (latency % 2 == 0) {  // data of the DRAM end at edges of the bus's clock
        task.machine.dram.t_cl_ns = 14;
        task.machine.dram.controller_ns = 10;
        task.machine.dram.mega_transfers = 2000;
      }
      task.machine.dma.slots = hw::SlotOrder::kIssue;
      task.machine.dram.mib = 1;
      task.machine.bus.response_latency = (latency + 1) / 2;
      const std::uint64_t bytes = std::uint64_t{120} * task.machine.dma.request_bytes;
      task.ports.push_back({outstanding, {{false, {0, bytes, nullptr, bytes, 3, bytes}, 0}}});
      ASSERT_EQ(observe(task, in_one), observe(task, none, kSingly))
          << outstanding << " requests, latency " << latency;
    }
  }
  EXPECT_GT(in_one, 10'000U);
}

/// Counts the calls that pass it.
class CallCounter : public sc_core::sc_module {
 public:
  tlm_utils::simple_target_socket<CallCounter> in{"in"};
  tlm_utils::simple_initiator_socket<CallCounter> out{"out"};
  std::uint64_t calls = 0;

  explicit CallCounter(const sc_core::sc_module_name& name) : sc_module(name) {
    in.register_b_transport(this, &CallCounter::b_transport);
  }

 private:
  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
    ++calls;
    out->b_transport(payload, delay);
  }
};

// 64 windows in a few calls: as many requests go in one as find their rows open before a refresh.
TEST_F(RequestStreamTest, LongStreamsTakeFewCalls) {
  hw::Machine machine;
  machine.dma.slots = hw::SlotOrder::kIssue;
  machine.dram.mib = 1;
  SystemBus bus("bus", machine.bus);
  Dram dram("dram", machine.dram, false);
  CallCounter counter("counter");
  RequestDma port("port", machine, 16);
  port.socket.bind(counter.in);
  bus.connect_initiator(counter.out);
  bus.connect_target(dram.socket, 0, dram.capacity());
  constexpr std::uint64_t kRequests = 1024;
  sc_core::sc_spawn([&] { port.read(0, nullptr, kRequests * machine.dma.request_bytes); });
  sc_core::sc_start();
  EXPECT_EQ(port.stats().requests, kRequests);
  EXPECT_GT(port.timed_in_one(), kRequests * 3 / 4);
  EXPECT_LT(counter.calls, 32U);
}

}  // namespace
}  // namespace systole::tlm_model
