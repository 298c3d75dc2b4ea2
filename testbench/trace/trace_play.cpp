#include "testbench/trace/trace_play.h"

#include <fmt/format.h>
#include <tlm_utils/passthrough_target_socket.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/error.h"
#include "hw/description/core_system.h"
#include "hw/host/core_registers.h"
#include "hw/program/program.h"
#include "testbench/common/text.h"
#include "testbench/report/machine_json.h"
#include "testbench/report/measurement.h"
#include "tlm/bus/system_bus.h"
#include "tlm/common/time.h"
#include "tlm/memory/dram.h"
#include "tlm/memory/l2_cache.h"

namespace systole::testbench {
namespace {

using tlm_model::BusTransaction;

/// Answers when the registers of a core do, and does nothing.
class NoCore : public sc_core::sc_module {
 public:
  tlm_utils::passthrough_target_socket<NoCore> registers{"registers"};
  NoCore(const sc_core::sc_module_name& name, std::uint32_t clock_mhz)
      : sc_module(name), clock_(clock_mhz) {
    registers.register_b_transport(this, &NoCore::b_transport);
  }

 private:
  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
    const sc_core::sc_time now = sc_core::sc_time_stamp();
    delay = clock_.edge(clock_.cycle_from(now + delay) + hw::CoreRegisterMap::kAnswerCycles) - now;
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
  }

  const tlm_model::Clock clock_;
};

/// Bus and memory of a machine with a player in the place of its host and its core.
class PlayedMachine {
 public:
  PlayedMachine(const hw::Machine& machine, const BusTrace& trace, const PlayOptions& options)
      : bus("bus", machine.bus),
        dram("dram", machine, false),
        l2(machine.l2.kib == 0
               ? nullptr
               : std::make_unique<tlm_model::L2Cache>("l2", machine, dram.capacity(), false)),
        core("core", machine.core.clock_mhz),
        player("player", machine, trace.transactions, trace.initiators.size(), options.timing,
               options.outstanding) {
    if (l2) l2->memory.bind(dram.socket);
    bus.connect_target(l2 ? l2->socket : dram.socket, hw::kDramBase, dram.capacity());
    bus.connect_target(core.registers, hw::kRegistersBase, hw::kAllRegisterBytes);
    for (auto& socket : player.sockets) bus.connect_initiator(socket);
  }

  [[nodiscard]] bool done() const { return player.done(); }
  [[nodiscard]] std::vector<hw::BlockReport> reports() {
    const sc_core::sc_time& now = sc_core::sc_time_stamp();
    std::vector<hw::BlockReport> result;
    bus.finish(now);
    result.push_back(bus.report());
    if (l2) {
      l2->finish(now);
      result.push_back(l2->report());
    }
    dram.finish(now);
    result.push_back(dram.report());
    return result;
  }

  tlm_model::SystemBus bus;
  tlm_model::Dram dram;
  std::unique_ptr<tlm_model::L2Cache> l2;
  NoCore core;
  tlm_model::TracePlayer player;
};

double gigabytes_per_second(std::uint64_t bytes, std::uint64_t cycles, const hw::Machine& machine) {
  return cycles == 0 ? 0.0
                     : static_cast<double>(bytes) * machine.bus.clock_mhz * 1e-3 /
                           static_cast<double>(cycles);
}

double mean_of(const std::vector<std::uint64_t>& values) {
  double sum = 0;
  for (const std::uint64_t value : values) sum += static_cast<double>(value);
  return sum / static_cast<double>(values.size());
}

}  // namespace

std::uint64_t PlayResult::Initiator::latency_at(double fraction) const {
  const auto count = static_cast<double>(latencies.size());
  const auto rank = static_cast<std::size_t>(std::ceil(fraction * count));
  return latencies.at(std::max<std::size_t>(rank, 1) - 1);
}

PlayResult play_trace(const BusTrace& trace, const hw::Machine& machine,
                      const PlayOptions& options) {
  if (options.timing == tlm_model::TracePlayer::Timing::kDependent && !trace.has_answers) {
    throw hw::InputError(
        "--timing dependent: the trace does not say when answers came, expected --timing elapsed");
  }
  PlayedMachine played(machine, trace, options);
  PlayResult result;
  for (const std::string& name : trace.initiators) result.initiators.emplace_back().name = name;
  std::vector<std::size_t> next(trace.initiators.size(), 0);
  // By initiator: its transactions keep their order, all of them may change theirs.
  std::vector<std::vector<const BusTransaction*>> recorded(trace.initiators.size());
  for (const BusTransaction& transaction : trace.transactions) {
    recorded[transaction.initiator].push_back(&transaction);
  }
  std::size_t count = 0;
  result.first_asked = ~std::uint64_t{0};
  played.bus.observe([&](const BusTransaction& transaction, const std::string&) {
    PlayResult::Initiator& initiator = result.initiators[transaction.initiator];
    ++(transaction.write ? initiator.writes : initiator.reads);
    (transaction.write ? initiator.written_bytes : initiator.read_bytes) += transaction.bytes;
    initiator.latencies.push_back(transaction.answered - transaction.asked);
    result.first_asked = std::min(result.first_asked, transaction.asked);
    result.last_answered = std::max(result.last_answered, transaction.answered);
    const BusTransaction& before = *recorded[transaction.initiator][next[transaction.initiator]++];
    if (trace.has_answers &&
        (before.granted != transaction.granted || before.answered != transaction.answered)) {
      ++result.changed;
      const std::uint64_t change = before.answered < transaction.answered
                                       ? transaction.answered - before.answered
                                       : before.answered - transaction.answered;
      result.largest_change = std::max(result.largest_change, change);
    }
    for (const tlm_model::BusObserver& observer : options.observers) {
      observer(transaction, trace.initiators[transaction.initiator]);
    }
    if (options.progress && ++count % 4096 == 0) options.progress(count);
  });
  static_cast<MachineRun&>(result) = run_machine(played);
  for (PlayResult::Initiator& initiator : result.initiators) {
    std::sort(initiator.latencies.begin(), initiator.latencies.end());
  }
  if (trace.has_answers) {
    std::uint64_t first = ~std::uint64_t{0}, last = 0;
    for (const BusTransaction& transaction : trace.transactions) {
      first = std::min(first, transaction.asked);
      last = std::max(last, transaction.answered);
    }
    result.recorded_cycles = last - first;
  }
  return result;
}

std::string play_text(const BusTrace& trace, const hw::Machine& machine, const PlayResult& result,
                      const std::vector<std::string>& files) {
  FactList facts;
  facts.add("machine", fmt::format("{}, its bus at {} MHz and its memory", machine.name,
                                   machine.bus.clock_mhz));
  std::string source = counted(trace.transactions.size(), "transaction");
  if (!trace.machine.empty()) source += " of " + trace.machine;
  facts.add("trace", source);
  facts.add("cycles", fmt::format("{} of the bus, from the first request to the last answer",
                                  grouped(result.cycles())));
  if (trace.has_answers) {
    facts.add("recorded",
              fmt::format("{} cycles; {} with another grant or answer, at most {} off",
                          grouped(result.recorded_cycles), counted(result.changed, "transaction"),
                          counted(result.largest_change, "cycle")));
  }
  std::uint64_t read = 0, written = 0;
  for (const PlayResult::Initiator& initiator : result.initiators) {
    read += initiator.read_bytes;
    written += initiator.written_bytes;
  }
  facts.add("traffic",
            fmt::format("{} bytes read, {} written, {:.3g} GB/s", grouped(read), grouped(written),
                        gigabytes_per_second(read + written, result.cycles(), machine)));
  for (const std::string& file : files) {
    if (!file.empty()) facts.add("written", file);
  }
  Table table("initiator | >reads | >writes | >bytes | >latency | >median | >99 % | >longest");
  for (const PlayResult::Initiator& initiator : result.initiators) {
    table.add({initiator.name, grouped(initiator.reads), grouped(initiator.writes),
               grouped(initiator.read_bytes + initiator.written_bytes),
               fmt::format("{:.1f}", mean_of(initiator.latencies)),
               grouped(initiator.latency_at(0.5)), grouped(initiator.latency_at(0.99)),
               grouped(initiator.latencies.back())});
  }
  return facts.text() + "\n" + table.text() + "\n" + block_table(result.blocks);
}

nlohmann::ordered_json play_json(const BusTrace& trace, const hw::Machine& machine,
                                 const PlayResult& result) {
  nlohmann::ordered_json document{{"machine", machine.name},
                                  {"recorded_on", trace.machine},
                                  {"bus_mhz", machine.bus.clock_mhz},
                                  {"transactions", trace.transactions.size()},
                                  {"bus_cycles", result.cycles()}};
  if (trace.has_answers) {
    document["recorded_bus_cycles"] = result.recorded_cycles;
    document["changed"] = result.changed;
    document["largest_change"] = result.largest_change;
  }
  for (const PlayResult::Initiator& initiator : result.initiators) {
    document["initiators"].push_back({{"name", initiator.name},
                                      {"reads", initiator.reads},
                                      {"writes", initiator.writes},
                                      {"read_bytes", initiator.read_bytes},
                                      {"written_bytes", initiator.written_bytes},
                                      {"latency_mean", mean_of(initiator.latencies)},
                                      {"latency_p50", initiator.latency_at(0.5)},
                                      {"latency_p99", initiator.latency_at(0.99)},
                                      {"latency_max", initiator.latencies.back()}});
  }
  document["blocks"] = accounts_json(result.blocks);
  document["counters"] = counters_json(result.blocks);
  document["machine_keys"] = machine_json(machine);
  return document;
}

}  // namespace systole::testbench
