#include "testbench/explain/command_trace.h"

#include <string_view>

#include "base/error.h"
#include "testbench/explain/explanation.h"

namespace systole::testbench {
namespace {

constexpr std::string_view kCommandColumns =
    "command,operator,unit,opcode,dispatched,started,released,completed,blocker,waits";

/// "load=12 memory=40": cycles by what was waited for, in order of time.
std::string waits_of(const CommandStages& command) {
  std::string text;
  for (const CommandSpan& stall : command.stalls) {
    if (!text.empty()) text += ' ';
    text += fmt::format("{}={}", stall.name, stall.end - stall.begin);
  }
  return text;
}

}  // namespace

CommandTraceWriter::CommandTraceWriter(const std::string& path, const hw::Machine& machine)
    : machine_(machine.name) {
  if (path.empty()) return;
  const std::string name = is_compressed(path) ? path.substr(0, path.size() - 3) : path;
  const std::string_view suffix = ".csv";
  if (name.size() < suffix.size() || name.substr(name.size() - suffix.size()) != suffix) {
    throw hw::InputError(path + ": a trace of commands is named .csv or .csv.gz");
  }
  text_.emplace(path);
}

void CommandTraceWriter::write(const std::vector<CoreCommands>& cores) {
  if (!text_) return;
  const bool named = !cores.front().name.empty();
  text_->add("# systole command trace 1\n# machine {}\n", machine_);
  std::size_t commands = 0;
  for (const CoreCommands& core : cores) {
    commands += core.traces.size();
    if (named) text_->add("# core {}\n", core.name);
    text_->add("# clock_mhz {}\n", core.clock_mhz);
  }
  text_->add("{}{}\n", named ? "core," : "", kCommandColumns);
  for (const CoreCommands& core : cores) add(core);
  text_->add("# end {}\n", commands);
  text_->commit();
}

void CommandTraceWriter::add(const CoreCommands& core) {
  if (core.program == nullptr) return;
  const std::string prefix = core.name.empty() ? "" : core.name + ",";
  for_each_command(core.traces, core.blocks,
                   [&](const tlm_model::CommandTrace& trace, const CommandStages& command) {
                     text_->add("{}{},{},{},{},{},{},{},{},{},{}\n", prefix, trace.index,
                                core.program->operators[trace.op].name, block_of(trace.unit),
                                hw::name_of(trace.opcode), trace.dispatched, trace.started,
                                trace.released, trace.completed,
                                trace.was_blocked ? std::to_string(trace.blocker) : "",
                                waits_of(command));
                   });
}

}  // namespace systole::testbench
