#include "testbench/explain/transaction_view.h"

#include <cstring>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "testbench/explain/command_stages.h"
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

/// The transactions of a program's commands and of the bus.
class CommandTransactions {
 public:
  CommandTransactions(std::ostream& out, const hw::Program& program, const SimulationResult& result,
                      const tlm_model::Clock& core_clock, const tlm_model::Clock& bus_clock,
                      const BusTraffic& bus)
      : program_(program), clock_(core_clock), bus_clock_(bus_clock), file_(out) {
    // Viewers want to know all streams before the first transaction.
    for (const CommandTrace& trace : result.traces) add_generators(trace);
    std::vector<Initiator> initiators;
    for (const std::string& name : bus.initiators) initiators.push_back(add_initiator(name));
    commands_.reserve(result.traces.size());
    for_each_command(result.traces, result.blocks,
                     [&](const CommandTrace& trace, const CommandStages& command) {
                       add(trace, command.stalls);
                     });
    add_bus(result, bus.transactions, initiators);
    file_.close();
  }

 private:
  using Kind = std::pair<hw::Unit, hw::Opcode>;
  struct Generators {
    FtrFile::Generator commands, events;
  };

  void add_generators(const CommandTrace& trace) {
    if (generators_.count({trace.unit, trace.opcode}) != 0) return;
    auto stream = streams_.find(trace.unit);
    if (stream == streams_.end()) {
      stream =
          streams_.emplace(trace.unit, file_.add_stream(block_of(trace.unit), "commands")).first;
    }
    const std::string name{hw::name_of(trace.opcode)};
    const FtrFile::Generator commands = file_.add_generator(name, stream->second);
    // A generator of events is known by its name.
    const FtrFile::Generator events = file_.add_generator(name + ".events", stream->second);
    generators_.emplace(Kind{trace.unit, trace.opcode}, Generators{commands, events});
  }

  void add(const CommandTrace& trace, const std::vector<CommandSpan>& stalls) {
    const Generators& generators = generators_.at({trace.unit, trace.opcode});
    const FtrFile::Transaction command = file_.add(
        generators.commands, clock_.edge_ps(trace.dispatched), clock_.edge_ps(trace.completed),
        {{command_, false, trace.index},
         {operator_, true, file_.text(program_.operators[trace.op].name)},
         {what_, true, file_.text(describe(program_.commands[trace.index]))},
         {dispatched_, false, trace.dispatched},
         {started_, false, trace.started},
         {released_, false, trace.released},
         {completed_, false, trace.completed}});
    commands_.push_back(command);
    if (trace.was_blocked) file_.relate(hazard_, commands_.at(trace.blocker), command);
    for (const CommandSpan& stall : stalls) {
      const FtrFile::Transaction event =
          file_.add(generators.events, clock_.edge_ps(stall.begin), clock_.edge_ps(stall.end),
                    {{name_, true, file_.text(stall.name)}});
      file_.relate(parent_of_, command, event);
    }
  }

  /// A stream of the bus, and whose commands its transactions are part of.
  struct Initiator {
    FtrFile::Generator read, write;
    std::optional<hw::Unit> unit;
  };

  Initiator add_initiator(const std::string& name) {
    const FtrFile::Stream stream = file_.add_stream("bus." + name, "transactions");
    return {file_.add_generator("read", stream), file_.add_generator("write", stream),
            unit_of(name)};
  }

  /// The unit that executes commands with a port of that name.
  static std::optional<hw::Unit> unit_of(const std::string& name) {
    const std::pair<const char*, hw::Unit> units[] = {
        {"core.load.", hw::Unit::kLoad},
        {"core.store.", hw::Unit::kStore},
        {"core.attention.", hw::Unit::kCompute},
    };
    for (const auto& [prefix, unit] : units) {
      if (name.compare(0, std::strlen(prefix), prefix) == 0) return unit;
    }
    return std::nullopt;
  }

  /// Those of the first inference. A unit asks for nothing between its commands.
  void add_bus(const SimulationResult& result,
               const std::vector<tlm_model::BusTransaction>& transactions,
               const std::vector<Initiator>& initiators) {
    std::map<hw::Unit, std::map<std::uint64_t, const CommandTrace*>> begun;  // by ps
    for (const CommandTrace& trace : result.traces) {
      begun[trace.unit][clock_.edge_ps(trace.started)] = &trace;
    }
    for (const tlm_model::BusTransaction& transaction : transactions) {
      const std::uint64_t asked = bus_clock_.edge_ps(transaction.asked);
      if (asked > clock_.edge_ps(result.finished)) continue;
      const Initiator& initiator = initiators[transaction.initiator];
      const FtrFile::Transaction added =
          file_.add(transaction.write ? initiator.write : initiator.read, asked,
                    bus_clock_.edge_ps(transaction.answered),
                    {{address_, false, transaction.address},
                     {bytes_, false, transaction.bytes},
                     {granted_, false, transaction.granted}});
      if (!initiator.unit) continue;
      const auto& commands = begun[*initiator.unit];
      const auto after = commands.upper_bound(asked);
      if (after == commands.begin()) continue;
      const CommandTrace& trace = *std::prev(after)->second;
      if (asked > clock_.edge_ps(trace.completed)) continue;
      file_.relate(moves_, commands_.at(trace.index), added);
    }
  }

  const hw::Program& program_;
  const tlm_model::Clock clock_, bus_clock_;
  FtrFile file_;
  std::map<hw::Unit, FtrFile::Stream> streams_;
  std::map<Kind, Generators> generators_;
  std::vector<FtrFile::Transaction> commands_;  ///< by position in the program
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
    : core_clock_(machine.core.clock_mhz), bus_clock_(machine.bus.clock_mhz) {
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

void TransactionView::write(const hw::Program& program, const SimulationResult& result) {
  if (!file_) return;
  const CommandTransactions transactions(file_->stream(), program, result, core_clock_, bus_clock_,
                                         {transactions_, initiators_});
  file_->commit();
}

}  // namespace systole::testbench
