#include "testbench/explain/pipeline_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "testbench/explain/command_stages.h"
#include "testbench/wave/wave_signals.h"

namespace systole::testbench {
namespace {

using tlm_model::CommandTrace;

/// Lanes of a row. Konata draws the second over the first.
constexpr unsigned kStageLane = 0, kStallLane = 1;

/// The lines of all rows. A command's are added in the order of its own time, lane by lane.
class PipelineLog {
 public:
  PipelineLog(const hw::Program& program, const SimulationResult& result) : program_(program) {
    for_each_command(result, [&](const CommandTrace& trace, const CommandStages& command) {
      add(trace, command);
    });
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

  void line(std::uint64_t cycle, std::string text) { lines_.push_back({cycle, std::move(text)}); }

  void spans(std::uint32_t row, unsigned lane, const std::vector<CommandSpan>& spans) {
    for (const CommandSpan& span : spans) {
      line(span.begin, fmt::format("S\t{}\t{}\t{}", row, lane, span.name));
      line(span.end, fmt::format("E\t{}\t{}\t{}", row, lane, span.name));
    }
  }

  /// What a wait before the dispatch was for; an arrow would end at the execution.
  void hover(std::uint64_t begin, std::uint64_t end, std::uint32_t row, std::uint32_t by) {
    if (begin == end || by == tlm_model::DispatchSteps::kNoCommand) return;
    line(end, fmt::format("L\t{}\t1\tdispatch waited {} cycles for command {}\\n", row, end - begin,
                          by));
  }

  void add(const CommandTrace& trace, const CommandStages& command) {
    const tlm_model::DispatchSteps& steps = trace.dispatch;
    const std::uint32_t row = trace.index;
    line(steps.begun, fmt::format("I\t{0}\t{0}\t0", row));
    line(steps.begun, fmt::format("L\t{0}\t0\t{0}: {1} {2}", row,
                                  hw::printable(program_.operators[trace.op].name),
                                  describe(program_.commands[row])));
    hover(steps.fetched, steps.fenced, row, steps.fence_by);
    hover(steps.issued, steps.room, row, steps.room_by);
    spans(row, kStageLane, command.stages);
    if (trace.was_blocked) line(trace.started, fmt::format("W\t{}\t{}\t0", row, trace.blocker));
    spans(row, kStallLane, command.stalls);
    line(trace.completed, fmt::format("R\t{}", row));
  }

  const hw::Program& program_;
  std::vector<Line> lines_;
};

}  // namespace

PipelineView::PipelineView(const std::string& path) {
  if (!path.empty()) file_.emplace(path);
}

void PipelineView::write(const hw::Program& program, const SimulationResult& result) {
  if (!file_) return;
  PipelineLog(program, result).write(file_->stream());
  file_->commit();
}

}  // namespace systole::testbench
