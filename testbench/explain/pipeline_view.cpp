#include "testbench/explain/pipeline_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "testbench/wave/wave_signals.h"

namespace systole::testbench {
namespace {

using tlm_model::CommandTrace;

/// Lanes of a row. Konata draws the second over the first.
constexpr unsigned kStageLane = 0, kStallLane = 1;

/// The lines of all rows. A command's are added in the order of its own time, lane by lane.
class PipelineLog {
 public:
  explicit PipelineLog(const std::vector<CoreCommands>& cores) {
    for (const CoreCommands& core : cores) {
      if (core.program == nullptr) continue;
      core_ = &core;
      ratio_ = {cores.front().clock_mhz, core.clock_mhz};
      for_each_command(
          core.traces, core.blocks,
          [&](const CommandTrace& trace, const CommandStages& command) { add(trace, command); });
      ++thread_;
      first_row_ += static_cast<std::uint32_t>(core.traces.size());
    }
    // Lines of one cycle stay in the order in which they were added: a row begins before an arrow
    // leads from it, and a lane's stage ends before the next one begins.
    std::stable_sort(lines_.begin(), lines_.end(),
                     [](const Line& a, const Line& b) { return a.cycle < b.cycle; });
  }

  void write(std::ostream& out) const {
    out << "Kanata\t0004\n";
    std::uint64_t now = lines_.empty() ? 0 : lines_.front().cycle;
    out << "C=\t" << now << '\n';
    std::uint64_t retired = 0;
    for (const Line& line : lines_) {
      if (line.cycle != now) out << "C\t" << line.cycle - now << '\n';
      now = line.cycle;
      out << line.text;
      if (line.text.front() == 'R') out << '\t' << retired++ << "\t0";
      out << '\n';
    }
  }

 private:
  /// Of the log, after the cycle that it belongs to.
  struct Line {
    std::uint64_t cycle;
    std::string text;
  };

  void line(std::uint64_t cycle, std::string text) {
    lines_.push_back({cycle * ratio_.first / ratio_.second, std::move(text)});
  }

  void spans(std::uint32_t row, unsigned lane, const std::vector<CommandSpan>& spans) {
    for (const CommandSpan& span : spans) {
      line(span.begin, fmt::format("S\t{}\t{}\t{}", row, lane, span.name));
      line(span.end, fmt::format("E\t{}\t{}\t{}", row, lane, span.name));
    }
  }

  /// What a wait before the dispatch was for; an arrow would end at the execution.
  void hover(std::uint64_t begin, std::uint64_t end, std::uint32_t row, std::uint32_t by) {
    if (begin == end || by == tlm_model::DispatchSteps::kNoCommand) return;
    line(end, fmt::format("L\t{}\t1\tdispatch waited {} cycles for command {}\\n", first_row_ + row,
                          end - begin, by));
  }

  void add(const CommandTrace& trace, const CommandStages& command) {
    const tlm_model::DispatchSteps& steps = trace.dispatch;
    const std::uint32_t row = first_row_ + trace.index;
    const hw::Program& program = *core_->program;
    line(steps.begun, fmt::format("I\t{}\t{}\t{}", row, trace.index, thread_));
    line(steps.begun,
         fmt::format("L\t{}\t0\t{}{}: {} {}", row, core_->name.empty() ? "" : core_->name + " ",
                     trace.index, hw::printable(program.operators[trace.op].name),
                     describe(program.commands[trace.index])));
    hover(steps.fetched, steps.fenced, trace.index, steps.fence_by);
    hover(steps.issued, steps.room, trace.index, steps.room_by);
    spans(row, kStageLane, command.stages);
    if (trace.was_blocked)
      line(trace.started, fmt::format("W\t{}\t{}\t0", row, first_row_ + trace.blocker));
    spans(row, kStallLane, command.stalls);
    line(trace.completed, fmt::format("R\t{}", row));
  }

  const CoreCommands* core_ = nullptr;                   ///< whose commands are added
  std::pair<std::uint64_t, std::uint64_t> ratio_{1, 1};  ///< of the first core's clock to its
  std::uint32_t thread_ = 0, first_row_ = 0;             ///< its thread, its command 0
  std::vector<Line> lines_;
};

}  // namespace

PipelineView::PipelineView(const std::string& path) {
  if (!path.empty()) file_.emplace(path);
}

void PipelineView::write(const hw::Program& program, const SimulationResult& result) {
  write({commands_of(program, result)});
}

void PipelineView::write(const std::vector<CoreCommands>& cores) {
  if (!file_) return;
  PipelineLog(cores).write(file_->stream());
  file_->commit();
}

}  // namespace systole::testbench
