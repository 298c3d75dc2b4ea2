#include "hw/array/fold_stream.h"

#include <algorithm>
#include <deque>

namespace systole::hw {
namespace {

/// Where one of the two streams of operands is: a command, a fold of it, a row of that fold.
struct FoldPlace {
  std::size_t command = 0;
  std::uint64_t column = 0, depth = 0, row = 0;  ///< of columns of tiles, of tiles of k
  std::uint64_t fold = 0;                        ///< of all commands
};

class FoldStream {
 public:
  FoldStream(const Machine::Array& array, const std::vector<FoldCommand>& commands,
             const FoldReads& serve)
      : rows_(array.rows),
        cols_(array.cols),
        overlap_(array.overlap),
        commands_(commands),
        serve_(serve) {
    schedule_.times.resize(commands.size());
  }

  FoldSchedule run() {
    std::uint64_t cycle = 0;
    while (acts_.command < commands_.size()) {
      const bool act = takes_act(cycle);
      const bool weight = takes_weight(cycle, act);
      const bool fill = takes_fill(cycle, weight);
      if (!act && !weight && !fill) {
        leave(cycle++);
        continue;
      }
      const std::uint64_t end =
          serve_(cycle, read_of_a(act), fill ? read_of_fill() : read_of_b(weight));
      // Sums that are at the edge of the array leave while it waits.
      for (; cycle + 1 < end; ++cycle) hand_over(cycle);
      leave(cycle);
      if (act) take_act(cycle);
      if (weight) take_weight(cycle);
      if (fill) take_fill(cycle);
      ++cycle;
    }
    while (!in_flight_.empty()) leave(cycle++);
    return std::move(schedule_);
  }

 private:
  /// A row of sums in flight, and the moves that it still makes.
  struct Row {
    std::uint64_t moves = 0;
    std::size_t command = 0;
    SumWrite write;
    bool last = false;  ///< of its command
  };

  [[nodiscard]] bool started(std::size_t command, std::uint64_t cycle) const {
    return command < commands_.size() && commands_[command].started < cycle;
  }
  /// No row is between the first and the last but one diagonal.
  [[nodiscard]] bool drained() const { return in_flight_.empty() || in_flight_.back().moves == 0; }

  [[nodiscard]] bool takes_act(std::uint64_t cycle) const {
    if (!started(acts_.command, cycle) || weights_.fold <= acts_.fold) return false;
    return acts_.row != 0 || overlap_ == ArrayOverlap::kFull || drained();
  }
  [[nodiscard]] bool takes_weight(std::uint64_t cycle, bool act) const {
    if (!started(weights_.command, cycle)) return false;
    const bool begins = commands_[weights_.command].b_transposed && weights_.row == 0;
    if (begins && (filled_.empty() || cycle < filled_.front())) return false;
    if (overlap_ == ArrayOverlap::kNone) return weights_.fold == acts_.fold && drained();
    // The fold before has begun, in this step at the latest.
    return weights_.fold == acts_.fold ||
           (weights_.fold == acts_.fold + 1 && (acts_.row != 0 || act));
  }

  /// `weight`: the step takes a row of weights.
  [[nodiscard]] bool takes_fill(std::uint64_t cycle, bool weight) const {
    if (fills_.command != weights_.command || !started(fills_.command, cycle)) return false;
    if (!commands_[fills_.command].b_transposed) return false;
    return filled_.size() < kFolds || (weight && weights_.row + 1 == rows_);
  }

  [[nodiscard]] std::optional<std::uint64_t> read_of_fill() const {
    const FoldCommand& command = commands_[fills_.command];
    return command.b + (fills_.column * cols_ + fills_.row) * command.b_pitch +
           fills_.depth * rows_;
  }
  [[nodiscard]] std::optional<std::uint64_t> read_of_a(bool taken) const {
    if (!taken) return std::nullopt;
    const FoldCommand& command = commands_[acts_.command];
    return command.a + acts_.row * command.a_pitch + acts_.depth * rows_;
  }
  [[nodiscard]] std::optional<std::uint64_t> read_of_b(bool taken) const {
    if (!taken) return std::nullopt;
    const FoldCommand& command = commands_[weights_.command];
    const std::uint64_t row = weights_.depth * rows_ + rows_ - 1 - weights_.row;
    if (command.b_transposed || row >= command.k) return std::nullopt;
    return command.b + row * command.b_pitch + weights_.column * cols_;
  }

  void take_act(std::uint64_t cycle) {
    const FoldCommand& command = commands_[acts_.command];
    Row row;
    row.moves = rows_ + cols_ - 2;
    row.command = acts_.command;
    row.write.at = command.c + acts_.row * command.c_pitch + acts_.column * cols_;
    row.write.accumulate = command.accumulate || acts_.depth != 0;
    if (step(acts_, command, command.m)) {
      row.last = true;
      schedule_.times[row.command].released = cycle + 1;
    }
    in_flight_.push_back(row);
  }
  void take_weight(std::uint64_t cycle) {
    const std::size_t command = weights_.command;
    const bool transposed = commands_[command].b_transposed;
    if (transposed && weights_.row + 1 == rows_) filled_.pop_front();
    if (!step(weights_, commands_[command], rows_)) return;
    schedule_.times[command].free = cycle;
    if (!transposed) fills_ = weights_;
  }
  void take_fill(std::uint64_t cycle) {
    const FoldCommand& command = commands_[fills_.command];
    const std::uint64_t columns = std::min(cols_, command.n - fills_.column * cols_);
    if (fills_.row + 1 == columns) filled_.push_back(cycle + 2);
    (void)step(fills_, command, columns);
  }
  /// Moves on by a row of `count` in a fold. Returns whether the command is over.
  bool step(FoldPlace& place, const FoldCommand& command, std::uint64_t count) const {
    if (++place.row < count) return false;
    place.row = 0;
    ++place.fold;
    if (++place.depth * rows_ < command.k) return false;
    place.depth = 0;
    if (++place.column * cols_ < command.n) return false;
    place.column = 0;
    ++place.command;
    return true;
  }

  /// Sums at the edge of the array in `cycle` are with the accumulator in the next one.
  void hand_over(std::uint64_t cycle) {
    if (in_flight_.empty() || in_flight_.front().moves != 0) return;
    Row row = in_flight_.front();
    in_flight_.pop_front();
    row.write.cycle = cycle + 1;
    if (row.last) schedule_.times[row.command].completed = cycle + 2;
    schedule_.sums.push_back(row.write);
  }
  /// `cycle` is one in which the array moves.
  void leave(std::uint64_t cycle) {
    hand_over(cycle);
    for (Row& row : in_flight_) --row.moves;
  }

  const std::uint64_t rows_, cols_;
  const ArrayOverlap overlap_;
  const std::vector<FoldCommand>& commands_;
  const FoldReads& serve_;
  static constexpr std::size_t kFolds = 2;  ///< in the transposer
  FoldPlace weights_, acts_, fills_;
  std::deque<std::uint64_t> filled_;  ///< cycles from which the weights in the transposer can begin
  std::deque<Row> in_flight_;
  FoldSchedule schedule_;
};

}  // namespace

FoldSchedule fold_times(const Machine::Array& array, const std::vector<FoldCommand>& commands,
                        const FoldReads& serve) {
  return FoldStream(array, commands, serve).run();
}

}  // namespace systole::hw
