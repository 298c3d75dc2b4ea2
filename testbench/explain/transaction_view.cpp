#include "testbench/explain/transaction_view.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "testbench/explain/explanation.h"
#include "testbench/wave/ftr_file.h"
#include "testbench/wave/wave_signals.h"
#include "tlm/bus/bus_transaction.h"
#include "tlm/common/time.h"

namespace systole::testbench {
namespace {

using tlm_model::CommandTrace;

/// What moves over the bus, by number of the initiator.
struct BusTraffic {
  const std::vector<tlm_model::BusTransaction>& transactions;
  const std::vector<std::string>& initiators;
};

/// The transactions of the commands of all cores, and of the bus.
class CommandTransactions {
 public:
  CommandTransactions(std::ostream& out, const std::vector<CoreCommands>& cores,
                      const tlm_model::Clock& bus_clock, const BusTraffic& bus)
      : bus_clock_(bus_clock), file_(out) {
    for (const CoreCommands& commands : cores) {
      if (commands.program != nullptr) cores_.emplace_back(commands);
    }
    // Viewers want to know all streams before the first transaction.
    for (Core& core : cores_) {
      for (const CommandTrace& trace : core.of.traces) add_generators(core, trace);
      end_ps_ = std::max(end_ps_, core.clock.edge_ps(core.of.finished));
    }
    std::vector<Initiator> initiators;
    for (const std::string& name : bus.initiators) initiators.push_back(add_initiator(name));
    for (Core& core : cores_) {
      core.commands.reserve(core.of.traces.size());
      for_each_command(core.of.traces, core.of.blocks,
                       [&](const CommandTrace& trace, const CommandStages& command) {
                         add(core, trace, command.stalls);
                       });
    }
    add_bus(bus.transactions, initiators);
    file_.close();
  }

 private:
  using Kind = std::pair<hw::Unit, hw::Opcode>;
  struct Generators {
    FtrFile::Generator commands, events;
  };
  struct Core {
    explicit Core(const CoreCommands& commands_of) : of(commands_of), clock(commands_of.clock_mhz) {
      for (const CommandTrace& trace : of.traces) {
        begun[trace.unit][clock.edge_ps(trace.started)] = &trace;
      }
    }

    const CoreCommands& of;
    const tlm_model::Clock clock;
    std::map<hw::Unit, FtrFile::Stream> streams;
    std::map<Kind, Generators> generators;
    std::vector<FtrFile::Transaction> commands;  ///< by position in the program
    std::map<hw::Unit, std::map<std::uint64_t, const CommandTrace*>> begun;  ///< by ps
  };

  void add_generators(Core& core, const CommandTrace& trace) {
    if (core.generators.count({trace.unit, trace.opcode}) != 0) return;
    auto stream = core.streams.find(trace.unit);
    if (stream == core.streams.end()) {
      const std::string prefix = core.of.name.empty() ? "" : core.of.name + ".";
      stream = core.streams
                   .emplace(trace.unit, file_.add_stream(prefix + std::string(block_of(trace.unit)),
                                                         "commands"))
                   .first;
    }
    const std::string name{hw::name_of(trace.opcode)};
    const FtrFile::Generator commands = file_.add_generator(name, stream->second);
    // A generator of events is known by its name.
    const FtrFile::Generator events = file_.add_generator(name + ".events", stream->second);
    core.generators.emplace(Kind{trace.unit, trace.opcode}, Generators{commands, events});
  }

  void add(Core& core, const CommandTrace& trace, const std::vector<CommandSpan>& stalls) {
    const Generators& generators = core.generators.at({trace.unit, trace.opcode});
    const auto edge = [&](std::uint64_t cycle) { return core.clock.edge_ps(cycle); };
    const FtrFile::Transaction command =
        file_.add(generators.commands, edge(trace.dispatched), edge(trace.completed),
                  {{command_, false, trace.index},
                   {operator_, true, file_.text(core.of.program->operators[trace.op].name)},
                   {what_, true, file_.text(describe(core.of.program->commands[trace.index]))},
                   {dispatched_, false, trace.dispatched},
                   {started_, false, trace.started},
                   {released_, false, trace.released},
                   {completed_, false, trace.completed}});
    core.commands.push_back(command);
    if (trace.was_blocked) file_.relate(hazard_, core.commands.at(trace.blocker), command);
    for (const CommandSpan& stall : stalls) {
      const FtrFile::Transaction event =
          file_.add(generators.events, edge(stall.begin), edge(stall.end),
                    {{name_, true, file_.text(stall.name)}});
      file_.relate(parent_of_, command, event);
    }
  }

  /// A stream of the bus, and whose commands its transactions are part of.
  struct Initiator {
    FtrFile::Generator read, write;
    const Core* core = nullptr;  ///< null: no commands
    hw::Unit unit{};
  };

  Initiator add_initiator(const std::string& name) {
    const FtrFile::Stream stream = file_.add_stream("bus." + name, "transactions");
    Initiator initiator{file_.add_generator("read", stream), file_.add_generator("write", stream)};
    for (const Core& core : cores_) {
      const std::string prefix = (core.of.name.empty() ? "core" : core.of.name) + ".";
      if (name.compare(0, prefix.size(), prefix) != 0) continue;
      if (const std::optional<hw::Unit> unit = unit_of(name.substr(prefix.size()))) {
        initiator.core = &core;
        initiator.unit = *unit;
      }
    }
    return initiator;
  }

  /// The unit of a core that executes commands with a port of that name.
  static std::optional<hw::Unit> unit_of(const std::string& port) {
    const std::pair<const char*, hw::Unit> units[] = {
        {"load.", hw::Unit::kLoad},
        {"store.", hw::Unit::kStore},
        {"attention.", hw::Unit::kCompute},
    };
    for (const auto& [prefix, unit] : units) {
      if (port.compare(0, std::strlen(prefix), prefix) == 0) return unit;
    }
    return std::nullopt;
  }

  /// Those until the last of the commands. A unit asks for nothing between its commands.
  void add_bus(const std::vector<tlm_model::BusTransaction>& transactions,
               const std::vector<Initiator>& initiators) {
    for (const tlm_model::BusTransaction& transaction : transactions) {
      const std::uint64_t asked = bus_clock_.edge_ps(transaction.asked);
      if (asked > end_ps_) continue;
      const Initiator& initiator = initiators[transaction.initiator];
      const FtrFile::Transaction added =
          file_.add(transaction.write ? initiator.write : initiator.read, asked,
                    bus_clock_.edge_ps(transaction.answered),
                    {{address_, false, transaction.address},
                     {bytes_, false, transaction.bytes},
                     {granted_, false, transaction.granted}});
      if (initiator.core == nullptr) continue;
      const Core& core = *initiator.core;
      const auto commands = core.begun.find(initiator.unit);
      if (commands == core.begun.end()) continue;
      const std::uint64_t left_ps = asked - std::uint64_t{core.of.link_ns} * 1000;  // its port
      const auto after = commands->second.upper_bound(left_ps);
      if (after == commands->second.begin()) continue;
      const CommandTrace& trace = *std::prev(after)->second;
      if (left_ps > core.clock.edge_ps(trace.completed)) continue;
      file_.relate(moves_, core.commands.at(trace.index), added);
    }
  }

  const tlm_model::Clock bus_clock_;
  FtrFile file_;
  std::deque<Core> cores_;
  std::uint64_t end_ps_ = 0;  ///< of all commands
  const FtrFile::Text command_ = file_.text("command"), operator_ = file_.text("operator"),
                      what_ = file_.text("what"), dispatched_ = file_.text("dispatched_cycle"),
                      started_ = file_.text("started_cycle"),
                      released_ = file_.text("released_cycle"),
                      completed_ = file_.text("completed_cycle"), name_ = file_.text("name"),
                      hazard_ = file_.text("hazard"), parent_of_ = file_.text("parent_of"),
                      address_ = file_.text("address"), bytes_ = file_.text("bytes"),
                      granted_ = file_.text("granted_bus_cycle"), moves_ = file_.text("moves");
};

}  // namespace

TransactionView::TransactionView(const std::string& path, const hw::Machine& machine)
    : bus_clock_(machine.bus.clock_mhz) {
  if (!path.empty()) file_.emplace(path);
}

void TransactionView::observe(std::vector<tlm_model::BusObserver>& observers) {
  if (!file_) return;
  observers.emplace_back(
      [this](const tlm_model::BusTransaction& transaction, const std::string& initiator) {
        transactions_.push_back(transaction);
        if (transaction.initiator >= initiators_.size()) {
          initiators_.resize(transaction.initiator + std::size_t{1});
        }
        std::string& name = initiators_[transaction.initiator];
        if (name.empty()) name = tlm_model::short_name(initiator);
      });
}

void TransactionView::write(const std::vector<CoreCommands>& cores) {
  if (!file_) return;
  const CommandTransactions transactions(file_->stream(), cores, bus_clock_,
                                         {transactions_, initiators_});
  file_->commit();
}

}  // namespace systole::testbench
