#include "testbench/explain/transaction_view.h"

#include <map>
#include <utility>
#include <vector>

#include "testbench/explain/command_stages.h"
#include "testbench/explain/explanation.h"
#include "testbench/wave/ftr_file.h"
#include "testbench/wave/wave_signals.h"
#include "tlm/common/time.h"

namespace systole::testbench {
namespace {

using tlm_model::CommandTrace;

/// The transactions of a program's commands.
class CommandTransactions {
 public:
  CommandTransactions(std::ostream& out, const hw::Program& program, const SimulationResult& result,
                      std::uint32_t core_mhz)
      : program_(program), clock_(core_mhz), file_(out) {
    // Viewers want to know all streams before the first transaction.
    for (const CommandTrace& trace : result.traces) add_generators(trace);
    commands_.reserve(result.traces.size());
    for_each_command(result, [&](const CommandTrace& trace, const CommandStages& command) {
      add(trace, command.stalls);
    });
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

  const hw::Program& program_;
  const tlm_model::Clock clock_;
  FtrFile file_;
  std::map<hw::Unit, FtrFile::Stream> streams_;
  std::map<Kind, Generators> generators_;
  std::vector<FtrFile::Transaction> commands_;  ///< by position in the program
  const FtrFile::Text command_ = file_.text("command"), operator_ = file_.text("operator"),
                      what_ = file_.text("what"), dispatched_ = file_.text("dispatched_cycle"),
                      started_ = file_.text("started_cycle"),
                      released_ = file_.text("released_cycle"),
                      completed_ = file_.text("completed_cycle"), name_ = file_.text("name"),
                      hazard_ = file_.text("hazard"), parent_of_ = file_.text("parent_of");
};

}  // namespace

TransactionView::TransactionView(const std::string& path, std::uint32_t core_mhz)
    : core_mhz_(core_mhz) {
  if (!path.empty()) file_.emplace(path);
}

void TransactionView::write(const hw::Program& program, const SimulationResult& result) {
  if (!file_) return;
  const CommandTransactions transactions(file_->stream(), program, result, core_mhz_);
  file_->commit();
}

}  // namespace systole::testbench
